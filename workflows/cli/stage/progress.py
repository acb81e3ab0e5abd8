"""How far a staging is: a bar in a terminal, a line each few seconds elsewhere; always on standard error."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from argosy.steps.data.staging import StageProgress
from argosy.steps.record.wording import count, duration, percent, size

PLAIN_SECONDS = 5.0
_SETTLED_SECONDS = 1.0
"""A rate over less time than this is a guess."""

Tell = Callable[[StageProgress], None]


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Tell]:
    """Give a function that shows what it is told."""
    if quiet:
        yield lambda now: None
    elif sys.stderr.isatty():
        with _bar() as tell:
            yield tell
    else:
        yield PlainLines().tell


@contextlib.contextmanager
def listing(*, quiet: bool) -> Iterator[Callable[[int], None] | None]:
    """Give a function that shows how many objects were listed so far; on a terminal only."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("listing") as status:
        yield lambda seen: status.update(f"listing: {count(seen, 'object')}")


class PlainLines:
    """For logs: at most one line in :data:`PLAIN_SECONDS`."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._rate = Rate()

    def tell(self, now: StageProgress) -> None:
        """Print it, if the last line was long ago."""
        self._rate.add(now)
        if time.monotonic() - self._told >= PLAIN_SECONDS:
            self._told = time.monotonic()
            print(f"argosy: {text(now, self._rate)}", file=sys.stderr, flush=True)


class Rate:
    """Bytes per second since the first that came; what lay there already was not moved."""

    def __init__(self) -> None:
        self._first: StageProgress | None = None
        self.bytes_per_second = 0.0

    def add(self, now: StageProgress) -> None:
        """Take the next word in."""
        if self._first is None and now.fetched_bytes:
            self._first = now
        if self._first is not None and (seconds := now.seconds - self._first.seconds) >= _SETTLED_SECONDS:
            self.bytes_per_second = (now.fetched_bytes - self._first.fetched_bytes) / seconds

    def seconds_left(self, now: StageProgress) -> float | None:
        """None while it cannot be known."""
        return (now.bytes_total - now.bytes) / self.bytes_per_second if self.bytes_per_second > 0 else None


def text(now: StageProgress, rate: Rate) -> str:
    """``41.2% 1.2 GiB of 3.0 GiB, 12 000 of 40 000 objects, 210.0 MiB/s, 9.0 s left``."""
    done = percent(now.bytes / now.bytes_total if now.bytes_total else now.objects / max(now.objects_total, 1))
    parts = [f"{done} {size(now.bytes)} of {size(now.bytes_total)}"]
    parts.append(f"{_grouped(now.objects)} of {count(now.objects_total, 'object')}")
    left = rate.seconds_left(now)
    if left is not None:
        parts += [f"{size(rate.bytes_per_second)}/s", f"{duration(left)} left"]
    return ", ".join(parts)


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


@contextlib.contextmanager
def _bar() -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        BarColumn(),
        DownloadColumn(binary_units=True),
        TextColumn("{task.fields[objects]}"),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=5) as shown:
        task = shown.add_task("", total=None, objects="")

        def tell(now: StageProgress) -> None:
            objects = f"{_grouped(now.objects)}/{count(now.objects_total, 'object')}"
            shown.update(task, total=now.bytes_total, completed=now.bytes, objects=objects)

        yield tell
