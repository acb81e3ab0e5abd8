"""Words of ``command`` and ``args``: each item of the lists is one word, whatever it looks like."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Edit, Level, Problem, SetValue
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.shell import SHELLS

_PROGRAM: Final = re.compile(r"[\w./+-]+(\s+\S.*)", re.DOTALL)
_OPTION: Final = re.compile(r"(--[A-Za-z][\w.-]*)[ \t]+(\S.*)", re.DOTALL)
_OF_MPIRUN: Final = re.compile(r"(-x|-np|-npernode|-N|-H|-hostfile)[ \t]+(\S+)")
_SHELL_SYNTAX: Final = re.compile(r"[&|;<>`$*?~\\\"'(){}\[\]\n]")
# What reads its words itself; a script of the image may put them together and split them again.
_PARSES: Final = re.compile(
    r"(.*/)?(python[\d.]*|pip3?|torchrun|accelerate|deepspeed|mpirun|mpiexec|orterun|horovodrun|ray|echo|cp|mkdir|git)"
)
# Interpreters' options whose next word is a program of its own.
CODE_FOLLOWS: Final = ("-c", "-e", "--eval", "--expression")


def literal_words(container: Container) -> list[Node]:
    """The words that reach a program as they stand: no script, no source text, nothing of several lines."""
    if container.script is not None:
        return []
    argv = container.argv
    return [
        node
        for index, node in enumerate(argv)
        if node.is_scalar and "\n" not in node.text.strip() and not (index and argv[index - 1].text in CODE_FOLLOWS)
    ]


@rule("ARGV001", Level.ERROR, on=Container)
def command_line(container: Container) -> Iterator[Problem]:
    """A whole command line as the name of the program."""
    argv = container.argv
    if not argv or container.script is not None or container.node["source"] or argv[0].open:
        return
    if container.pod.document.group == "ray.io":
        return  # KubeRay joins the words for a bash -c of its own
    first = argv[0]
    if not _PROGRAM.fullmatch(first.text.strip()) or _OPTION.match(first.text):
        return
    own = first.parent is not None and first.parent.key == "command"
    yield Problem(
        first,
        f"{_short(first.text)} is one word: the kernel looks for a program of that name, spaces included",
        "write every word as its own item, or run it with [sh, -c, ...]",
        edits=_split(first) if own else (),
        # The image's entrypoint may take it apart, or want it as it stands.
        level=None if own else Level.WARNING if _PARSES.fullmatch(first.text.split()[0]) else Level.NOTE,
    )


def _split(first: Node) -> list[Edit]:
    """One item per word, where the list holds nothing else and the text needs no shell."""
    held = first.parent
    if held is None or len(held.items) != 1 or _SHELL_SYNTAX.search(first.text):
        return []
    return [SetValue(held, shlex.split(first.text))]


@rule("ARGV002", Level.WARNING, on=Container)
def option_and_value(container: Container) -> Iterator[Problem]:
    """An option and its value in one word, with a space between them."""
    words = literal_words(container)
    parsed = reads_its_words(container)
    for before, node in zip([None, *words], words, strict=False):
        match = _OPTION.fullmatch(node.text.strip()) or _OF_MPIRUN.fullmatch(node.text.strip())
        if match is None or node.text.startswith("--mca"):
            continue
        if match.re is _OF_MPIRUN:
            yield _two_words(node, match, None if parsed else Level.NOTE)
            continue
        single = not re.search(r"\s", match[2].strip())
        # Behind an option without a value it may be that value: --setup_param "--verbose 128 2 0" of TCPX's daemon.
        value = before is not None and re.fullmatch(r"--?[A-Za-z][\w-]*", before.text) is not None
        if value and not single:
            continue
        own = parsed and not value
        yield Problem(
            node,
            f"{_short(node.text)} is one word, and no option has a space in its name",
            f"write {match[1]}={match[2]}, or two items" if single else "write every word as its own item",
            edits=[SetValue(node, f"{match[1]}={match[2].strip()}")] if single and own else (),
            level=None if own else Level.NOTE,
        )


def _two_words(node: Node, match: re.Match[str], level: Level | None) -> Problem:
    return Problem(
        node,
        f"{_short(node.text)} is one word, and no option has a space in its name",
        f"write two items, {match[1]} and {match[2]}",
        level=level,
    )


@rule("ARGV003", Level.ERROR, on=Container)
def not_a_string(container: Container) -> Iterator[Problem]:
    """``command`` and ``args`` are lists of strings; the API server refuses everything else."""
    for key in ("command", "args"):
        held = container.node[key]
        if held.is_scalar and not held.open:
            yield Problem(
                held,
                f"{key} is a list of words, and this is one {'text' if held.is_string else 'value'}",
                "write a list, one item per word; for a script [sh, -c, SCRIPT]",
            )
        for node in held:
            if node.is_scalar and not node.is_kubernetes_string:
                yield Problem(
                    node,
                    f"{node.text} without quotes is no string, and {key} takes strings only: the API server refuses it",
                    f'write "{node.text}"',
                    edits=[SetValue(node, node.text)],
                )
            elif node.is_mapping or node.is_list:
                yield Problem(
                    node,
                    f"an item of {key} that is a {'mapping' if node.is_mapping else 'list'}: "
                    "the API server refuses it (a colon and a space inside of a word make it one)",
                    "put the word in quotes",
                )


def reads_its_words(container: Container) -> bool:
    """Whether the command is a program that is known to take its words as they are."""
    argv = container.argv
    return bool(container.node["command"]) and bool(argv) and _PARSES.fullmatch(argv[0].text) is not None


def is_shell(word: str) -> bool:
    """Whether a word names a shell."""
    return word.rsplit("/", 1)[-1] in SHELLS


def _short(text: str) -> str:
    shown = " ".join(text.split())
    return f'"{shown}"' if len(shown) <= 60 else f'"{shown[:57]}…"'
