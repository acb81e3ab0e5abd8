"""A rule's page: what it finds and why, with sources and examples, as ``argosy lint --explain`` prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from textwrap import indent

from argosy.steps.contract.errors import InputError
from argosy.workflows.lint.rule import RULES


@dataclass(frozen=True, slots=True)
class Example:
    """A file of an example; ``language`` is ``yaml`` or ``toml``."""

    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Args:
        title: one line.
        level: ``error``, ``warning`` or ``note``.
        fixable: whether ``--fix`` mends it (at least where that is safe).
        sources: addresses of what the rule rests on.
        bad: manifests (or a run.toml) in which the rule finds something.
        good: the same, mended.
        text: the whole page.
    """

    rule: str
    title: str
    level: str
    fixable: bool
    sources: tuple[str, ...]
    bad: tuple[Example, ...]
    good: tuple[Example, ...]
    text: str


def page(rule: str) -> Page:
    """The page of a rule.

    Raises:
        InputError: there is no such rule.
    """
    if rule not in RULES:
        raise InputError(f"rule {rule!r}: there is no such rule; argosy lint --list shows them")
    text = files("argosy.workflows.lint").joinpath("pages", RULES[rule].family, f"{rule}.md").read_text("utf-8")
    return parse(rule, _whole(text))


def _whole(text: str) -> str:
    """The text with the parts of manifests that many examples share, where it names them: ``@pod`` in a line."""

    def part(name: re.Match[str]) -> str:
        return indent(_whole(_shared()[name[2]]), name[1])

    return re.sub(r"^([-+]? *)@([\w-]+)$", part, text, flags=re.MULTILINE)


@cache
def _shared() -> dict[str, str]:
    """The parts by name; one may name others."""
    text = files("argosy.workflows.lint").joinpath("schema/examples.md").read_text("utf-8")
    _, *names_and_parts = re.split(r"\n?^@([\w-]+):\n", text.rstrip(), flags=re.MULTILINE)
    return dict(zip(names_and_parts[::2], names_and_parts[1::2], strict=True))


def parse(rule: str, text: str) -> Page:
    """Read a page's text: the title, ``LEVEL[, --fix]``, sources, words, and examples as differences.

    A line of an example that begins with ``-`` is of the bad one only, one with ``+`` of the mended one only; an
    example without either is bad as it stands.

    Raises:
        ValueError: a part that every page has is missing.
    """
    head = re.match(rf"# {rule} · (.+)\n(error|warning|note)(, --fix)?\n((?:https?://\S+.*\n)+)\n", text)
    if head is None:
        raise ValueError(
            f"the page of {rule} needs '# {rule} · TITLE', its level[, --fix] and its sources, line by line"
        )
    bad: list[Example] = []
    good: list[Example] = []
    for language, body in re.findall(r"^```diff ?(toml)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines = body.splitlines(keepends=True)
        bad.append(Example(language or "yaml", _side(lines, "-")))
        if any(line[:1] in "+-" for line in lines):
            good.append(Example(language or "yaml", _side(lines, "+")))
    sources = tuple(line.split()[0] for line in head[4].splitlines())
    return Page(rule, head[1], head[2], bool(head[3]), sources, tuple(bad), tuple(good), text)


def _side(lines: list[str], mark: str) -> str:
    return "".join(line[1:] or "\n" for line in lines if line[:1] in (" ", "\n", mark))
