"""The worst case of a run, in words: wall time and GPU-hours, from timeouts x attempts x pauses."""

from __future__ import annotations

from argosy.steps.contract.channel import COMMIT_SECONDS
from argosy.workflows.spec.run import TrainingRun

_DAY, _HOUR, _MINUTE = 86400, 3600, 60
_EVALUATION_ATTEMPTS = 4
"""templates.retries.STEP_LIMIT + 1; not imported, because that would import Hera. A test holds them together."""


def worst_case(run: TrainingRun) -> str:
    """A line each for the wall time, the GPU-hours, what ends a run without progress, and the evaluation."""
    return "\n".join([_wall_time(run), _gpu_hours(run), _no_progress(run), *_evaluation(run)])


def pauses_seconds(first: float, cap: float, count: int) -> float:
    """Sum of ``count`` pauses: ``first``, doubled each time, at most ``cap`` each; seconds."""
    total = 0.0
    for _ in range(count):
        if first >= cap:
            break
        total, first, count = total + first, first * 2, count - 1
    return total + cap * count


def no_progress_seconds(run: TrainingRun) -> float | None:
    """Longest time without a single step before the supervisor gives the run up; None: no bound.

    Each try may wait for check-in, then for a step that does not come, then for a node to be declared lost and
    for the grace of those that live. Preemptions are counted apart and are not in here.
    """
    deadlines, retry = run.deadlines, run.retry
    if deadlines.hang_seconds == 0:
        return None
    tries = retry.max_restarts + 1
    one = deadlines.check_in_seconds + deadlines.hang_seconds + deadlines.heartbeat_seconds
    one += deadlines.grace_seconds + COMMIT_SECONDS
    return tries * one + pauses_seconds(retry.backoff_seconds, retry.backoff_cap_seconds, retry.max_restarts)


def gpus(run: TrainingRun) -> int:
    """Most GPUs that the run holds at one time."""
    return max(run.gang.gpus, run.evaluation.resources.gpu if run.evaluation is not None else 0)


def _wall_time(run: TrainingRun) -> str:
    limit = run.deadlines.run_seconds
    if limit:
        return f"wall time: at most {words(limit)} (deadlines.run_seconds), then {words(_ending(run))} to end cleanly"
    return (
        "wall time: no bound: a run that goes on committing checkpoints is never stopped; deadlines.run_seconds "
        "would bound it"
    )


def _gpu_hours(run: TrainingRun) -> str:
    if not gpus(run):
        return "GPU-hours: none"
    limit = run.deadlines.run_seconds
    if not limit:
        return f"GPU-hours: no bound, {gpus(run)} for each hour; deadlines.run_seconds would bound them"
    hours = gpus(run) * (limit + _ending(run)) / _HOUR
    return f"GPU-hours: at most {hours:.1f} ({gpus(run)} GPUs for {words(limit + _ending(run))})"


def _ending(run: TrainingRun) -> int:
    return run.deadlines.grace_seconds + COMMIT_SECONDS


def _no_progress(run: TrainingRun) -> str:
    deadlines, retry = run.deadlines, run.retry
    apart = f"; besides, up to {retry.max_preemptions} preemptions within 6 hours (retry.max_preemptions)"
    seconds = no_progress_seconds(run)
    if seconds is None:
        return f"without progress: no bound: deadlines.hang_seconds = 0 lets a hang last for ever{apart}"
    cost = f", {gpus(run) * seconds / _HOUR:.1f} GPU-hours" if gpus(run) else ""
    return (
        f"without progress: given up after at most {words(seconds)}{cost} ({retry.max_restarts + 1} tries x (check-in "
        f"{deadlines.check_in_seconds} s + hang {deadlines.hang_seconds} s + heartbeat {deadlines.heartbeat_seconds} s "
        f"+ stop {_ending(run)} s) + pauses){apart}"
    )


def _evaluation(run: TrainingRun) -> list[str]:
    if run.evaluation is None:
        return []
    limit = run.evaluation.timeout_seconds
    return [
        f"evaluation: at most {_EVALUATION_ATTEMPTS} attempts of {words(limit)} (evaluation.timeout_seconds), plus "
        "the fetch of checkpoint and data"
    ]


def words(seconds: float) -> str:
    """``90061`` -> ``1 d 1 h 1 min 1 s``."""
    rest = round(seconds)
    parts = []
    for size, unit in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (1, "s")):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts) or "0 s"
