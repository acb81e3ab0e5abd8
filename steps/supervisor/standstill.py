"""Pauses of a training are told; one in which its store is away is nobody's hang, since a save may wait for it."""

from __future__ import annotations

from argosy.steps.supervisor.context import Context
from argosy.steps.supervisor.watch import Watch


def see_pauses(context: Context, attempt: int, restart: int, watch: Watch, now: float) -> None:
    """Tell a pause that the run's own do not explain."""
    if not context.record.store_answers:
        watch.excuse(now)
    if (stall := watch.stall(now)) is not None:
        seconds, longest = stall
        told = {"step": watch.step, "seconds": round(seconds), "longest": round(longest, 1)}
        context.record.log.append("stalled", attempt=attempt, restart=restart, **told)


def is_hang(context: Context, watch: Watch, now: float) -> bool:
    """Whether the trouble is that nothing moves; the store is asked first. Where it is away there is none yet."""
    if not watch.is_hang(now, context.settings.timeouts):
        return False
    if context.record.ask_store():
        return True
    watch.excuse(context.clock.now())
    return False
