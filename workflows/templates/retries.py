"""When Argo starts a step's pod again; what the supervisor forgives is its own affair."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import Backoff, IntOrString

from argosy.steps.contract.exit_codes import RETRIED_BY_ARGO, ExitCode
from argosy.workflows.spec.run import TrainingRun

KILLED: Final = (-1, 137, 143)
"""SIGKILL and SIGTERM of a container whose pod was taken away; -1 is Argo's word for no exit code: the pod was evicted
or refused by its node before the container could start."""
UNTOLD: Final = (
    f"main: Error (exit code {int(ExitCode.USAGE)})",
    "main: Error (exit code 64): failed to start command: context canceled",
    "main: Unknown (exit code 255)",
)
"""Of a pod that is taken away before Argo's emissary, process 1 of each container, has started the step: a SIGTERM that
comes before it listens cannot end process 1, and Go's runtime then exits with 2; a little later it ends with 64
(cmd/argoexec/main.go and commands/emissary.go of 4.0.7). A step that ends with 2 itself says why behind it. The last is
containerd's word, after its node was without power, for a container of which it knows no more."""
STEP_LIMIT: Final = 3
STEP_BACKOFF_SECONDS: Final = 5.0
STEP_BACKOFF_CAP_SECONDS: Final = 60.0


def _strategy(limit: int, codes: Iterable[int], first: float, cap: float) -> RetryStrategy:
    listed = ", ".join(str(int(code)) for code in (*codes, *KILLED))
    return RetryStrategy(
        limit=limit,
        # Explicit: the default depends on whether there is an expression, and both must hold.
        retry_policy="Always",
        expression=f'lastRetry.status == "Error" || asInt(lastRetry.exitCode) in [{listed}] '
        f"|| lastRetry.message in {json.dumps(UNTOLD)}",
        # Never maxDuration: it counts from the first start and becomes the retried pod's deadline.
        backoff=Backoff(duration=duration(first), factor=IntOrString(root=2), cap=duration(cap)),
    )


def step_retries() -> RetryStrategy:
    """For every step but train: lost pods and transient causes, a few times."""
    return _strategy(STEP_LIMIT, (ExitCode.TRANSIENT,), STEP_BACKOFF_SECONDS, STEP_BACKOFF_CAP_SECONDS)


def train_retries(run: TrainingRun) -> RetryStrategy:
    """For the supervisor: its own loss, and the classes it hands up."""
    retry = run.retry
    return _strategy(retry.supervisor_limit, RETRIED_BY_ARGO, retry.backoff_seconds, retry.backoff_cap_seconds)


def duration(seconds: float) -> str:
    """Seconds as Go reads a duration: ``"5s"``, ``"0.25s"``."""
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{seconds:.6f}".rstrip("0") + "s"
