"""What a GPU, CUDA and NCCL themselves write, and every symptom of NCCL that ends a run."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from argosy.steps.nccl.failures import FAILURES
from argosy.steps.verdict.line import Line
from argosy.steps.verdict.match import match_line
from argosy.workflows.diagnosis.verdict import diagnose

LOGS = tomllib.loads(Path(__file__).with_name("h100.toml").read_text())["log"]


@pytest.mark.parametrize("log", LOGS, ids=[log["case"] for log in LOGS])
def test_what_an_h100_wrote_names_its_cause(log: dict[str, str]) -> None:
    lines = [Line("rank-0", number, text) for number, text in enumerate(log["say"].splitlines(), 1)]
    assert diagnose([lines]).root.cause == log["cause"]


@pytest.mark.parametrize("symptom", [each for each in FAILURES if each.cause], ids=lambda each: each.name)
def test_a_symptom_that_ends_a_run_is_judged_as_the_table_says(symptom) -> None:
    found = match_line(symptom.example)
    assert found is not None
    assert found.cause == symptom.cause
