"""The worst case is a sum that can be checked, and says when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.workflows import bound
from argosy.workflows.bound import no_progress_seconds, pauses_seconds, words, worst_case
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates import retries

GPU_GANG = {"nnodes": 2, "nproc_per_node": 8, "resources": {"gpu": 8}}


def run(**fields: Any) -> TrainingRun:
    return TrainingRun(name="n", script="t.py", **fields)


def test_unbounded_says_which_field_would_bound_it() -> None:
    text = worst_case(run(gang=GPU_GANG))
    assert "wall time: no bound" in text
    assert "GPU-hours: no bound, 16 for each hour" in text
    assert text.count("deadlines.run_seconds would bound") == 2


def test_a_limit_bounds_time_and_gpus() -> None:
    text = worst_case(run(gang=GPU_GANG, deadlines={"run_seconds": 7200, "grace_seconds": 60}))
    assert "wall time: at most 2 h (deadlines.run_seconds), then 1 min 30 s to end cleanly" in text
    assert "GPU-hours: at most 32.4 (16 GPUs for 2 h 1 min 30 s)" in text


def test_spares_hold_their_gpus_too() -> None:
    assert "GPU-hours: no bound, 24 for each hour" in worst_case(run(gang={**GPU_GANG, "spares": 1}))


def test_no_progress_is_timeouts_times_attempts_plus_pauses() -> None:
    made = run(
        deadlines={"check_in_seconds": 100, "hang_seconds": 200, "heartbeat_seconds": 30, "grace_seconds": 10},
        retry={"max_restarts": 2, "backoff_seconds": 4, "backoff_cap_seconds": 5},
    )
    assert no_progress_seconds(made) == 3 * (100 + 200 + 30 + 10 + bound.COMMIT_SECONDS) + 4 + 5
    assert "3 tries x (check-in 100 s + hang 200 s" in worst_case(made)


def test_a_hang_without_limit_has_no_bound() -> None:
    made = run(deadlines={"hang_seconds": 0})
    assert no_progress_seconds(made) is None
    assert "deadlines.hang_seconds = 0 lets a hang last for ever" in worst_case(made)


def test_evaluation_attempts_are_those_of_the_template() -> None:
    assert retries.STEP_LIMIT + 1 == bound._EVALUATION_ATTEMPTS
    judged = run(evaluation={"script": "e.py", "metric": "m", "direction": "min", "timeout_seconds": 60})
    assert "at most 4 attempts of 1 min" in worst_case(judged)


@pytest.mark.parametrize(
    ("first", "cap", "count", "total"),
    [(1, 300, 0, 0), (1, 300, 3, 7), (100, 300, 3, 600), (1, 1, 5, 5), (0.5, 300, 10**6, pytest.approx(3e8, rel=1e-3))],
)
def test_pauses_double_up_to_the_cap(first: float, cap: float, count: int, total: float) -> None:
    assert pauses_seconds(first, cap, count) == total


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (61, "1 min 1 s"), (90061, "1 d 1 h 1 min 1 s"), (7200.4, "2 h")]
)
def test_words(seconds: float, text: str) -> None:
    assert words(seconds) == text


def test_batch_arithmetic_is_said() -> None:
    made = run(
        gang={"nnodes": 2, "nproc_per_node": 4},
        batch={"micro_batch_size": 8, "accumulation_steps": 2, "base_learning_rate": 0.1, "base_batch_size": 256},
    )
    assert made.batch is not None
    assert made.batch.describe(made.gang.world_size) == (
        "batch: 8 samples x 2 micro steps x 8 ranks = 128 per optimizer step; "
        "learning rate 0.1 x 128/256 = 0.05 (linear rule)"
    )


@pytest.mark.parametrize(("seconds", "text"), [(5.0, "5s"), (0.5, "0.5s"), (90.0, "90s"), (1e6, "1000000s")])
def test_durations_as_go_reads_them(seconds: float, text: str) -> None:
    assert retries.duration(seconds) == text
