"""The writer of one rank: ``python -m argosy.steps.checkpointer SOCKET ARENA PARENT``.

A process of its own, without torch, so that hashing and sending never hold the script's interpreter. It gets the
arena (shared memory with the rank's files) and one end of a socket pair to the script. SIGTERM, which reaches every
process of a pod, it ignores: it ends with its script, after what is under way.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from argosy.steps import progress
from argosy.steps.checkpoint.manifest import ShardFile, save_name
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer.arena import Arena
from argosy.steps.checkpointer.coordinator import failure_of
from argosy.steps.checkpointer.gang import WriterGang, WriterPlace
from argosy.steps.checkpointer.lines import Lines, Payload, Record
from argosy.steps.checkpointer.loop import Loop
from argosy.steps.store.opening import SAVE_SECONDS, open_store

LINGER_SECONDS = 10.0
"""How long a save whose bytes are complete may still be stored and committed after its script has gone."""
UPLOADS = 3
"""Files of one rank that are stored at the same time."""
_NICE = 5
_LOOK_SECONDS = 0.05


@dataclass
class _Share:
    """What this rank stores of one save."""

    number: int
    name: str
    facts: Record
    files: list[ShardFile] = field(default_factory=list)
    placed: dict[str, int] = field(default_factory=dict)
    """Path -> where the file begins in the arena, which holds it until the next save."""
    todo: int = 0
    failed: bool = False


class Background:
    """Runs in a process of its own, or in a thread of the script's (``asynchronous=False``)."""

    def __init__(self, script: socket.socket, arena: Arena, store: CheckpointStore | None = None) -> None:
        """``store``: in the script's process, the one it uses."""
        self._script = Lines(script)
        self._arena = arena
        self._store = store
        self._loop = Loop()
        self._gang: WriterGang | None = None
        self._place: WriterPlace | None = None
        self._share: _Share | None = None
        self._pending: set[int] = set()
        """Saves of this rank whose outcome is not known."""
        self._name = ""
        """Of the last of them."""
        self._tensors = b""
        self._closing = False
        self._said_ended = False

    def run(self, parent: int = 0) -> None:
        """Until the script has gone; ``parent``: its pid, where this is another process."""
        self._loop.watch(self._script, self._on_script, self._script_ended)
        if parent:
            self._watch_parent(parent)
        try:
            self._loop.run()
        finally:
            self._loop.close()
            self._script.close()  # or a script waits for a thread of its own that is no more

    def _watch_parent(self, parent: int) -> None:
        # A child that the script forked (a loader's worker) holds the socket open and may outlive it.
        try:
            handle = os.pidfd_open(parent)
        except OSError:
            return self._script_ended()

        def ended() -> None:
            self._loop.forget(handle)
            self._script_ended()

        if os.getppid() == parent:
            self._loop.watch_handle(handle, ended)
        else:
            self._script_ended()

    # ---- what the script says

    def _on_script(self, record: Record, payload: Payload) -> None:
        match record["do"]:
            case "start":
                self._start(record)
            case "map":
                self._arena.follow()
                self._loop.work("map", 1, self._arena.fault_in, self._mapped)
            case "describe":
                self._tensors = payload[0]
            case "save":
                self._save(record, payload)
            case "refuse":
                self._refuse(record["number"], record["failure"])
            case "bye":
                self._script_ended()

    def _start(self, record: Record) -> None:
        self._place = WriterPlace.from_record(record["place"])
        if self._store is None:
            self._store = CheckpointStore(open_store(record["uri"], retry_seconds=SAVE_SECONDS), "")
        try:
            self._gang = WriterGang(
                self._loop,
                self._place,
                self._store,
                deliver=self._outcome,
                noted_step=self._arena.noted_step,
            )
        except OSError as error:
            return self._tell({"is": "ready", "failure": failure_of(error)})
        address = self._gang.address

        def joined(error: BaseException | None) -> None:
            told = {"failure": failure_of(error)} if error is not None else {"address": address}
            self._tell({"is": "ready", **told})

        self._gang.join(joined)

    def _mapped(self, _nothing: Any, error: BaseException | None) -> None:
        self._tell({"is": "mapped", **({"failure": failure_of(error)} if error is not None else {})})

    def _tell(self, record: Record) -> None:
        self._script.try_send(record)

    # ---- a save

    def _save(self, record: Record, payload: Payload) -> None:
        assert self._place is not None
        assert self._gang is not None
        number = int(record["number"])
        self._pending.add(number)
        if self._share is None or self._share.number != number:
            name = save_name(record["step"], record["generation"], record["nonce"])
            self._share, self._name = _Share(number, name, record), name
            progress.kept(self._arena.handle, name, ())
            if self._gang.commits is not None:
                self._gang.commits.began[number] = record["began"]
                self._gang.commits.step_seconds = record["step_seconds"]
        share = self._share
        share.facts = record
        sources = [(path, self._arena.view(start, size)) for path, start, size in record["files"]]
        share.placed = {path: start for path, start, _ in record["files"]}
        extras = dict(zip(record["extras"], payload, strict=True))
        if record["describes"]:
            # The tree is this save's, what the tensors are has been told once: it does not change from save to save.
            extras[record["describes"]] += self._tensors + b"}"
        sources += [(path, memoryview(data)) for path, data in extras.items()]
        share.todo = len(sources)
        for path, data in sources:
            self._upload(share, path, data)
        if not sources:
            self._stored(share)

    def _upload(self, share: _Share, path: str, data: memoryview) -> None:
        assert self._store is not None
        assert self._place is not None
        part = self._store.part(share.name, self._place.rank)

        def done(file: ShardFile | None, error: BaseException | None) -> None:
            share.todo -= 1
            if error is not None and not share.failed:
                share.failed = True
                self._refuse(share.number, failure_of(error))
            if file is not None:
                share.files.append(file)
            if share.todo == 0 and not share.failed:
                self._stored(share)

        self._loop.work("upload", UPLOADS, lambda: part.add_file(path, data), done)

    def _stored(self, share: _Share) -> None:
        assert self._place is not None
        assert self._gang is not None
        self._tell({"is": "stored", "number": share.number})
        if not share.facts["last"]:
            return
        self._share = None
        files = sorted(share.files, key=lambda file: file.path)
        placed = [(file.sha256, share.placed[file.path], file.size) for file in files if file.path in share.placed]
        if placed:
            progress.kept(self._arena.handle, share.name, placed)
        self._gang.report(
            {
                "is": "stored",
                "number": share.number,
                "rank": self._place.rank,
                "name": share.name,
                "step": share.facts["step"],
                "final": share.facts["final"],
                "fingerprint": share.facts["fingerprint"],
                "stall": share.facts["stall"],
                "files": [asdict(file) for file in files],
            }
        )

    def _refuse(self, number: int, reason: Record) -> None:
        assert self._place is not None
        assert self._gang is not None
        self._pending.add(number)
        self._gang.report({"is": "refused", "number": number, "rank": self._place.rank, "failure": reason})

    def _outcome(self, record: Record) -> None:
        if "failure" in record:
            self._pending.clear()
        else:
            self._pending.discard(int(record["number"]))
            progress.durable(self._name)
        self._tell(record)

    # ---- the end

    def _script_ended(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._loop.later(LINGER_SECONDS, self._leave)
        self._look()

    def _look(self) -> None:
        self._say_that_it_ended()
        waiting = self._gang is not None and self._gang.busy
        if self._pending or waiting or self._loop.working:
            self._loop.later(_LOOK_SECONDS, self._look)
        else:
            self._leave()

    def _say_that_it_ended(self) -> None:
        # Nothing of this rank will come any more: a save that the others have stored need not wait for it. Others
        # see it by the connection that ends, but rank 0's writer would wait for itself.
        if self._gang is not None and self._place is not None and self._share is None and not self._said_ended:
            self._said_ended = True
            self._gang.report({"is": "left", "ranks": [self._place.rank], "why": "its script ended"})

    def _leave(self) -> None:
        if self._gang is not None:
            self._gang.leave()
        self._loop.stop()


def main() -> None:
    """The process."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, ValueError):
        # The coordinator of 10,000 ranks holds a connection per node; the usual soft limit is 1,024.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(OSError):
        os.nice(_NICE)  # the script's loaders come first
    handle, arena, parent = map(int, sys.argv[1:4])
    Background(socket.socket(fileno=handle), Arena(arena)).run(parent)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # an upload that hangs must not keep the process
