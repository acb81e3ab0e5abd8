"""When Argo starts a step's pod again; what the supervisor forgives is its own affair."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hera.workflows import RetryStrategy
from hera.workflows.models import Backoff, IntOrString

from argosy.steps.contract.exit_codes import RETRIED_BY_ARGO, ExitCode
from argosy.workflows.spec.run import TrainingRun

KILLED: Final = (-1, 137, 143)
"""SIGKILL and SIGTERM of a container whose pod was taken away; -1 is Argo's word for no exit code: the pod was evicted
or refused by its node before the container could start."""
UNSTARTED: Final = 64
"""Of Argo's emissary, the first process of each of a step's containers: told to stop before it started the step."""
NO_WORDS: Final = f"main: Error (exit code {int(ExitCode.USAGE)})"
"""The same, still earlier: as process 1 it cannot die of a SIGTERM that it does not expect yet, and Go's runtime then
exits with 2. A step that ends with this code itself, which is never tried again, says why behind it."""
STEP_LIMIT: Final = 3
STEP_BACKOFF_SECONDS: Final = 5.0
STEP_BACKOFF_CAP_SECONDS: Final = 60.0


def _strategy(limit: int, codes: Iterable[int], first: float, cap: float) -> RetryStrategy:
    listed = ", ".join(str(int(code)) for code in (*codes, *KILLED, UNSTARTED))
    return RetryStrategy(
        limit=limit,
        # Explicit: the default depends on whether there is an expression, and both must hold.
        retry_policy="Always",
        expression=f'lastRetry.status == "Error" || asInt(lastRetry.exitCode) in [{listed}] '
        f'|| lastRetry.message == "{NO_WORDS}"',
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
