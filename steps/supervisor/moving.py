"""Slow ranks are named, and a gang may be moved away from the node of one."""

from __future__ import annotations

import time

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.trouble import Trouble
from argosy.steps.record.slow_ranks import OF_A_SLOW_RANK
from argosy.steps.supervisor.context import Context
from argosy.steps.supervisor.watch import Watch

CAUSE = Cause.NCCL_TIMEOUT
"""Of the closed list the one for a rank that straggles; with the exit code of a suspect node."""


def see_slow_ranks(context: Context, attempt: int, restart: int, watch: Watch) -> None:
    """Name those that were found; where that is wanted, and can help, end the restart for one."""
    for slow, pod in watch.slow():
        told = {"rank": slow.rank, "node": pod.node, "step": slow.step, "score": slow.score}
        seconds = {"seconds": slow.seconds, "others": slow.others}
        context.record.log.append("slow_rank", attempt=attempt, restart=restart, **told, **seconds)
        if context.settings.args.act_on_slow_rank and _can_move(context, slow.rank, pod.node):
            trouble = Trouble(
                cause=CAUSE, quote=f"{slow.text}, on {pod.node}", code=int(ExitCode.SUSPECT_NODE), rank=slow.rank,
                pod=pod.name, node=pod.node, step=slow.step, time=time.time(),
            )  # fmt: skip
            watch.move_away(trouble)


def _can_move(context: Context, rank: int, node: str) -> bool:
    """Only where enough other nodes are there, and once for a rank: one that is slow on another node too has more to
    do, and no node is at fault.
    """
    before = (each for each in context.ledger.failures() if each.cause == CAUSE and each.rank == rank)
    if any(OF_A_SLOW_RANK in each.quote for each in before):
        return False
    room = context.host.room((*context.ledger.excluded(), node))
    return room is None or room >= context.settings.args.min_nnodes
