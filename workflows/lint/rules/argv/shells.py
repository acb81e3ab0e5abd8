"""Shells: which word one reads, and shell syntax where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.argv.words import is_shell, literal_words, reads_its_words
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container

_OPERATORS: Final = ("&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&", "&>")
_SYNTAX: Final = re.compile(r"`[^`]+`|\s(&&|\|\||\|)\s|^\s*(2?>>?|&>|\|)\s*[\w./~$-]+\s*$")
_GLOB: Final = re.compile(r"[\w./-]+/\*(\.\w+)?|~/[\w./-]*|[\w./-]+\.\*")
# Programs that expand patterns themselves, or read a language of their own in which these signs mean something.
_OF_ITS_OWN: Final = (
    *("find", "rsync", "s5cmd", "awk", "sed", "jq", "perl", "ruby", "node", "envsubst", "make", "mc", "gsutil"),
    *("convert", "magick", "mogrify"),
)


@rule("ARGV010", Level.WARNING, on=Container)
def syntax(container: Container) -> Iterator[Problem]:
    """``&&``, ``|``, ``>`` and their like as words of a program."""
    words = literal_words(container)
    program = container.argv[0].text.rsplit("/", 1)[-1] if container.argv else ""
    if program in _OF_ITS_OWN or is_shell(program) or not container.node["command"]:
        return
    for before, node in pairwise(words):
        if node.text in _OPERATORS or _SYNTAX.search(node.text):
            yield Problem(
                node,
                f"no shell reads this, so {program} gets {node.text!r} as an argument",
                "run it with [sh, -c, SCRIPT], the whole script as one item",
                # A script of the image may hand its words to a shell; in a longer one, or behind an option, it is data.
                level=None
                if node.text in _OPERATORS and not before.text.startswith("-") and reads_its_words(container)
                else Level.NOTE,
            )
        elif _GLOB.fullmatch(node.text):
            yield Problem(
                node,
                f"no shell reads this, so nothing expands {node.text}",
                "run it with [sh, -c, SCRIPT], or name the files",
                level=Level.WARNING,
            )


@rule("ARGV011", Level.ERROR, on=Container)
def script(container: Container) -> Iterator[Problem]:
    """A shell takes its script as the one word behind ``-c``."""
    yield from _several_words(container)
    yield from _without_c(container)


def _several_words(container: Container) -> Iterator[Problem]:
    """``sh -c`` takes one word as its script; those after it are the script's ``$0``, ``$1``, …"""
    script, argv = container.script, container.argv
    if script is None or script not in argv:
        return
    index = argv.index(script)
    rest = argv[index + 1 :]
    if not rest or re.search(r"\$[@*#0-9]|\$\{[@*#0-9]", script.text) or (script.open and not script.text.strip()):
        return
    word = rest[0]
    yield Problem(
        word,
        f"{argv[0].text.rsplit('/', 1)[-1]} -c runs {_short(script)} and nothing more: "
        f"{_short(word)} and what follows become $0, $1, ... which the script does not use",
        "put the whole command line into the one item after -c",
        level=Level.WARNING if len(rest) == 1 and not word.text.startswith("-") and " " in script.text else None,
    )


def _without_c(container: Container) -> Iterator[Problem]:
    """A shell that gets a command line and no ``-c`` looks for a file of that name."""
    argv = container.argv
    if container.script is not None or not argv or not is_shell(argv[0].text) or container.node["source"]:
        return
    first = next((node for node in argv[1:] if not node.text.startswith(("-", "+"))), None)
    if first is None or not re.search(r"\S\s+\S", first.text) or "-s" in [node.text for node in argv]:
        return
    yield Problem(
        first, f"without -c the shell takes {_short(first)} for the name of a script file", "put -c before it"
    )


def _short(node: Node) -> str:
    shown = " ".join(node.text.split())
    return f'"{shown}"' if len(shown) <= 40 else f'"{shown[:37]}..."'
