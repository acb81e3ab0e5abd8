"""Four runs and the very bytes they compile to. ARGOSY_REGENERATE=1 rewrites the bytes; then read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.workflows.code import CodeArchive
from argosy.workflows.compile import Kind, compile_run
from argosy.workflows.spec.load import load_run

GOLDENS = Path(__file__).resolve().parents[1] / "goldens"
CODE = CodeArchive(b"", "0f" * 32, ())
CASES: list[tuple[str, Kind, str]] = [
    ("two-nodes-cpu", "Workflow", "two-nodes-cpu"),
    ("two-by-eight-gpu", "Workflow", "two-by-eight-gpu"),
    ("single-node", "Workflow", "single-node"),
    ("elastic", "Workflow", "elastic"),
    ("two-nodes-cpu", "WorkflowTemplate", "two-nodes-cpu.template"),
]


@pytest.mark.parametrize(("run_name", "kind", "golden"), CASES, ids=[case[2] for case in CASES])
def test_compiles_to_the_committed_bytes(run_name: str, kind: Kind, golden: str) -> None:
    run = load_run(GOLDENS / f"{run_name}.toml")
    text = compile_run(run, code=CODE if run.code else None, kind=kind)
    path = GOLDENS / f"{golden}.yaml"
    if os.environ.get("ARGOSY_REGENERATE") == "1":
        path.write_bytes(text)
    assert text.decode() == path.read_text(), "read the difference; ARGOSY_REGENERATE=1 if it is meant"
