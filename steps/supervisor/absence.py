"""Why a restart never began: pods that did not come, or ended before."""

from __future__ import annotations

import time
from collections.abc import Sequence

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.trouble import Trouble
from argosy.steps.gang.host import PodState
from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.watch import Watch
from argosy.steps.verdict import PodFact, Verdict, judge


def never_came(missing: Sequence[PodState], seconds: float) -> Verdict:
    """``missing`` did not check in for so long."""
    who = ", ".join(f"{state.node or 'no node'} (pod {state.name}, {state.phase})" for state in missing)
    first = missing[0]
    quote = f"not all nodes checked in within {seconds:.0f} s; missing: {who}"
    error = Trouble(cause=Cause.RENDEZVOUS_TIMEOUT, quote=quote, node=first.node, pod=first.name)
    facts = [
        PodFact(name=each.name, node=each.node, phase=each.phase, reason=each.reason, message=each.message)
        for each in missing
        if each.reason
    ]
    return judge([], [error], facts)


def ended_early(context: Context, gang: SupervisedGang, restart: int, states: Sequence[PodState]) -> Verdict:
    """A pod ended before the restart began; it may have said why on the channel."""
    watch = Watch(states, context.nproc, 0, time.monotonic())
    for report in context.record.kept(gang.name, restart):
        watch.feed(report, time.monotonic())
    return watch.verdict(time.monotonic(), context.settings.timeouts)
