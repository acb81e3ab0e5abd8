"""Why a user's gang failed, where Kubernetes deleted its pods after one of them had."""

from __future__ import annotations

from pathlib import Path

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.causes import Cause
from argosy.steps.gang.host import PodState
from argosy.steps.supervise.evidence import verdict_of
from tests.cli.api_server import FakeApi, serving


def _failed(index: int, deleted: float = 0.0) -> PodState:
    name, node = f"g-{index}", f"node-{index}"
    return PodState(name=name, index=index, node=node, phase="Failed", exit_code=1, time=100.0, deleted=deleted)


def test_that_a_pod_which_had_failed_is_deleted_explains_nothing(tmp_path: Path) -> None:
    """A preemption is not counted: a script that raises in all pods would have begun again."""
    api = FakeApi({"metadata": {"name": "w"}}, log=["2026-11-28T07:00:00Z SyntaxError: invalid syntax"])
    with serving(api, tmp_path) as kubeconfig:
        states = [_failed(0), _failed(1, deleted=102.0)]
        found = verdict_of(connect(kubeconfig=str(kubeconfig)), "g", states, {}, None)
    assert (found.cause, found.pod) == (Cause.USER_EXCEPTION, "g-0")
