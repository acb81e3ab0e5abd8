"""Admission: one event starts one training; a person's start always does; what died is taken over."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from argosy.steps.claims import beat_key
from argosy.steps.contract.arguments import AdmitArgs, FinalizeArgs
from argosy.steps.contract.layout import claim_prefix, run_prefix

WORK: dict[str, Any] = {"run_digest": "r" * 64, "dataset_digest": "d" * 64}
EVENT = WORK | {"event": "e1"}
ANEW = "; this run begins anew, with run-id=wf-1 it would go on from the checkpoints of that one"


def ended(pods: Any, workflow: str, status: str) -> None:
    assert pods.run(FinalizeArgs, workflow, status=status).code == 0


def test_the_second_event_for_the_same_work_is_a_duplicate(any_pods: Any) -> None:
    first = any_pods.run(AdmitArgs, "wf-1", **EVENT)
    assert first.outputs["decision"] == "start"
    second = any_pods.run(AdmitArgs, "wf-2", **EVENT)
    assert (second.code, second.outputs["decision"]) == (0, "duplicate")
    assert "wf-1 holds this run" in second.outputs["reason"]
    assert second.outputs["key"] == first.outputs["key"]
    (event,) = any_pods.events("wf-2", "admission")
    assert event.fields | {"reason": ""} == {
        "decision": "duplicate", "reason": "", "key": first.outputs["key"], "event": "e1",
    }  # fmt: skip


@pytest.mark.parametrize("other", [{"run_digest": "x"}, {"dataset_digest": "x"}, {"name": "other"}])
def test_other_work_is_no_duplicate(other: dict[str, str], pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", **EVENT)
    assert pods.run(AdmitArgs, "wf-2", **EVENT | other).outputs["decision"] == "start"


def test_the_same_workflow_enters_again(pods: Any) -> None:
    for _ in range(2):
        assert pods.run(AdmitArgs, "wf-1", **EVENT).outputs["decision"] == "start"
    assert len(list(pods.store.list("run/claims"))) == 1


def test_after_success_an_event_is_a_duplicate_and_a_person_is_not(pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", **EVENT)
    ended(pods, "wf-1", "Succeeded")
    told = pods.run(AdmitArgs, "wf-2", **EVENT)
    assert (told.outputs["decision"], told.outputs["reason"]) == (
        "duplicate", "workflow wf-1 has already succeeded with this run and dataset",
    )  # fmt: skip
    by_hand = pods.run(AdmitArgs, "wf-3", **WORK)
    assert by_hand.outputs["decision"] == "start"
    assert "started by hand, although workflow wf-1" in by_hand.outputs["reason"]
    assert pods.run(AdmitArgs, "wf-4", **WORK, once=True).outputs["decision"] == "duplicate"
    forced = pods.run(AdmitArgs, "wf-5", **EVENT, force=True)
    assert (forced.outputs["decision"], forced.outputs["reason"][:16]) == ("start", "forced, although")


def test_a_run_without_a_dataset_is_told_of_none(pods: Any) -> None:
    for workflow in ("wf-1", "wf-2"):
        told = pods.run(AdmitArgs, workflow, **WORK | {"dataset_digest": ""})
        ended(pods, workflow, "Succeeded")
    assert told.outputs["reason"] == "started by hand, although workflow wf-1 has already succeeded with this run"


@pytest.mark.parametrize("status", ["Failed", "Error"])
def test_a_failed_claim_is_taken_over_once(status: str, pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", **EVENT)
    ended(pods, "wf-1", status)
    told = pods.run(AdmitArgs, "wf-2", **EVENT)
    assert (told.outputs["decision"], told.outputs["reason"]) == ("start", f"taken over: workflow wf-1 failed{ANEW}")
    assert pods.run(AdmitArgs, "wf-3", **EVENT).outputs["decision"] == "duplicate"


def test_argo_retry_of_a_failed_workflow_takes_its_claim_up_again(pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", **EVENT)
    ended(pods, "wf-1", "Failed")
    assert pods.run(AdmitArgs, "wf-1", **EVENT).outputs["decision"] == "start"
    assert pods.run(AdmitArgs, "wf-2", **EVENT).outputs["decision"] == "duplicate"


def age(pods: Any, key: str, seconds: float) -> None:
    """Let the first claim and everything its workflow wrote be older."""
    place = f"{claim_prefix('run', key)}/0000000001.json"
    pods.store.put(place, json.dumps(pods.json(place) | {"time": time.time() - seconds}).encode())
    for info in list(pods.store.list(run_prefix("run", "wf-1") + "/events")):
        line = json.loads(pods.store.get(info.key)) | {"time": time.time() - seconds}
        pods.store.put(info.key, json.dumps(line).encode())


def test_a_silent_claim_is_taken_over_after_its_lease(pods: Any) -> None:
    key = pods.run(AdmitArgs, "wf-1", **EVENT, lease_seconds=60).outputs["key"]
    age(pods, key, 50)
    assert pods.run(AdmitArgs, "wf-2", **EVENT).outputs["decision"] == "duplicate"
    age(pods, key, 70)
    told = pods.run(AdmitArgs, "wf-3", **EVENT)
    assert told.outputs["reason"] == f"taken over: workflow wf-1 gave no sign of life for 60 s{ANEW}"


@pytest.mark.parametrize("sign", ["beat", "event"])
def test_a_sign_of_life_keeps_the_claim(sign: str, pods: Any) -> None:
    key = pods.run(AdmitArgs, "wf-1", **EVENT, lease_seconds=60).outputs["key"]
    age(pods, key, 500)
    prefix = run_prefix("run", "wf-1")
    if sign == "beat":
        pods.store.put(beat_key(prefix, "uid-wf-1"), json.dumps({"time": time.time()}).encode())
    else:
        line = json.dumps({"time": time.time(), "kind": "step", "step": 7})
        pods.store.put(f"{prefix}/events/train-1-a/00000009.jsonl", line.encode())
    assert pods.run(AdmitArgs, "wf-2", **EVENT).outputs["decision"] == "duplicate"


def test_the_end_of_a_duplicate_frees_nothing(pods: Any) -> None:
    pods.run(AdmitArgs, "wf-1", **EVENT)
    pods.run(AdmitArgs, "wf-2", **EVENT)
    ended(pods, "wf-2", "Succeeded")
    assert "wf-1 holds this run" in pods.run(AdmitArgs, "wf-3", **EVENT).outputs["reason"]
    ended(pods, "wf-1", "Failed")
    assert pods.run(AdmitArgs, "wf-4", **EVENT).outputs["decision"] == "start"


@pytest.mark.parametrize("before", ["nothing", "a failed claim"])
def test_of_workflows_that_come_together_exactly_one_starts(before: str, any_pods: Any) -> None:
    if before == "a failed claim":
        any_pods.run(AdmitArgs, "wf-0", **EVENT)
        ended(any_pods, "wf-0", "Failed")
    started = [any_pods.start(AdmitArgs, f"racer-{i}", **EVENT) for i in range(4)]
    decisions = [any_pods.finish(*one).outputs["decision"] for one in started]
    assert sorted(decisions) == ["duplicate", "duplicate", "duplicate", "start"]


def test_of_people_who_come_together_all_start(pods: Any) -> None:
    started = [pods.start(AdmitArgs, f"racer-{i}", **WORK) for i in range(3)]
    assert [pods.finish(*one).outputs["decision"] for one in started] == ["start"] * 3


def test_killed_at_any_moment_admit_can_run_again(pods: Any) -> None:
    for number in range(6):
        child, root = pods.start(AdmitArgs, f"wf-{number}", **EVENT | {"event": "", "dataset_digest": str(number)})
        place = [root / "argosy/outputs", pods.folder / "store" / "run" / "claims"][number % 2]
        known = len(list(place.glob("*"))) if place.exists() else 0
        while child.poll() is None and (not place.exists() or len(list(place.glob("*"))) <= known):
            pass
        child.kill()
        child.communicate()
        told = pods.run(AdmitArgs, f"wf-{number}", **EVENT | {"dataset_digest": str(number)})
        assert told.outputs["decision"] == "start"
        other = pods.run(AdmitArgs, f"other-{number}", **EVENT | {"dataset_digest": str(number)})
        assert other.outputs["decision"] == "duplicate"


@pytest.mark.parametrize("given", [{"event": "x" * 1025}, {"event": "a\nb"}, {"event": "\x1b["}, {"lease_seconds": 0}])
def test_wrong_arguments_are_one_clear_line(given: dict[str, Any], pods: Any) -> None:
    told = pods.run(AdmitArgs, **EVENT | given)
    assert (told.code, told.err.count("\n"), told.outputs) == (2, 1, {})


@pytest.mark.parametrize("entry", [b"", b"{}", b"[]", b'{"state": "running"}', b"\xff"])
def test_a_damaged_claim_stops_with_one_line(entry: bytes, pods: Any) -> None:
    key = pods.run(AdmitArgs, "wf-1", **EVENT).outputs["key"]
    pods.store.put(f"{claim_prefix('run', key)}/0000000001.json", entry)
    told = pods.run(AdmitArgs, "wf-2", **EVENT)
    assert (told.code, told.err.count("\n"), told.outputs) == (70, 1, {})
    assert "data_corrupt" in told.err


@pytest.mark.parametrize("run_id", ["..", "../other/runs/x", "a/b", "/etc", "a b", "x" * 64, "-x", "é", "a\nb"])
def test_a_run_id_that_reaches_into_another_run_is_refused_by_every_step(run_id: str, pods: Any) -> None:
    for told in (
        pods.run(AdmitArgs, "wf-1", run_id=run_id, **EVENT),
        pods.run(FinalizeArgs, run_id=run_id, status="Failed"),
    ):
        assert told.code == 2
        assert "run-id = " in told.err
    assert list(pods.store.list("")) == []
