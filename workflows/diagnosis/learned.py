"""What a log's words are like, where no rule names what ended it: a line of weights for each cause, learned from the
labelled public logs of tests/verdict by scripts/learn_words.py."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from argosy.steps.contract.causes import Cause

_TROUBLE = re.compile(r"error|exception|fail|fatal|abort|kill|signal|refus|denied|time", re.IGNORECASE)
_ILL = re.compile(
    r"error(?!\w*[:= ]+\d*\.\d)|exception|fail|fatal|abort|kill|signal|refus|denied|timed? ?out|n't\b|traceback"
    r"|core dump|not found|cannot"
    r"|\b(unable|invalid|missing|lost\b|unhealthy|unavailable|insufficient|mismatch|assert|crash|corrupt|terminat|evict"
    r"|preempt|backoff|pending|requeue|oom\b|out of memory|overflow|nan\b|exceeded|reset by|dead\b)",
    re.IGNORECASE,
)
"""Without any such word a log is that of a process that went without one, or well; an error of 0.1 is a metric."""
_FEWEST = 3
"""Of fewer different words that are known nothing is told."""
_TROUBLED = 15
_LAST = 8
_FOLDERS = re.compile(r"[/\\][\w./\\-]+[/\\]")
"""The folders of one machine tell nothing of another's."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""``CUDA_ERROR_unknownDevice`` is cuda, error, unknown, device."""
BIAS = ""
"""Stands for the word that every log has."""


def telling(texts: Sequence[str]) -> list[str]:
    """The lines by which a log is judged: the last fifteen that tell of trouble, and its last eight."""
    filled = [text for text in texts if text.strip()]
    return [text for text in filled if _TROUBLE.search(text)][-_TROUBLED:] + filled[-_LAST:]


def tells_of_trouble(texts: Sequence[str]) -> bool:
    """Whether any word says that something is not as it should be."""
    return any(map(_ILL.search, telling(texts)))


def words_in(text: str) -> Iterator[str]:
    """The words of a line, in small letters, without digits and without the folders of paths."""
    return (word.lower() for word in _WORD.findall(_FOLDERS.sub("/", text)))


def shares(counts: Counter[str]) -> dict[str, float]:
    """Each word's share of a log, whose squares sum to 1: twice as often counts 1.7 times as much."""
    raw = {word: 1 + math.log(count) for word, count in counts.items()}
    norm = math.sqrt(sum(value * value for value in raw.values()))
    return {word: value / norm for word, value in raw.items()}


@cache
def weights() -> dict[Cause, dict[str, float]]:
    """By cause the words that speak for it, or against it."""
    learned = json.loads(Path(__file__).with_name("learned.json").read_text(encoding="utf-8"))
    return {Cause(cause): words for cause, words in learned["causes"].items()}


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(word for words in weights().values() for word in words) - {BIAS}


def likely(texts: Sequence[str]) -> list[tuple[Cause, float]]:
    """All causes with their probabilities, the likeliest first; none for a log of hardly a known word."""
    lines = telling(texts)
    counts = Counter(word for line in lines for word in words_in(line) if word in _vocabulary())
    if len(counts) < _FEWEST:
        return []
    share_of = shares(counts)
    scores = {
        cause: words[BIAS] + sum(share * words.get(word, 0.0) for word, share in share_of.items())
        for cause, words in weights().items()
    }
    most = max(scores.values())
    total = sum(math.exp(score - most) for score in scores.values())
    ordered = sorted(scores, key=lambda cause: -scores[cause])
    return [(cause, math.exp(scores[cause] - most) / total) for cause in ordered]


def speaks_for(cause: Cause, text: str) -> float:
    """How much the words of one line speak for a cause; 0 where they do not."""
    words = weights()[cause]
    return sum(words.get(word, 0.0) for word in set(words_in(text)))
