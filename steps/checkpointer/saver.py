"""The script's side of saving: a snapshot into the arena, then the writer has it and training goes on.

No collective in a save but the first, which introduces the writers to each other (``prepare`` does it early).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpoint.manifest import Saved
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.checkpointer import stopping
from argosy.steps.checkpointer.coordinator import failure
from argosy.steps.checkpointer.joining import Joined, Terms, join
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.room import Room
from argosy.steps.checkpointer.saving import Saving
from argosy.steps.checkpointer.snapshot import Snapshot
from argosy.steps.checkpointer.turn import Turn, in_turn
from argosy.steps.checkpointer.writer import Writer
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.state import random_generators
from argosy.steps.state.files import STATE_PATH, state_bytes
from argosy.steps.state.tree import encode

_ANSWER_SECONDS = 60.0
"""How much longer than all writers for each other a script waits for its own."""
_SLOW_SECONDS = 0.1
_NO_TENSORS = b'"tensors":{}}'


class Saver:
    """All saves of one Checkpointer on one rank; at most one is under way."""

    def __init__(
        self, store: CheckpointStore, terms: Terms, claimed: Callable[[], Claim], *, asynchronous: bool, save_rng: bool
    ) -> None:
        self.store = store
        self.turn = Turn()
        self._terms = terms
        self._claimed = claimed
        self._process = asynchronous
        self._save_rng = save_rng
        self._writer: Writer | None = None
        self._joined: Joined | None = None
        self._room: Room | None = None
        self._number = 0
        self._current: Saving | None = None
        self._outcomes: dict[int, dict[str, Any]] = {}
        self._last_failure: dict[str, Any] | None = None
        self._step = 0
        self._told = False
        """Whether the failure was told, by an exception (Stopped, or a state of this rank that could not be saved)."""
        self._told_slow = False
        self._mark: tuple[int, float] | None = None
        self._step_seconds = 0.0

    @property
    def rank(self) -> int:
        """This rank, once it has joined the others."""
        return self._joined.rank if self._joined else 0

    # ---- getting ready

    def start(self) -> Writer:
        """Have a writer started; it is not waited for. Not collective."""
        self.turn.check(closed=False)
        if self._writer is None:
            self._writer = Writer(self.store, self._outcomes, process=self._process)
            self._room = Room(self._writer, streaming=not self._process)
            stopping.at_exit(self.close)
        return self._writer

    @in_turn
    def prepare(self, state: Mapping[str, Any]) -> None:
        """Collective: writers that know each other, and an arena whose pages are in place."""
        self._join(lambda: self.make_room(state))
        self._await(lambda writer: "mapped" in writer.answers)

    def make_room(self, state: Mapping[str, Any]) -> None:
        """What can be done of ``prepare`` without the other ranks."""
        self.start()
        assert self._room is not None
        self._room.make(encode(state)[1])

    def _join(self, ready: Callable[[], None]) -> None:
        ranks = Ranks()
        writer = self.start()
        if self._joined is not None:
            return ready()
        self._joined = join(writer, ranks, self._terms, self._claimed, ready)

    # ---- saving

    @in_turn
    def save(self, step: int, state: Mapping[str, Any], *, final: bool) -> Saving:
        """Not collective, the first time excepted; raises as Checkpointer.save does."""
        self.start()
        if self._joined is None:
            self._join(lambda: None)
        self._settle(step)
        if step < self._step:
            raise InputError(f"step = {step}: step {self._step} is committed already; steps never go back")
        began = time.monotonic()
        self._number += 1
        try:
            self._hand_over(step, state, final, began)
        except StepError as error:
            self._stop_for(error)
        except BaseException as error:
            self._refuse(error)  # the others wait for this rank's share
            raise
        self._step, self._mark = step, None
        self._current = Saving(functools.partial(self._ask, self._number))
        return self._current

    def _hand_over(self, step: int, state: Mapping[str, Any], final: bool, began: float) -> None:
        assert self._writer is not None
        assert self._room is not None
        assert self._joined is not None
        tree, tensors, snapshot = self._room.fill(state)
        nonce = hashlib.sha256(f"{self._joined.token}:{self._number}".encode()).hexdigest()[:16]
        record: dict[str, Any] = {
            "do": "save", "number": self._number, "step": step, "final": final, "nonce": nonce,
            "generation": self._joined.generation, "fingerprint": snapshot.layout.fingerprint, "began": began,
            "step_seconds": self._step_seconds, "extras": [], "describes": "",
        }  # fmt: skip
        placed: list[list[Any]] = []
        if self._room.streaming:
            self._stream(snapshot, tensors, record)
        else:
            placed = [snapshot.head(number) for number in range(len(snapshot.layout.files))]
        extras, describes = self._extras(step, tree)  # while a GPU copies
        snapshot.settle()
        stall = time.monotonic() - began
        told = {"files": placed, "last": True, "extras": list(extras), "describes": describes, "stall": stall}
        self._writer.send({**record, **told}, list(extras.values()))

    def _stream(self, snapshot: Snapshot, tensors: Mapping[str, Any], record: dict[str, Any]) -> None:
        writer = self.start()
        for number in range(len(snapshot.layout.files)):
            placed = snapshot.head(number)
            for name, tensor in tensors.items():
                snapshot.copy(name, tensor, number)
            snapshot.settle()
            before = writer.stored
            writer.send({**record, "files": [placed], "last": False, "stall": 0.0})
            self._await(lambda writer, before=before: writer.stored > before or writer.failure is not None)  # type: ignore[misc]

    def _extras(self, step: int, tree: Any) -> tuple[dict[str, bytes], str]:
        """Small files of this save's own, by path; and which of them the description of the tensors belongs to."""
        assert self._joined is not None
        extras: dict[str, bytes] = {}
        if self._save_rng:
            extras[random_generators.random_path(self._joined.rank)] = random_generators.capture()
        if self._joined.rank != 0:
            return extras, ""
        whole = state_bytes(step, tree, {})
        assert whole.endswith(_NO_TENSORS)
        extras[STATE_PATH] = whole[: -len(_NO_TENSORS)] + b'"tensors":'
        return extras, STATE_PATH

    def _refuse(self, error: BaseException) -> None:
        assert self._writer is not None
        self._told = True
        said = f"rank {self.rank} could not save: {type(error).__name__}: {error}"[:500]
        with contextlib.suppress(RuntimeError):  # of a device that failed, which is what is told
            if self._room is not None:
                self._room.settle()  # copies that had begun must not outlive the arena
        with contextlib.suppress(StepError):
            self._writer.send({"do": "refuse", "number": self._number, "failure": failure(Cause.USER_EXCEPTION, said)})

    # ---- what became of it

    def _ask(self, number: int, wait: bool) -> Saved | None:
        writer = self._writer
        if number not in self._outcomes and writer is not None:
            if wait:
                self._await(lambda writer: number in writer.outcomes or writer.failure is not None)
            with contextlib.suppress(StepError):
                writer.poll()
        if number in self._outcomes:
            return Saved(**self._outcomes[number]["saved"])
        if wait:
            self._raise_failure()
        return None

    def _raise_failure(self) -> NoReturn:
        self._told = True
        last = self._writer.failure if self._writer is not None else self._last_failure
        if last is not None:
            stopping.checked(last["failure"])
        stopping.stop_for(StepError(Cause.UNKNOWN, "the Checkpointer was closed before its save was committed"))

    def _stop_for(self, error: StepError) -> NoReturn:
        self._told = True
        stopping.stop_for(error)

    def _await(self, known: Callable[[Writer], bool]) -> None:
        assert self._writer is not None
        deadline = time.monotonic() + self._terms.timeout + _ANSWER_SECONDS
        try:
            self._writer.poll()
            while not known(self._writer):
                self._writer.await_news(deadline)
        except StepError as error:
            self._stop_for(error)

    def _settle(self, step: int) -> None:
        """Wait for the save before: there is one arena, and what became of that save is learned here by every rank."""
        if self._current is None:
            return
        began = time.monotonic()
        self._current.wait()
        waited = time.monotonic() - began
        if waited > _SLOW_SECONDS and self.rank == 0 and not self._told_slow:
            self._told_slow = True
            before = f"argosy: step {step} waited {waited:.1f} s for the checkpoint of step {self._step}"
            why = "saves come faster than they can be stored; save less often, or into a faster store"
            print(f"{before}: {why}", file=sys.stderr, flush=True)
        for number in [number for number in self._outcomes if number < self._number]:
            del self._outcomes[number]

    def decided(self) -> int:
        """Steps between saves as decided with the save before the last; 0: nothing was."""
        return int(self._outcomes.get(self._number - 1, {}).get("every", 0))

    def look(self, step: int) -> None:
        """Called after every step: ends the training when it has to, on every rank after the same step."""
        writer = self._writer
        if writer is None:
            return
        writer.arena.note_step(step)
        now = time.monotonic()
        if self._mark is None:
            self._mark = step, now
        elif step > self._mark[0]:
            self._step_seconds = (now - self._mark[1]) / (step - self._mark[0])
        try:
            writer.poll()
        except StepError as error:
            self._stop_for(error)
        if writer.failure is not None and step >= int(writer.failure["stop_at"]):
            self._raise_failure()

    # ---- the end

    @in_turn
    def close(self) -> None:
        """Wait for the save that is under way, then let the writer go; Stopped when that save failed."""
        self.turn.closed = True
        if self._writer is None:
            return
        try:
            if self._current is not None and not self._told:
                self._current.wait()
        finally:
            # The room's tensors over the arena would keep the arena's memory.
            writer, self._writer, self._room = self._writer, None, None
            self._last_failure = writer.failure
            stopping.forget_exit(self.close)
            writer.close()

    def release(self) -> None:
        """As :meth:`close`, for an owner that is gone: a failure counts at the end of the process."""
        with stopping.held_back():
            if self.turn.here:  # a forked child that ends must not send its parent's writer home
                self.close()
