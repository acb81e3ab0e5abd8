"""Waiting for pods that were told to stop or to exit, no longer than somebody is there who could obey."""

from __future__ import annotations

import time

from argosy.steps.supervisor.context import Context, SupervisedGang
from argosy.steps.supervisor.placing import TICK_SECONDS
from argosy.steps.supervisor.watch import SILENT_SECONDS, alive

LEAVE_SECONDS = 10.0
"""How long pods have to do by themselves what they are told."""


def await_exit(context: Context, gang: SupervisedGang) -> None:
    """Wait until the pods have left.

    Raises:
        Stopped: SIGTERM arrived.
    """
    deadline = time.monotonic() + LEAVE_SECONDS
    while time.monotonic() < deadline:
        if not set(alive(context.host.pods(gang.name))) & context.channel.listening(SILENT_SECONDS):
            return
        context.hear(gang.attempt)
        context.pause(TICK_SECONDS)


def have_stopped(context: Context, gang: SupervisedGang, restart: int, *, hasty: bool) -> bool:
    """Wait until the pods that are left ask for their next restart; whether all of the gang's do.

    ``hasty``: the gang is given up in any case. It stops first all the same: SIGTERM alone would leave its ranks,
    which wait for a peer that is gone, their whole grace to save.

    Raises:
        Stopped: SIGTERM arrived.
    """
    grace = 0.0 if hasty else context.settings.args.grace_seconds
    deadline = time.monotonic() + grace + LEAVE_SECONDS
    while time.monotonic() < deadline:
        left = set(alive(context.host.pods(gang.name)))
        ready = {name for name, message in context.channel.check_ins().items() if message.last_restart <= restart}
        if left <= ready:
            return len(left) == gang.nnodes
        given_up = hasty or len(left) < gang.nnodes
        if given_up and not (left - ready) & context.channel.listening(SILENT_SECONDS):
            return False
        context.hear(gang.attempt)
        context.pause(TICK_SECONDS)
    return False
