"""The engine's loop: pass, save, start, wait for an ending or a moment, and again."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from argosy.steps.pods.leftovers import sweep
from argosy.workflows.engine import endings, hooks, template
from argosy.workflows.engine.document import Document
from argosy.workflows.engine.locks import Locks, locks_of
from argosy.workflows.engine.node import FULFILLED, PENDING, RUNNING, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, TimedOut, Waiting
from argosy.workflows.engine.pods import PodRunner
from argosy.workflows.engine.state import WorkflowState

OnChange = Callable[[WorkflowState], None]


_LONGEST_WAIT_SECONDS = 86400.0
"""poll takes no more than 24 days, which is less than a long run may last; who wakes early waits on."""
_SAME_SECONDS = 0.5
"""A second SIGINT so soon is the first one, which a wrapper passed on: nobody has read yet what another one does."""
_USUAL_DEPTH, _DEPTH = sys.getrecursionlimit(), 20_000
_deep_now: list[object] = []


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Templates inside each other, a hundred deep as in the controller, are calls inside each other here.

    The limit is the process's: of several engines in threads the last one puts it back.
    """
    own = object()
    _deep_now.append(own)
    sys.setrecursionlimit(max(_USUAL_DEPTH, _DEPTH))
    try:
        yield
    finally:
        _deep_now.remove(own)
        if not _deep_now:
            sys.setrecursionlimit(_USUAL_DEPTH)


class Scheduler:
    """Runs one workflow to its end, or until a signal stops the engine."""

    def __init__(
        self, document: Document, state: WorkflowState, pods: PodRunner, locks: Locks, on_change: OnChange | None
    ) -> None:
        self._state, self._pods, self._locks = state, pods, locks
        self._operation = Operation(document, state, pods, locks, template.execute)
        self._on_change = on_change
        self._stopped_by: int | None = None
        self._stopped_at = 0.0

    def run(self) -> WorkflowState:
        """Run to the end; the state then says how. After a signal ``interrupted`` names it and a rerun resumes."""
        self._forget_what_was_lost()
        with _deep_calls(), self._signals() as woken:
            try:
                while not self._state.finished_for_good and self._stopped_by is None:
                    self._turn(woken)
            finally:
                self._end(self._stopped_by)
        return self._state

    # -- start and end ---------------------------------------------------------------------------------------

    def _forget_what_was_lost(self) -> None:
        """After an engine that was killed: end its leftovers; what was running will be done again."""
        sweep(self._state.uid)
        self._state.interrupted = self._state.message = ""
        for node in self._state.nodes.values():
            if node.type == "Pod" and not node.fulfilled:
                node.phase, node.message, node.deadline = PENDING, "", None

    def _end(self, stopped_by: int | None) -> None:
        if stopped_by is not None and (seconds := self._pods.longest_grace()):
            self._state.message = (
                f"stopping: what runs has up to {seconds:.0f} s to end, and is killed at once by Ctrl-C once more"
            )
            self._save()
        self._pods.end_all()
        sweep(self._state.uid)
        self._locks.release_all()
        if not self._state.finished_for_good:
            self._forget_what_was_lost()
            if stopped_by is not None:
                self._state.interrupted = signal.Signals(stopped_by).name
                self._state.message = f"stopped by {self._state.interrupted}; run it again to resume"
        self._save()

    @contextmanager
    def _signals(self) -> Iterator[int]:
        """Yield a descriptor that becomes readable on SIGINT and SIGTERM, which end the loop."""
        reading, writing = os.pipe()
        os.set_blocking(writing, False)

        def stop(number: int, _frame: FrameType | None) -> None:
            now = time.monotonic()
            if self._stopped_by is None:
                self._stopped_at = now
            elif number == signal.SIGINT and now - self._stopped_at > _SAME_SECONDS:
                self._pods.patient = False
            self._stopped_by = number
            os.write(writing, b"!")

        main = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if main else ()
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield reading
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reading)
            os.close(writing)

    # -- one turn --------------------------------------------------------------------------------------------

    def _turn(self, woken: int) -> None:
        changed = self._pods.collect()
        while self._pods.settled:
            node, settled = self._pods.settled.pop()
            self._operation.export(settled, node.outputs)
        while True:
            self._operation.changed = False
            self._operation.begin_pass()
            self._pass()
            changed = changed or self._operation.changed
            if not self._operation.changed or self._state.finished_for_good or self._stopped_by is not None:
                break
        if changed:
            self._save()
        started = self._pods.start_queued()
        if started:
            self._save()
            if any(node.fulfilled for node in started):
                return
        if self._is_stuck():
            endings.end_stuck(self._operation)
            self._save()
        if not self._state.finished_for_good and self._stopped_by is None:
            self._wait(woken)

    def _is_stuck(self) -> bool:
        """Whether nothing runs, nothing is due and yet the workflow has not ended."""
        over = self._state.finished_for_good or self._stopped_by is not None
        return not over and len(self._pods) == 0 and self._operation.next_pass is None

    def _wait(self, woken: int) -> None:
        moments = [each for each in (self._operation.next_pass, self._pods.next_moment()) if each is not None]
        timeout = None if not moments else max(0.0, min(*moments, time.time() + _LONGEST_WAIT_SECONDS) - time.time())
        handles = list(self._pods.handles())
        if len(handles) < len(self._pods):
            return
        poller = select.poll()
        for handle in (woken, *handles):
            poller.register(handle, select.POLLIN)
        poller.poll(None if timeout is None else timeout * 1000 + 1)

    def _save(self) -> None:
        self._state.save()
        if self._on_change is not None:
            self._on_change(self._state)

    def _pass(self) -> None:
        op, state = self._operation, self._state
        if not self._hold_workflow_locks():
            return
        if state.phase == PENDING:
            state.phase, state.message = RUNNING, ""
            state.started = op.now if state.started is None else state.started
            op.changed = True
        for holder in self._locks.holders & state.nodes.keys():
            if state.nodes[holder].fulfilled:
                self._locks.release(holder)
        op.end_after_deadline()
        root = self._execute(state.name, {"template": op.document.spec["entrypoint"]}, "root")
        if root is None or not root.fulfilled:
            return
        exit_node = self._exit_handler(root)
        if not state.finished_for_good and (exit_node is None or exit_node.phase in FULFILLED):
            endings.outcome(op, root, exit_node)

    def _execute(self, name: str, holder: dict[str, object], role: str) -> NodeState | None:
        op = self._operation
        arguments = holder.get("arguments") or op.arguments
        assert isinstance(arguments, dict)
        try:
            return op.execute(op, name, holder, "", arguments, hooked=role == "exit")
        except Waiting:
            return op.node(name)
        except (TimedOut, TemplateError) as error:
            told = "exit template execution " if role == "exit" else "entry template execution"
            op.finish("Error", f"error in {told}: {error}")
            return None

    def _exit_handler(self, root: NodeState) -> NodeState | None:
        op, spec = self._operation, self._operation.document.spec
        hook = hooks.exit_hook(spec, op.arguments)
        if hook is None:
            return None
        op.globals["workflow.status"] = "Succeeded" if root.phase in ("Skipped", "Omitted") else root.phase
        op.globals.setdefault("workflow.failures", endings.failures(op))
        name = f"{self._state.name}.onExit"
        found = self._execute(name, hook, "exit")
        if found is None:
            found = NodeState(op.node_id(name), name, name, "", "Pod", PENDING)
        return found

    def _hold_workflow_locks(self) -> bool:
        op, state = self._operation, self._state
        wanted = locks_of(op.document.spec.get("synchronization"), op.document.configs)
        blocked = self._locks.acquire("", wanted)
        if blocked is None:
            return True
        message = template.waiting_message(op, blocked)
        if state.message != message:
            state.phase, state.message = PENDING, message
            op.changed = True
        return False
