"""What the cause of a failed attempt means, and whether it was made on purpose."""

from __future__ import annotations

from math import inf
from signal import SIGKILL

from argosy.steps.contract.causes import Cause
from argosy.steps.record.advice import advice_for, narrower
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.injected import Injected
from argosy.steps.record.slow_ranks import OF_A_SLOW_RANK


def injected_in(record: RunRecord, index: int) -> list[Injected]:
    """Faults that were injected between the start of attempt ``index`` and the next."""
    began = record.restarts[index].began
    after = record.restarts[index + 1].began if index + 1 < len(record.restarts) else inf
    return [fault for fault in record.injected if began <= fault.time < after]


def made_on_purpose(record: RunRecord, index: int) -> Injected | None:
    """The fault that attempt ``index`` ended for: one of the rank that it is blamed on, or of its node."""
    each = record.restarts[index]
    for fault in injected_in(record, index):
        of_node = fault.rank is None and fault.node == each.node != ""  # that of the supervisor has neither
        if of_node or (fault.rank is not None and fault.rank == each.rank):
            return fault
    return None


def meaning(record: RunRecord, index: int) -> str:
    """What the cause of failed attempt ``index`` means, in a sentence."""
    each = record.restarts[index]
    meant = "on purpose" if made_on_purpose(record, index) else ""
    if each.cause == Cause.UNKNOWN and each.signal == SIGKILL:
        return f"The process was killed {meant or 'from outside, and no record of the machine says by whom'}."
    if each.cause == Cause.SIGTERM and each.rank is not None and each.signal is not None:
        return f"The process was told to stop {meant or 'by itself, or by somebody who did not tell its pod'}."
    if each.cause == Cause.SIGTERM and each.node and not each.stopped:
        return "A pod was told to stop from outside: deleted, evicted, or with its node."
    if each.cause == Cause.NCCL_TIMEOUT and OF_A_SLOW_RANK in each.quote:
        return "No collective timed out: the others waited for this rank in every step, and its node was left."
    return (narrower(each.cause, each.quote) or advice_for(each.cause))[0]
