"""One expression for all that any rule could match, fast enough for gigabytes."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from argosy.steps.verdict.families import PATTERNS
from argosy.steps.verdict.families.topics import TOPICS

_LOOK_AROUND = re.compile(r"\(\?<?[!=](?:\\.|[^)\\])*\)")
_ALSO = (
    r"raceback \(most recent call last\)",
    r"\bwhat\(\): ",
    r"exception was the direct cause|During handling of the above",
    r"\bargosy: [a-z0-9_]+[: ]",
)


@cache
def hits() -> Any:
    """A compiled RE2 expression over bytes; what it does not match, no rule does, whatever stands before it.

    RE2's time is linear in the text. Look-arounds are left out and anchors opened (rules see lines without prefixes),
    so that it finds some lines too many, never one too few.
    """
    import re2  # here: only the diagnosis of files needs it

    options = re2.Options()
    options.max_mem = 256 << 20
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    topics = (f"(?i:{_opened(a)}.*{_opened(b)})" for topic in TOPICS for a, b in _both_ways(topic.about, topic.trouble))
    parts = [*(_opened(pattern.regex) for pattern in PATTERNS), *topics, *_ALSO]
    return re2.compile(("(?m)" + "|".join(parts)).encode(), options)  # words of any language are bytes, as in a log


def _both_ways(about: str, trouble: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return (about, trouble), (trouble, about)


def _opened(regex: str) -> str:
    flags, regex = ("i", regex[4:]) if regex.startswith("(?i)") else ("", regex)
    regex = _LOOK_AROUND.sub("", regex)
    regex = re.sub(r"(?<![\[\\])\^", "", regex)
    return f"(?{flags}:{regex})"
