"""What one line says, for itself."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.families import PATTERNS
from argosy.steps.verdict.families.benign import REGEXES
from argosy.steps.verdict.families.topics import TOPICS
from argosy.steps.verdict.pattern import Pattern
from argosy.steps.verdict.wording import own_words

MAX_QUOTE = 500
_LONGEST_HINT = 1000
_NO_TROUBLE = re.compile(
    r"^\s*(raise|return|if|assert|except|self\.|def|import|from)\b|\bsucceeded\b|\bNCCL INFO\b"
    r"|^\s*Image( ID)?:\s|HTTP Request: |\bHTTP/\d(\.\d)?\"? \d{3}\b|\bNormal\s{2,}[A-Z]\w+\s"
)
"""Quoted code, what went well, Kubernetes' events of that kind, the image that a pod is described by, and logs of
requests: a hub's client asks for files that need not be there."""

_BENIGN = re.compile("|".join(f"(?:{regex.replace('(?i)', '')})" for regex, _ in REGEXES), re.IGNORECASE)
_WARNING = re.compile(r"\bwarn(ing)?\b|\b\w+Warning: |^\[?W\d* |: W tensorflow/", re.IGNORECASE)
_TOLD_AS_WARNING = re.compile(r"NCCL WARN|^\s*\d*\w*\s*Warning\s+\w+\s|\bWarning\s{2,}|level=warn", re.IGNORECASE)
"""NCCL has no higher level, an event of Kubernetes none above Warning."""
_TRIED_AGAIN = re.compile(r"\b(retrying|will retry|attempt \d+ ?(/|of) ?\d+)\b", re.IGNORECASE)
"""What is tried again counts when nothing else is said."""
_RAISES = re.compile(r"(\w+\.)*(Runtime|Value|Type|Key|Index|Attribute|Assertion)Error: ")
"""Whatever a launcher said on the same line comes after it."""
_REFUSED = re.compile(
    r"\b(401|403|404|410)\b|(HTTP Error |status( code)?:? )4(0[0-7]|1\d|2[1-46]|31|51)\b|\bforbidden\b"
    r"|unauthori[sz]ed|access denied|gated",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(408|429|50[0234])\b|tim(ed?|ing) ?-?out|temporar|connection (reset|refused|aborted)|\bEOF\b|no such host"
    r"|too many requests",
    re.IGNORECASE,
)
_EASILY_TAKEN = (Cause.GPU_OOM, Cause.COLLECTIVE_MISMATCH)
"""A hint of these may be the host's memory or a peer that went, and stops no run."""
_OURS = re.compile(r"^argosy: ([a-z0-9_]+)[: ]")
_ENDED = re.compile(r"; stop: .* \(exit code (\d+)\)$")
_CAUSES = {str(cause) for cause in Cause}


@dataclass(frozen=True)
class Evidence:
    """A cause, the line it rests on, and how much it is worth."""

    cause: Cause
    quote: str
    weight: Weight
    code: ExitCode

    @classmethod
    def of(cls, pattern: Pattern, line: str) -> Evidence:
        """What a line says that matched."""
        code = pattern.cause.exit_code if pattern.code is None else pattern.code
        return cls(pattern.cause, line.strip()[:MAX_QUOTE], pattern.weight, code)


def match_line(line: str) -> Evidence | None:
    """What one line, without prefixes, speaks for; None for nothing or a benign one."""
    ours = _OURS.match(line)
    if ours and ours.group(1) in _CAUSES:
        cause, ended = Cause(ours.group(1)), _ENDED.search(line)
        code = ExitCode(int(ended[1])) if ended and int(ended[1]) in set(ExitCode) else cause.exit_code
        return Evidence(cause, line[:MAX_QUOTE], cause.weight, code)
    if not line or is_benign(line):
        return None
    raises = _RAISES.match(line)
    matching = (pattern for pattern in PATTERNS if not (raises and pattern.weight == Weight.SUMMARY))
    evidence = next((Evidence.of(pattern, line) for pattern in matching if pattern.matches(line)), None)
    if evidence is not None and _TRIED_AGAIN.search(line):
        return replace(evidence, weight=min(evidence.weight, Weight.CASCADE))
    return evidence


def is_benign(line: str) -> bool:
    """Whether scripts say this on their way, or say that something did not happen."""
    return _BENIGN.search(line) is not None


def topic_of(line: str) -> Cause | None:
    """The cause whose kind of trouble the line is about; None for none."""
    return next((topic.cause for words in own_words(line) for topic in TOPICS if topic.matches(words)), None)


def code_of(cause: Cause, line: str) -> ExitCode:
    """The exit code of a cause that no rule named: a hub or a registry that refuses does so again, one in trouble not.

    A status of HTTP tells them apart, whatever the other words (https://www.rfc-editor.org/rfc/rfc9110#section-15).
    """
    refused, passing = _REFUSED.search(line) is not None, _PASSING.search(line) is not None
    if cause == Cause.HUB_NETWORK and refused and not passing:
        return ExitCode.CONFIGURATION
    if cause == Cause.IMAGE_PULL and passing and not refused:
        return ExitCode.TRANSIENT
    return cause.exit_code


def guessed_code(cause: Cause, line: str) -> ExitCode:
    """The exit code of a cause that is no more than likely."""
    return ExitCode.TRANSIENT if cause in _EASILY_TAKEN else code_of(cause, line)


def hint_of(line: str) -> Evidence | None:
    """What a line is about that no rule knows; nothing for quoted code and what is too long for a message."""
    if not line or len(line) > _LONGEST_HINT or is_benign(line) or _NO_TROUBLE.search(line):
        return None
    cause = topic_of(line)
    if cause is None:
        return None
    return Evidence(cause, line.strip()[:MAX_QUOTE], Weight.HINT, guessed_code(cause, line))


def doubted(evidence: Evidence, raw: str) -> Evidence:
    """A program that only warned went on: what its warning says counts when nothing else does."""
    if evidence.weight not in (Weight.ROOT, Weight.GENERIC) or not is_warning(raw):
        return evidence
    return replace(evidence, weight=Weight.CASCADE)


def is_warning(line: str) -> bool:
    """Whether a logger put the line at the level of warnings."""
    return _WARNING.search(line[:200]) is not None and _TOLD_AS_WARNING.search(line) is None
