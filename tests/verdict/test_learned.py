"""What a log's words are like where no rule knows a line of it (workflows/diagnosis/learned.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.verdict.evidence import said_in
from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis import learned
from argosy.workflows.diagnosis.verdict import Diagnosis, diagnose
from tests.verdict.public import LOGS, digest


def _read(*lines: str) -> Diagnosis:
    assert said_in(lines, guess=True) == [], "a rule knows it"
    return diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]])


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (("slurm job 17: requeue, the node is wanted by others",), "preempted_evicted"),
        (("loss scale is now too small, gradients overflow, skipping",), "numerics_nan"),
    ],
)
def test_a_log_of_which_no_rule_knows_a_line_is_read_by_its_words(lines: tuple[str, ...], cause: str) -> None:
    found = _read(*lines)
    assert (found.root.cause, found.by_words) == (cause, True)
    assert found.root.line is not None
    assert found.root.line.text in lines
    assert 0.1 < found.confidence <= 0.5
    assert found.runner_up is not None
    assert found.runner_up.cause != cause


@pytest.mark.parametrize(
    "lines",
    [
        ("step 1 loss 2.3", "step 2 loss 2.2", "step 3 loss 2.1"),
        ("Epoch 1/3: 100%|##| 10/10 [00:01<00:00]", "saving checkpoint to out/ckpt_10.pt"),
        ("WARNING: no pad token, eos is used", "Epoch 2 done, val loss 0.2", "not uploaded: no bucket given", "Done."),
        ("wandb: WARNING Symlinked 3 files into the W&B run directory", "wandb: Run summary: error_rate 0.1",
         "wandb: Synced 5 W&B file(s), 0 media file(s)", "wandb: Find logs at: ./wandb/run-1/logs"),
        ("iter 100 | lr 3e-4 | tokens/s 1000", "NCCL version 2.18.3+cuda12.1", "rank 0 uses device cuda:0"),
    ],
)  # fmt: skip
def test_a_process_that_went_without_a_word_stays_unknown_and_may_have_lacked_memory(lines: tuple[str, ...]) -> None:
    found = _read(*lines)
    assert (found.root.cause, found.root.line, found.confidence) == (Cause.UNKNOWN, None, 0.0)
    assert found.runner_up is not None
    assert found.runner_up.cause == Cause.HOST_OOM


def test_words_are_no_proof_of_a_programs_own_mistake() -> None:
    found = _read("Traceback (most recent call last):", '  File "train.py", line 9, in step')
    assert found.root.cause == Cause.UNKNOWN
    assert found.runner_up is not None
    assert found.runner_up.cause == Cause.USER_EXCEPTION


def test_the_weights_are_learned_from_the_logs_that_are_there() -> None:
    written = json.loads(Path(learned.__file__).with_suffix(".json").read_text())
    assert written["sha256"] == digest(LOGS), "run: python scripts/learn_words.py"
    assert set(written["causes"]) <= set(Cause)
    words = {word for weights in written["causes"].values() for word in weights}
    assert all(re.fullmatch("[a-z]*", word) for word in words)
