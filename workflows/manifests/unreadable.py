"""What a text is that is not YAML: a template, a sketch of a page, another language around a manifest, or broken."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import yaml

# What another program fills in before anybody applies the file: Helm, Jinja, sed, envsubst on a line of its own. Argo's
# own variables are no such thing: Argo, too, reads YAML first.
_TEMPLATE: Final = re.compile(
    r"\{%|<%|(?<!\S)[\"']?([@%])\1?[A-Za-z]\w*\1|^\s*\$\{\w+\}\s*$|\{\{(?!-?\s*[=\"']?\s*"
    r"(?:inputs|outputs|steps|tasks|workflow|item|pod|node|retries|lastRetry|cronworkflow)\b)",
    re.MULTILINE,
)
# A word that a script replaces, where only that keeps the line from being YAML: alone, right behind its key's colon, or
# envsubst's in a mapping in braces.
_FILLED_IN: Final = re.compile(
    r".*\{[^{}]*: *\$\{\w+\}.*"
    r"|[ \t]*(?:- )?(?:[\w./-]+:)?(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|__\w+__|\$\w+|\$?\{\w+\}|<[\w. -]+>)[ \t]*"
)
_OBJECT: Final = re.compile(r"^[ \t\"'{-]*(?:apiVersion|kind)[\"']?\s*:", re.MULTILINE)
# A shell's or Python's text around a manifest, as a page's blocks have it: its first line is no key and no item.
_OTHER_LANGUAGE: Final = re.compile(
    r"(?:[ \t]*(?:#.*)?\n)*(?:%%|--- \S.*\n\+\+\+ |(?!---|- |[\s{%\"'&!?#:]|[\w./-]+[ \t]*:)\S)"  # and a difference
)
# What the author of a page left out.
_LEFT_OUT: Final = re.compile(r"^[ \t]*(?:- )?[\[(<]?[ \t]*(?:\.{3,}|…)[ \t]*[\])>]?[ \t]*(?:#.*)?$", re.MULTILINE)
# The same in words or down the page, which says it only where the file stops being YAML.
_LEFT_OUT_HERE: Final = re.compile(r"[ \t]*(?:[.:]|[^:#]*\b(?:omitted|snip(?:ped)?|truncated|and so on)\b[^:]*)[ \t]*")


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A place in a file that is not YAML, or not what Kubernetes takes.

    ``harmless``: whoever applies the file may know of it; ``lossless``: what stands there says nothing else either way.
    """

    rule: str
    line: int
    column: int
    message: str
    remedy: str
    harmless: bool = False
    lossless: bool = False


def what_else(first: Unreadable, text: str, *, named: bool) -> Unreadable | None:
    """What the text shows itself to be; None: a manifest that is broken at ``first``.

    ``named``: the file is called as YAML or JSON is.
    """
    why = first.message.removeprefix("is not YAML: ")
    if first.harmless or _is_template(text, first.line):
        remedy = "render it first, as helm template CHART does, and name what comes out, or - for a pipe"
        return replace(first, message=f"a template, not a manifest ({why})", remedy=remedy, harmless=True)
    if not named:
        remedy = "name a file of YAML or JSON, or what writes one and - for a pipe"
        return replace(first, message=f"no manifest ({why})", remedy=remedy, harmless=True)
    if _LEFT_OUT.search(text) or any(map(_LEFT_OUT_HERE.fullmatch, _near(text, first.line))):
        what = f"not whole: something was left out ({why})"
        return replace(first, message=what, remedy="write what was left out", harmless=True)
    if _OTHER_LANGUAGE.match(text):
        what, remedy = f"not a manifest, but text around one ({why})", "lint what the text applies, or the files alone"
        return replace(first, message=what, remedy=remedy, harmless=True)
    block_ends = text.split("\n")[first.line - 1].lstrip().startswith("```")  # its page goes on
    return replace(first, harmless=True) if block_ends or not _OBJECT.search(text) else None


def _is_template(text: str, line: int) -> bool:
    """Whether another program fills the file in; a word in capitals counts only where the file stops being YAML."""
    return _TEMPLATE.search(text) is not None or any(map(_FILLED_IN.fullmatch, _near(text, line)))


def _near(text: str, line: int) -> list[str]:
    """The line where it stops being YAML, and the one before: a parser sees a fault when it is behind it."""
    return text.split("\n")[max(0, line - 2) : line]


def not_yaml(error: yaml.YAMLError, text: str) -> Unreadable:
    """Where and why the parser stopped."""
    mark = getattr(error, "problem_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    if line > text.rstrip().count("\n") + 1:  # the end of the file: point at its last line instead
        line, column = text.rstrip().count("\n") + 1, 1
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
    if any("\t" in each for each in text.split("\n")[line - 1 : line]):
        what = "a tab where YAML wants spaces"
    elif any("\u00a0" in each[: len(each) - len(each.lstrip())] for each in text.split("\n")[line - 2 : line]):
        what = "a no-break space where YAML wants spaces"
    return Unreadable("YAML001", line, column, f"is not YAML: {what}", "mend the line, or the one before it")
