"""The lines of a log of any size that a verdict could rest on, in bounded memory."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.filter import hits

CHUNK_BYTES = 8 << 20
HEAD_LINES = 2000
"""What failed first is among the first lines that say anything; how it ended is among the last."""
TAIL_LINES = 2000
MAX_LINE_BYTES = 4096
_SPAN_BYTES = 16 << 10
"""Above it each line is cut before it is kept."""
_SCANNERS = 2
_BEFORE, _AFTER, _AFTER_TRACEBACK = 3, 10, 80
_HITS_A_CHUNK = 400
"""A chunk in which every line is an error is read in its beginning and its end."""
_END_BYTES = 64 << 10
_ENDING = 40


def excerpt(source: IO[bytes], file: str, report: Callable[[int], None] = lambda _: None) -> list[Line]:
    """Lines around everything that a rule might match, the first and the last ones; ``report`` gets bytes read."""
    head: list[_Span] = []
    tail: deque[_Span] = deque()
    heads = tails = 0
    first, last = 1, b""
    for chunk, scan in _scanned(_chunks(source, report)):
        for span in _spans_of(chunk, first, scan):
            if heads < HEAD_LINES:
                head.append(span)
                heads += span.count
                continue
            tail.append(span)
            tails += span.count
            while tails - tail[0].count >= TAIL_LINES:
                tails -= tail.popleft().count
        first, last = first + scan.count, (last + chunk if len(chunk) < _END_BYTES else chunk)[-_END_BYTES:]
    found = [line for span in (*head, *tail) for line in span.lines(file)]
    found.extend(_end_of(last, file, first, found[-1].number if found else 0))
    return [*found[:HEAD_LINES], *found[HEAD_LINES:][-TAIL_LINES:]]


def _end_of(chunk: bytes, file: str, next_number: int, known: int) -> Iterator[Line]:
    """The last lines of a file, whatever they say: how it ended."""
    begin = _line_back(chunk, len(chunk) - 1, _ENDING - 1) if chunk else 0
    number = next_number - chunk.count(b"\n", begin)
    for offset, raw in enumerate(chunk[begin:].split(b"\n")):
        if raw and number + offset > known:
            yield Line(file, number + offset, _text(raw))


@dataclass(frozen=True)
class _Span:
    """Whole lines of a log, the first with this ``number``; most of a large log's are pushed out by later ones.

    ``count``: of them that are not empty. ``loud``: where in them begin those that a rule may match; None: not known.
    """

    number: int
    data: bytes
    count: int
    loud: frozenset[int] | None

    def lines(self, file: str) -> Iterator[Line]:
        at = 0
        for offset, raw in enumerate(self.data.split(b"\n")):
            if raw:
                silent = self.loud is not None and at not in self.loud and _is_itself(raw)
                yield Line(file, self.number + offset, _text(raw), silent)
            at += len(raw) + 1


@dataclass(frozen=True)
class _Scan:
    """What rules may be about in a chunk.

    ``marks``: begin, end and lines after that belong to it, of each match. ``loud``: where the lines of matches begin,
    in order. ``unread``: from where to where nobody looked.
    """

    marks: list[tuple[int, int, int]]
    loud: list[int]
    unread: range
    count: int


def _scan(chunk: bytes) -> _Scan:
    search, marks, loud, unread = hits().search, [], list[int](), range(0)
    match = search(chunk)
    while match is not None:
        begin, end = match.start(), match.end()
        marks.append((begin, end, _AFTER_TRACEBACK if b"raceback" in match.group() else _AFTER))
        at, position = _line_back(chunk, begin, 0), _line_forward(chunk, max(end - 1, begin), 0)
        while at < position:
            loud.append(at)
            at = _line_forward(chunk, at, 0)
        if len(marks) == _HITS_A_CHUNK:
            unread = range(position, max(position, len(chunk) - _END_BYTES))
            position = unread.stop
        match = search(chunk, max(position, begin + 1))
    return _Scan(marks, loud, unread, chunk.count(b"\n"))


def _scanned(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, _Scan]]:
    """Each chunk with what is in it; RE2 works without the interpreter's lock."""
    waiting: deque[Future[tuple[bytes, _Scan]]] = deque()
    with ThreadPoolExecutor(_SCANNERS) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(lambda chunk: (chunk, _scan(chunk)), chunk))
            if len(waiting) > _SCANNERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _chunks(source: IO[bytes], report: Callable[[int], None]) -> Iterator[bytes]:
    rest = b""
    while data := source.read(CHUNK_BYTES):
        report(len(data))
        data = rest + data
        cut = data.rfind(b"\n") + 1
        if not cut and len(data) < 4 * CHUNK_BYTES:
            rest = data
            continue
        cut = cut or len(data)
        rest = data[cut:]
        yield data[:cut]
    if rest:
        yield rest


def _spans_of(chunk: bytes, first: int, scan: _Scan) -> Iterator[_Span]:
    """The lines of a chunk near matches; its first line has the number ``first``."""
    counted, number, done = 0, first, 0
    for at, to, after in scan.marks:
        begin = max(done, _line_back(chunk, at, _BEFORE))
        end = _line_forward(chunk, max(to, at + 1), after)
        if end <= begin:
            continue
        number += chunk.count(b"\n", counted, begin)
        counted = begin
        loud = scan.loud[bisect_left(scan.loud, begin) : bisect_left(scan.loud, end)]
        known = end <= scan.unread.start or begin >= scan.unread.stop
        offsets = frozenset(each - begin for each in loud) if known else None
        data = chunk[begin:end]
        raws = data.split(b"\n")
        if len(data) > _SPAN_BYTES:
            data, offsets = b"\n".join(map(_cut, raws)), None
        yield _Span(number, data, sum(map(bool, raws)), offsets)
        done = end


def _is_itself(raw: bytes) -> bool:
    """Whether rules see the very bytes that were searched: no return, box or blank at the end, nothing quoted."""
    return raw.isascii() and raw[-1:] not in b" \t|" and b"\r" not in raw and not raw.startswith(b'{"log":')


def _line_back(chunk: bytes, position: int, lines: int) -> int:
    for _ in range(lines + 1):
        position = chunk.rfind(b"\n", 0, position)
        if position < 0:
            return 0
    return position + 1


def _line_forward(chunk: bytes, position: int, lines: int) -> int:
    for _ in range(lines + 1):
        position = chunk.find(b"\n", position) + 1
        if not position:
            return len(chunk)
    return position


def _cut(raw: bytes) -> bytes:
    """What stood in a line in the end, if a progress bar rewrote it, or behind the hole where its file was emptied."""
    raw = raw.rstrip(b"\r").lstrip(b"\0")
    return raw[raw.rfind(b"\r") + 1 :][:MAX_LINE_BYTES]


def _text(raw: bytes) -> str:
    line = _cut(raw).decode("utf-8", "replace")
    if line.startswith('{"log":'):  # Docker's file of a container
        with suppress(ValueError, KeyError):
            line = str(json.loads(line)["log"]).rstrip("\n")
    return line
