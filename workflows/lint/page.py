"""A rule's page: what it finds and why, with sources and examples, as ``argosy lint --explain`` prints it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

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
    return parse(rule, text)


def parse(rule: str, text: str) -> Page:
    """Read a page's text.

    Raises:
        ValueError: a part that every page has is missing.
    """
    title = re.match(rf"# {rule} · (.+)\n", text)
    level = re.search(r"^level: (error|warning|note)$", text, re.MULTILINE)
    fixable = re.search(r"^fixable: (yes|no)$", text, re.MULTILINE)
    sources = re.findall(r"^source: (\S+)", text, re.MULTILINE)
    if title is None or level is None or fixable is None or not sources:
        raise ValueError(f"the page of {rule} needs a title '# {rule} · …', level:, fixable: and source: lines")
    bad, good = _examples(text, "Bad"), _examples(text, "Good")
    return Page(rule, title[1], level[1], fixable[1] == "yes", tuple(sources), bad, good, text)


def _examples(text: str, heading: str) -> tuple[Example, ...]:
    parts = re.split(r"^## (\w+).*$", text, flags=re.MULTILINE)
    held = "".join(body for name, body in zip(parts[1::2], parts[2::2], strict=True) if name == heading)
    found = re.findall(r"^```(yaml|toml)\n(.*?)^```$", held, re.MULTILINE | re.DOTALL)
    return tuple(Example(language, text) for language, text in found)
