"""The public names load what they need and nothing of the other side."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import argosy


def modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has after ``code``."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import argosy", {"hera", "torch", "pydantic", "obstore", "boto3"}),
        ("from argosy import TrainingRun", {"hera", "torch", "obstore", "boto3", "requests"}),
        ("from argosy import Checkpointer", {"hera", "torch", "pydantic", "click"}),
        ("from argosy import ExactDataParallel, ResumableLoader", {"hera", "pydantic", "click", "obstore", "boto3"}),
        (
            "from argosy import StreamingDataset, ArchiveSamples",
            {"hera", "torch", "pydantic", "click", "obstore", "boto3"},
        ),
        ("from argosy import report", {"hera", "torch", "pydantic", "obstore", "boto3"}),
    ],
)
def test_a_name_loads_only_its_own_side(code: str, absent: set[str]) -> None:
    assert modules_after(code) & absent == set()


def test_an_unknown_name_says_what_there_is() -> None:
    known = "ResumableLoader, RunFailed, StreamingDataset, TrainingRun, find, report"
    with pytest.raises(AttributeError, match=f"it offers ArchiveSamples, Checkpointer, .*, {known}"):
        argosy.Trainingrun  # noqa: B018
