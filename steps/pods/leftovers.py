"""Find and end what an engine that was killed left behind."""

from __future__ import annotations

from argosy.steps.contract import env
from argosy.steps.pods import processes


def sweep(token_prefix: str) -> list[int]:
    """SIGKILL every process that carries a pod token with this prefix; their pids. Returns when none is left.

    The token is inherited by every process of a pod and is unique to a run, so nobody else's process is met.
    """
    if len(token_prefix) < 8:
        raise ValueError(f"token prefix {token_prefix!r} is too short to be one run's own")
    return processes.kill_all(lambda: processes.carrying(env.POD_TOKEN, token_prefix))
