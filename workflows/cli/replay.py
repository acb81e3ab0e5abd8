"""The failures of a run as faults to inject: what happened there, at the same steps, here."""

from __future__ import annotations

import re
from signal import SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGSEGV, SIGTERM

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import CORRUPT, SUPERVISOR_KILL, Injection, parse
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.meaning import made_on_purpose
from argosy.steps.record.restart import Restart

_BY_SIGNAL: dict[int, str] = {SIGABRT: "abort", SIGBUS: "bus", SIGFPE: "fpe", SIGSEGV: "segv", SIGTERM: "term"}
_BY_CAUSE: dict[str, str] = {
    Cause.HANG: "hang",
    Cause.NATIVE_CRASH: "segv",
    Cause.SHM_EXHAUSTED: "bus",
    Cause.SIGTERM: "term",
}
_OF_THE_SCRIPT = (Cause.USER_EXCEPTION, Cause.IMPORT_ERROR, Cause.LAUNCHER_USAGE, Cause.COLLECTIVE_MISMATCH,
                  Cause.NUMERICS_NAN, Cause.FINISHED_WITHOUT_CHECKPOINT)  # fmt: skip
_LOCAL_NODE = re.compile(r"node-(\d+)")


def replayed(record: RunRecord) -> list[Injection]:
    """Every fault that was injected, as it was asked for, and one for each other end of a start: on its rank, or on its
    node where no rank was at fault.

    What a script raises by itself it will raise again: that is no fault to inject.

    Raises:
        InputError: nothing that failed can be caused from outside.
    """
    # An older run's log does not tell how it was asked for.
    asked = [parse(each.asked or f"{SUPERVISOR_KILL}@step={each.step or 1}") for each in record.injected
             if each.asked or each.fault == SUPERVISOR_KILL]  # fmt: skip
    found = [(each, made_on_purpose(record, index)) for index, each in enumerate(record.restarts) if each.failed]
    others = [each for each, made in found if not (made.asked if made else each.cause in _OF_THE_SCRIPT)]
    if record.gangs and not (asked or found):
        raise InputError(f"RUN {record.workflow!r}: nothing of it failed, so there is nothing to let happen again")
    if not (asked or others) or not record.gangs:
        raise InputError(
            f"RUN {record.workflow!r}: no failure of it can be caused from outside (see argosy explain "
            f"{record.workflow}); what its script does by itself a plain run shows again"
        )
    names = sorted({each.node for each in others if each.node})
    nnodes, each_node = record.gangs[0].nnodes, record.gangs[0].nproc_per_node
    return [*(_fault(each, names, nnodes, nnodes * each_node) for each in others), *asked]


def _fault(failed: Restart, names: list[str], nnodes: int, world: int) -> Injection:
    step = failed.last_step
    phase = "" if step else "start"
    if failed.cause == Cause.CHECKPOINT_CORRUPT and step:
        return Injection(CORRUPT, None, None, step, None)
    if failed.cause == Cause.PREEMPTED_EVICTED and failed.node and step:
        kind = "node-loss" if failed.signal == SIGKILL else "preempt"
        return Injection(kind, None, _node(failed.node, names) % nnodes, step, None)
    by_signal = _BY_SIGNAL.get(failed.signal) if failed.signal is not None and failed.cause != Cause.HANG else None
    kind = by_signal or _BY_CAUSE.get(failed.cause, "kill")
    return Injection(kind, (failed.rank or 0) % world, None, step, None, phase=phase)


def _node(name: str, names: list[str]) -> int:
    found = _LOCAL_NODE.fullmatch(name)
    return int(found[1]) if found else names.index(name)
