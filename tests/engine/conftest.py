from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.workflows.engine.api import RunOptions, WorkflowState, run

HEADER = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: wf}
spec:
"""
STOCK = """
- name: ok
  container: {image: i, command: ["true"]}
- name: bad
  container: {image: i, command: ["false"]}
- name: exit
  inputs: {parameters: [{name: code}]}
  container: {image: i, command: [sh, -c, "exit $0", "{{inputs.parameters.code}}"]}
- name: say
  inputs: {parameters: [{name: text}]}
  outputs: {parameters: [{name: said, valueFrom: {path: /tmp/said}}]}
  container: {image: i, command: [sh, -c, 'printf %s "$0" | tee /tmp/said', "{{inputs.parameters.text}}"]}
- name: nap
  inputs: {parameters: [{name: seconds}]}
  container: {image: i, command: [sleep, "{{inputs.parameters.seconds}}"]}
"""


def workflow(templates: str, spec: str = "entrypoint: main") -> bytes:
    """A Workflow with the stock templates (ok, bad, exit, say, nap) and these."""
    head = textwrap.indent(textwrap.dedent(spec).strip("\n"), "  ")
    body = textwrap.indent(textwrap.dedent(templates).strip("\n") + "\n" + STOCK.strip("\n"), "  ")
    return f"{HEADER.strip()}\n{head}\n  templates:\n{body}\n".encode()


class Outcome:
    """Nodes by name without the workflow's, for short assertions."""

    def __init__(self, state: WorkflowState) -> None:
        self.state = state
        self.phase, self.message = state.phase, state.message
        self.by_name = {node.name.removeprefix("wf") or "wf": node for node in state.nodes.values()}

    def phases(self, *, kinds: tuple[str, ...] = ()) -> dict[str, str]:
        return {name: node.phase for name, node in self.by_name.items() if not kinds or node.type in kinds}

    def __getitem__(self, name: str) -> Any:
        return self.by_name[name]

    def log(self, name: str) -> str:
        return Path(self.by_name[name].log).read_text()


Runner = Callable[..., Outcome]


@pytest.fixture
def run_workflow(tmp_path: Path) -> Runner:
    def go(templates: str, spec: str = "entrypoint: main", **options: Any) -> Outcome:
        return Outcome(run(workflow(templates, spec), RunOptions(state_dir=tmp_path / "state", **options)))

    return go


@pytest.fixture
def make_workflow() -> Callable[..., bytes]:
    return workflow
