"""An API server that has just started knows no role for a moment, and refuses everybody: 1.37.1 for 0.2 s, with 403."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.cluster import watching
from argosy.steps.cluster.api import ApiRevoked
from argosy.steps.cluster.connecting import connect
from argosy.steps.cluster.kinds import POD, kind_of
from argosy.steps.cluster.watching import Watched
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from tests.cli.api_server import FakeApi, serving

JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "w-a1"}}
SAID = (
    'jobs.batch is forbidden: User "system:serviceaccount:x1:argosy" cannot create resource "jobs" in API group '
    '"batch" in the namespace "x1"'
)
POLICY = "jobs.batch \"w-a2\" is forbidden: ValidatingAdmissionPolicy 'labels' denied request: label team is demanded"


class Starting(FakeApi):
    """``said``: what becomes of the next requests; all others are answered."""

    def __init__(self, *said: tuple[int, str]) -> None:
        super().__init__({"metadata": {"name": "w"}})
        self.said = list(said)

    def refusal(self) -> tuple[int, dict[str, Any]] | None:
        if not self.said:
            return None
        status, message = self.said.pop(0)
        return status, {"reason": {401: "Unauthorized", 403: "Forbidden"}.get(status, ""), "message": message}

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        return self.refusal() or (201, document)


@pytest.mark.parametrize("said", [(403, SAID), (401, "Unauthorized")])
def test_what_was_allowed_is_asked_for_again(said: tuple[int, str], tmp_path: Path) -> None:
    """It ended the run (78), though the next try goes through."""
    server = Starting()
    with serving(server, tmp_path) as kubeconfig:
        api = connect(kubeconfig=str(kubeconfig))
        api.create(JOB)
        server.said = [said]
        api.delete(kind_of(JOB), "w-a1")
        server.said = [said, said]
        assert api.create({**JOB, "metadata": {"name": "w-a2"}}) is not None
        server.said = [said] * 9
        with pytest.raises(ApiRevoked) as caught:
            api.create(JOB, patience=1.0)
    assert (caught.value.cause, caught.value.code) == (Cause.CONFIG_OR_RBAC, ExitCode.CONFIGURATION)


def test_a_server_that_was_away_is_asked_again(tmp_path: Path) -> None:
    with serving(Starting((503, "starting"), (403, SAID)), tmp_path) as kubeconfig:
        assert connect(kubeconfig=str(kubeconfig)).create(JOB) is not None


def test_a_person_may_see_what_he_may_not_change(tmp_path: Path) -> None:
    server = Starting()
    with serving(server, tmp_path) as kubeconfig:
        api = connect(kubeconfig=str(kubeconfig), patience=10.0)
        api.create(JOB)
        server.said = [(403, SAID)]
        with pytest.raises(StepError, match="is forbidden"):
            api.delete(kind_of(JOB), "w-a1")


def test_what_never_was_allowed_and_what_a_policy_refuses_is_not(tmp_path: Path) -> None:
    server = Starting((403, SAID))
    with serving(server, tmp_path) as kubeconfig:
        api, began = connect(kubeconfig=str(kubeconfig)), time.monotonic()
        for said in (SAID, POLICY):
            server.said = [(403, said)]
            with pytest.raises(StepError, match="is forbidden"):
                api.create(JOB)
            assert server.said == []
            api.create(JOB)
    assert time.monotonic() - began < 5


class Pods(FakeApi):
    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        return b"" if "watch" in query else json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()


def test_a_supervisor_may_begin_just_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Pods({"metadata": {"name": "w"}}, refused={"/api/v1/namespaces/research/pods": SAID})
    with serving(server, tmp_path) as kubeconfig:
        watched = Watched(connect(kubeconfig=str(kubeconfig)), POD, "a=b", lambda: None)
        threading.Timer(1.0, server.refused.clear).start()
        watched.start()
        watched.stop()
        server.refused["/api/v1/namespaces/research/pods"] = SAID
        monkeypatch.setattr(watching, "_STARTING_SECONDS", 0.7)
        with pytest.raises(StepError, match="cannot create"):
            Watched(connect(kubeconfig=str(kubeconfig)), POD, "a=b", lambda: None).start()
