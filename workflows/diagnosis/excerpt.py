"""The lines of a log of any size that a verdict could rest on, in bounded memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.filter import hits

CHUNK_BYTES = 8 << 20
HEAD_LINES = 2000
"""What failed first is among the first lines that say anything; how it ended is among the last."""
TAIL_LINES = 2000
MAX_LINE_BYTES = 4096
_SCANNERS = 2
_BEFORE, _AFTER, _AFTER_TRACEBACK = 3, 10, 80
_HITS_A_CHUNK = 400
"""A chunk in which every line is an error is read in its beginning and its end."""
_END_BYTES = 64 << 10
_ENDING = 40


def excerpt(source: IO[bytes], file: str, report: Callable[[int], None] = lambda _: None) -> list[Line]:
    """Lines around everything that a rule might match, the first and the last ones; ``report`` gets bytes read."""
    head: list[Line] = []
    tail: deque[Line] = deque(maxlen=TAIL_LINES)
    first, last = 1, b""
    for chunk, hit, count in _scanned(_chunks(source, report)):
        for line in _lines_of(chunk, file, first, hit):
            if len(head) < HEAD_LINES:
                head.append(line)
            else:
                tail.append(line)
        first, last = first + count, (last + chunk if len(chunk) < _END_BYTES else chunk)[-_END_BYTES:]
    known = tail[-1].number if tail else head[-1].number if head else 0
    tail.extend(_end_of(last, file, first, known))
    return [*head, *tail]


def _end_of(chunk: bytes, file: str, next_number: int, known: int) -> Iterator[Line]:
    """The last lines of a file, whatever they say: how it ended."""
    begin = _line_back(chunk, len(chunk) - 1, _ENDING - 1) if chunk else 0
    number = next_number - chunk.count(b"\n", begin)
    for offset, raw in enumerate(chunk[begin:].split(b"\n")):
        if raw and number + offset > known:
            yield Line(file, number + offset, _text(raw))


def _scanned(chunks: Iterator[bytes]) -> Iterator[tuple[bytes, Any, int]]:
    """Each chunk with the first hit in it and the number of its lines; RE2 works without the interpreter's lock."""
    search = hits().search
    waiting: deque[Future[tuple[bytes, Any, int]]] = deque()
    with ThreadPoolExecutor(_SCANNERS) as pool:
        for chunk in chunks:
            waiting.append(pool.submit(lambda chunk: (chunk, search(chunk), chunk.count(b"\n")), chunk))
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


def _lines_of(chunk: bytes, file: str, first: int, hit: Any) -> Iterator[Line]:
    """The lines of a chunk near a hit, of which ``hit`` is the first; its first line has the number ``first``."""
    counted, number, done, found = 0, first, 0, 0
    search = hits().search
    match = hit
    while match is not None:
        found += 1
        begin = max(done, _line_back(chunk, match.start(), _BEFORE))
        after = _AFTER_TRACEBACK if b"raceback" in match.group() else _AFTER
        end = _line_forward(chunk, max(match.end(), match.start() + 1), after)
        if end > begin:
            number += chunk.count(b"\n", counted, begin)
            counted = begin
            for offset, raw in enumerate(chunk[begin:end].split(b"\n")[: None if end == len(chunk) else -1]):
                if raw:
                    yield Line(file, number + offset, _text(raw))
            done = end
        position = max(_line_forward(chunk, max(match.end() - 1, match.start()), 0), match.start() + 1)
        if found == _HITS_A_CHUNK:
            position = max(position, len(chunk) - _END_BYTES)
        match = search(chunk, position)


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


def _text(raw: bytes) -> str:
    line = raw[:MAX_LINE_BYTES].decode("utf-8", "replace").rstrip("\r")
    if "\r" in line:  # a progress bar rewrote its line: what stood there in the end
        line = line[line.rindex("\r") + 1 :]
    if line.startswith('{"log":'):  # Docker's file of a container
        with suppress(ValueError, KeyError):
            line = str(json.loads(line)["log"]).rstrip("\n")
    return line
