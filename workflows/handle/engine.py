"""``python -m argosy.workflows.handle.engine``: one run to its end; what to run comes on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from argosy.steps.record.remedy import FROM_PYTHON
from argosy.workflows.cli.last_words import last_words
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.written import write_whole
from argosy.workflows.engine.api import RunOptions, run


def main() -> None:
    """The first line is a JSON object (state_dir, name, parameters, inject), the rest the workflow's YAML."""
    head, _, yaml = sys.stdin.buffer.read().partition(b"\n")
    told = json.loads(head)
    state_dir = Path(told["state_dir"])
    options = RunOptions(
        state_dir=state_dir,
        parameters=told["parameters"],
        inject=tuple(told["inject"]),
        workflow_name=told["name"],
        command=FROM_PYTHON,
    )
    state = run(yaml, options)
    from argosy.workflows.report.page import render

    folder = RunFolder(state.run_dir, state_dir)
    record = folder.record()
    write_whole(folder.report, render(record, last_words(folder, record)).encode())


if __name__ == "__main__":
    main()
