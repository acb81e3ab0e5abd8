"""What a line says of itself: without its record's other fields, its guesses at causes, and its advice."""

from __future__ import annotations

import json
import re

_LONGEST = 2000
"""What went wrong stands in a message's beginning; what follows may be megabytes of an array."""
_NEXT_RECORD = re.compile(r"(?<=\S) [IWEF]\d{4} \d\d:\d\d:\d\d\.")
"""Where the newline between two records was lost."""
_LOGFMT = re.compile(r'\blevel="?\w+"? .*?\bmsg="((?:[^"\\]|\\.)*)"')
_LOGFMT_ERROR = re.compile(r'\berr(?:or)?="?((?:[^"\\]|\\.)*)')
_MESSAGES = ("message", "msg", "error", "err", "reason")
"""The fields of a JSON record that a person wrote; the others are names and places."""
_PLACES = re.compile(r'"file": ?"[^"]*"|\[?source locations=\S*|/job:\w+(/replica:\d+)?/task:\d+')
"""Where in a program something was said: its files are named after what they do, not after what went wrong."""
_COMMANDS = re.compile(r"(?i)\bcommand:? .*(?= (failed|returned|died|exited|timed out)\b)")
"""What was called is not what was said."""
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")
_MAYBE = re.compile(
    r"\b(may|might|can|could|usually|often|likely|possibly|probably|perhaps|in (many|most|some) cases)\b", re.IGNORECASE
)
_CAUSED = re.compile(r"\b(due to|caused by|because( of)?|happen\w*|occur\w*|results? from)\b", re.IGNORECASE)
_ADVICE = re.compile(r"(please|try|consider|make sure|if (this|the|you)|to (fix|avoid)|for more|see)\b", re.IGNORECASE)


def own_words(line: str) -> tuple[str, ...]:
    """What a line says happened, then the same with its advice, which often names the trouble where nothing else does.

    Never what it only takes for possible, unless nothing else would be left.
    """
    line = _NEXT_RECORD.split(line, 1)[0]
    said = _COMMANDS.sub("command", _PLACES.sub("", _message(line))[:_LONGEST])
    sentences = [sentence for sentence in map(_certain, _SENTENCE.split(said)) if sentence]
    if not any(character.isalpha() for sentence in sentences for character in sentence):
        return (line[:_LONGEST],)
    own = " ".join(sentence for sentence in sentences if not _ADVICE.match(sentence))
    return tuple(dict.fromkeys((own, " ".join(sentences))))


def _certain(sentence: str) -> str:
    """A sentence up to where it begins to guess at causes."""
    maybe = _MAYBE.search(sentence)
    if maybe is None or _CAUSED.search(sentence, maybe.end()) is None:
        return sentence
    begin = max(sentence.rfind(mark, 0, maybe.start()) for mark in ":(")
    return sentence[: begin + 1]


def _message(line: str) -> str:
    """What a person wrote of a structured record; the line itself where it is none."""
    line = line.replace('\\"', '"') if 'msg=\\"' in line else line  # a record within one of JSON
    if fields := _LOGFMT.search(line):
        error = _LOGFMT_ERROR.search(line)
        return f"{fields.group(1)} {error.group(1)}" if error else fields.group(1)
    if not line.startswith("{") or not line.endswith("}"):
        return line
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    said = [str(record[name]) for name in _MESSAGES if record.get(name)] if isinstance(record, dict) else []
    return " ".join(said) or line
