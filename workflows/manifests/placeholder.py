"""Words that stand for others: what a program, a shell or a reader writes something else for."""

from __future__ import annotations

import re
from typing import Final

# What an author's script or a guide's reader fills in, and nothing in a cluster: <…>, the __X__, @X@, %X% that vendors'
# scripts replace (github.com/GoogleCloudPlatform/container-engine-accelerators), Python's {x} and %(x)s, <%= x %>,
# [[ x ]], Chainsaw's ($x), an ellipsis.
_PLACED: Final = (
    r"<%|\[\[ ?(?:\.|\w+ ?\]\])|%\(\w+\)s|^\S*<[A-Za-z][^<>\n]*>\S*$|^\S*(?<![${])\{\w+\}(?!\})\S*$"
    r"|^\(\$\w+\)$|^(?:\.{3,}|…)$|PLACEHOLDER|__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__|([@#])[A-Z][A-Z0-9_]*\1|%[A-Z][A-Z0-9_]+%|@[a-z]\w*@"
)
_IS_PLACED: Final = re.compile(_PLACED)
# And Argo's {{…}}, the kubelet's $(…), envsubst's ${…}. Never guessed.
_FILLED_LATER: Final = re.compile(r"\{\{|\$\(|\$\{|" + _PLACED)
# What a reader of a guide writes something else for; a word that a script replaces, where no capitals can stand.
_REPLACED: Final = re.compile(
    r"(?i)\S*(\byour[-_]|(change|fix|edit)[-_]?me|replace[-_]?(me|with|this)|placeholder|\bmy[-_](\w+[-_])*image\b|\btodo\b|\bx{3,}\b)\S*"
)
_CAPITALS: Final = re.compile(r"(?<![A-Za-z0-9 ])[A-Z][A-Z_]+(?![a-z])")
# envsubst's other form, as the whole value of a key: among the words of a command it is a shell's, or a mistake.
_ONE_VARIABLE: Final = re.compile(r"\$[A-Za-z_]\w*")


def filled_later(text: str) -> bool:
    """Whether somebody fills a part of it in, in the cluster or before."""
    return _FILLED_LATER.search(text) is not None


def placed(text: str) -> bool:
    """Whether it is still to be written."""
    return "\n" not in text and (_IS_PLACED.search(text) is not None or _REPLACED.fullmatch(text) is not None)


def in_capitals(text: str) -> bool:
    """Whether it holds a word in capitals."""
    return _CAPITALS.search(text) is not None


def variable(text: str) -> bool:
    """Whether it is ``$NAME`` and nothing else."""
    return _ONE_VARIABLE.fullmatch(text) is not None
