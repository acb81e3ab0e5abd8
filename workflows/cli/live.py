"""Watch a run while the engine works: a panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.record.building import prefix_of
from argosy.steps.record.naming import node_line, node_name
from argosy.steps.record.reading import moment
from argosy.steps.record.tally import Tally
from argosy.steps.record.wording import count, duration, size
from argosy.steps.runlog import Event
from argosy.steps.store.base import UNSERVED, ObjectStore
from argosy.steps.store.leaving import LeavableStore
from argosy.workflows.cli.follower import EventFollower
from argosy.workflows.cli.logs import RankLines
from argosy.workflows.cli.output import harmless
from argosy.workflows.cli.store_away import StoreAway
from argosy.workflows.cli.unwritten import UnwrittenWatch

if TYPE_CHECKING:
    from rich.console import RenderableType

POLL_SECONDS = 0.4
PLAIN_PROGRESS_SECONDS = 5.0
FULL_BYTES = 1 << 20
"""Of a disk with less left nearly every write fails."""
SIGNS = {"Succeeded": "✓", "Running": "●", "Failed": "✗", "Error": "✗"}


class Watched(Protocol):
    """A run of this machine or of a cluster."""

    def state(self) -> dict[str, Any]:
        """What its engine knows now."""

    def store(self, *, quiet: bool = False) -> ObjectStore | None:
        """Where its event log is."""

    def disks(self) -> tuple[Path, ...]:
        """Folders of this machine that it is written to."""


class Screen(Protocol):
    """Where the watched run is shown."""

    def line(self, text: str) -> None:
        """Something happened."""

    def refresh(self, tally: Tally, state: dict[str, Any]) -> None:
        """The figures have changed; called several times a second."""

    def close(self) -> None:
        """Nothing comes any more."""


class PlainScreen:
    """Lines with the seconds since the start; progress each few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._began = stream, time.monotonic()
        self._told, self._step = self._began, -1

    def line(self, text: str) -> None:
        """Print it."""
        print(f"[{time.monotonic() - self._began:7.1f} s] {text}", file=self._stream, flush=True)

    def refresh(self, tally: Tally, state: dict[str, Any]) -> None:
        """Print the progress, when there is news and the last was a while ago."""
        now = time.monotonic()
        if tally.running and tally.step != self._step and now - self._told >= PLAIN_PROGRESS_SECONDS:
            self._told, self._step = now, tally.step
            self.line(tally.progress())

    def close(self) -> None:
        """Nothing to undo."""


class RichScreen:
    """Lines scroll by above a panel with the pipeline, the progress bar and the newest checkpoint."""

    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title, self._began = title, time.monotonic()
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._live.start()

    def line(self, text: str) -> None:
        """Print it above the panel."""
        from rich.table import Table
        from rich.text import Text

        bad = "ended at step" in text or ": failed" in text or ": error" in text
        style = "red" if bad else "green" if text.startswith("promoted") else "dim" if text.startswith("step ") else ""
        row = Table.grid(padding=(0, 2, 0, 0))  # a long line goes on below itself, not below the time
        row.add_row(f"{time.monotonic() - self._began:7.1f} s", Text(text.replace("\n    ", "\n"), style=style))
        self._console.print(row)

    def refresh(self, tally: Tally, state: dict[str, Any]) -> None:
        """Draw the panel again."""
        self._live.update(_panel(self._title, time.monotonic() - self._began, tally, state))

    def close(self) -> None:
        """Take the panel away; the lines stay."""
        self._live.stop()


def _panel(name: str, seconds: float, tally: Tally, state: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    rows: list[RenderableType] = [_pipeline(state)]
    for node, (done, total) in sorted(tally.staging.items())[:8]:
        rows.append(Text(f"data to {node}: {size(done)} of {size(total)}", style="magenta"))
    if tally.step or tally.attempts:
        if tally.end_step:
            bar = Table.grid(expand=True)  # by itself a bar does not end its line
            bar.add_row(ProgressBar(total=tally.end_step, completed=min(tally.step, tally.end_step)))
            rows.append(bar)
        rows.append(Text(tally.progress() if tally.running else tally.waiting(), style="bold"))
        attempts = f"attempt {tally.attempts}" + (f", {tally.failures} failed before" if tally.failures else "")
        rows.append(Text(f"{attempts}; checkpoint {tally.checkpoint or 'none yet'}", style="dim"))
    return Panel(Group(*rows), title=Text(name), subtitle=duration(seconds), title_align="left", subtitle_align="right")


def _pipeline(state: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    styles = {"Succeeded": "green", "Running": "bold cyan", "Failed": "red", "Error": "red"}
    row = Text()
    nodes = state.get("nodes")
    for node in nodes if isinstance(nodes, list) else []:
        if isinstance(node, dict) and node.get("type") == "Pod":
            phase = str(node.get("phase"))
            row.append(f"{SIGNS.get(phase, '·')} {node_name(node)}  ", style=styles.get(phase, "dim"))
    return row if row.plain else Text("starting", style="dim")


class Watch:
    """A thread that reads the run's state and events and tells a screen; a context manager around the engine."""

    def __init__(
        self,
        screen: Screen,
        since: float = 0.0,
        poll_seconds: float = POLL_SECONDS,
        written: RankLines | None = None,
    ) -> None:
        """``since``: what happened before (seconds since 1970) is not told again, when an interrupted run goes on.

        ``written``: what its ranks write is shown, too.
        """
        self._written = written
        self._screen, self._poll_seconds = screen, poll_seconds
        self._tally, self._ended_nodes = Tally(), set[str]()
        self._since, self._past = since, False
        self._run: Watched | None = None
        self.seen: dict[str, Any] = {}  # the state, as it was at the last look
        self._follower: EventFollower | None = None
        self._stopping, self._saying_stop = False, threading.Lock()
        self._leaving = threading.Event()
        self._away = False
        """Whether the store did not answer: then the end does not wait for it once more."""
        self._store_away, self._unwritten = StoreAway(screen.line), UnwrittenWatch(screen.line)
        self._disks, self._full = tuple[Path, ...](), set[int]()
        """Folders that are looked at; devices that were told to be full."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="watch", daemon=True)

    def found(self, run: Watched, state: dict[str, Any] | None = None) -> None:
        """There is something to watch now; ``state``: its engine's. One that stops waits for no store."""
        self._run = self._run or run
        if state is not None:
            self._tell_stop(state)
            if self._stopping or state.get("interrupted"):
                self._leaving.set()

    @property
    def is_store_away(self) -> bool:
        """Whether it did not answer at last."""
        return self._store_away.since > 0

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, left: object, *_: object) -> None:
        if left is not None:  # by Ctrl-C, mostly: who leaves waits for no store
            self._leaving.set()
        self._over.set()
        self._thread.join()
        try:
            self._guarded(self._look)
        finally:
            self._screen.close()

    def _loop(self) -> None:
        while not self._over.wait(self._poll_seconds):
            self._guarded(self._look)

    def _guarded(self, look: Callable[[], None]) -> None:
        """A store that does not answer must not end the run that is being watched."""
        with suppress(StepError, InputError, OSError):
            look()

    def _look(self) -> None:
        if self._run is None:
            return
        state = self.seen = self._run.state()
        self._tell_stop(state)
        self._guarded(self._tell_full)
        if not (self._away and self._over.is_set()):
            self._away = True
            self._guarded(lambda: self._hear(state))
        self._unwritten.look(state, away=self.is_store_away)
        for line in self._written.new(self._run) if self._written is not None else ():
            self._screen.line(harmless(line))
        nodes = state.get("nodes")
        for node in nodes if isinstance(nodes, list) else []:
            self._tell_node(node)
        self._screen.refresh(self._tally, state)

    def _tell_stop(self, state: dict[str, Any]) -> None:
        # Only an engine that ends its pods says anything of a run that has not ended.
        message = str(state.get("message") or "")
        if message and state.get("phase") == "Running" and not state.get("interrupted"):
            with self._saying_stop:  # the engine's thread comes here, and ours
                if not self._stopping:
                    self._stopping = True
                    self._screen.line(message)

    def _tell_full(self) -> None:
        # Neither the event log nor a pod's own log could say it: they lie there too.
        for folder in self._disks:
            disk, device = os.statvfs(folder), folder.stat().st_dev
            left = disk.f_bavail * disk.f_frsize
            if left >= FULL_BYTES:
                self._full.discard(device)
            elif device not in self._full:
                self._full.add(device)
                self._screen.line(
                    f"warning: the disk of {folder} is full ({size(left)} left): what happens cannot be written there, "
                    "and the run will end; free some"
                )

    def _hear(self, state: dict[str, Any]) -> None:
        """The event log, or that its store does not answer."""
        began = time.monotonic()
        try:
            self._tell_events(state)
        except StepError as error:
            if error.cause in UNSERVED:
                self._store_away.lost(began)
            raise
        self._store_away.back()

    def _tell_events(self, state: dict[str, Any]) -> None:
        if self._run is not None and self._follower is None and (prefix := prefix_of(state)):
            store = self._run.store(quiet=True)  # we say it in words of our own
            self._follower = EventFollower(LeavableStore(store, self._leaving), prefix) if store is not None else None
            self._disks = self._run.disks()
            self._since = max(self._since, moment(state, "taken_up") or 0.0)
        for event in self._follower.new() if self._follower is not None else ():
            self._tell(event)
        self._away = False

    def _tell(self, event: Event) -> None:
        """What an earlier engine saw of an interrupted run counts, but it does not happen again."""
        if event.time < self._since:
            self._tally.absorb(event)
            self._past = True
            return
        if self._past:
            self._past = False
            attempts = count(self._tally.attempts, "attempt")
            self._screen.line(f"so far: {attempts}, checkpoint {self._tally.checkpoint or 'none yet'}")
        if line := self._tally.absorb(event):
            self._screen.line(harmless(line))

    def _tell_node(self, node: dict[str, Any]) -> None:
        why = str(node.get("message") or "") if node.get("phase") == "Pending" else ""
        pulls = why.startswith(("ErrImagePull", "ImagePullBackOff"))  # these alternate, and each names another port
        identity = f"{node.get('id')} {node.get('phase')} {'' if pulls else why}"
        if identity not in self._ended_nodes and (line := node_line(node)):
            self._ended_nodes.add(identity)
            if (moment(node, "finishedAt") or self._since) >= self._since:
                self._screen.line(harmless(line))
