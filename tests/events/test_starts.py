"""A decision is carried out on a cluster only where what it starts is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.errors import StepError
from argosy.steps.events.journal import Decision
from argosy.steps.events.starter import ClusterStarter
from tests.cli.api_server import FakeApi, serving


class Templates(FakeApi):
    """Knows these WorkflowTemplates, and remembers what was created."""

    def __init__(self, *names: str) -> None:
        super().__init__({"metadata": {"name": "w"}})
        self.names, self.made = names, list[str]()

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        return json.dumps({"metadata": {}}).encode() if path.endswith(self.names) else None

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.made.append(document["metadata"]["name"])
        return 201, document


def test_a_run_whose_template_was_deleted_is_not_started(tmp_path: Path) -> None:
    """Argo ended it in Error at once, and its data counted as started for good."""
    decision = Decision("start", "complete", "s3://b/c/v7", workflow="r-1")
    for cluster in (Templates("r-trigger"), Templates("/r")):
        with serving(cluster, tmp_path) as kubeconfig:
            starter = ClusterStarter(connect(kubeconfig=str(kubeconfig)), "r", one_by_one=False)
            if "/r" in cluster.names:
                starter.start(decision)
            else:
                with pytest.raises(StepError, match=r"WorkflowTemplate r is not there; argosy install"):
                    starter.start(decision)
        assert cluster.made == (["r-1"] if "/r" in cluster.names else [])
