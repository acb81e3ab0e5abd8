"""Gate and promotion: what passes, what moves the pointer, and that it moves once."""

from __future__ import annotations

import re
from typing import Any

import pytest

from argosy.steps.contract.arguments import GateArgs, PromoteArgs
from argosy.steps.contract.layout import run_prefix
from argosy.steps.evaluations import evaluation_key, write_record

A, B, C = "a" * 64, "b" * 64, "c" * 64


def evaluated(pods: Any, workflow: str, digest: str, value: float, metric: str = "bits_per_byte") -> dict[str, Any]:
    record = {"checkpoint_digest": digest, "checkpoint_uri": f"s3://x/{digest}", "metric": metric, "value": value}
    write_record(pods.store, evaluation_key(run_prefix("run", workflow), digest), record)
    return {"checkpoint_digest": digest, "metric": metric, "value": repr(value), "pointer": "production"}


def gate(pods: Any, workflow: str, digest: str, measured: float, **given: Any) -> Any:
    metric = given.pop("metric", "bits_per_byte")
    usual = evaluated(pods, workflow, digest, measured, metric) | {"direction": "min", "floor": "2.2"}
    return pods.run(GateArgs, workflow, **usual | given)


def promote(pods: Any, workflow: str, digest: str, **given: Any) -> Any:
    return pods.run(PromoteArgs, workflow, **{"checkpoint_digest": digest, "pointer": "production"} | given)


def history(pods: Any) -> list[Any]:
    return [pods.json(info.key) for info in pods.store.list("run/pointers/production")]


def promoted(pods: Any, workflow: str, digest: str, value: float) -> None:
    assert gate(pods, workflow, digest, value).outputs["decision"] == "promote"
    assert promote(pods, workflow, digest).outputs["promoted-digest"] == digest


@pytest.mark.parametrize(
    ("value", "given", "decision", "reason"),
    [
        (2.31, {}, "refuse", "bits_per_byte 2.31 is not below floor 2.2"),
        (2.2, {}, "promote", "bits_per_byte 2.2: passes floor 2.2, nothing was promoted before"),
        (9.0, {"floor": ""}, "promote", "bits_per_byte 9: no floor, nothing was promoted before"),
        (0.8, {"direction": "max", "floor": "0.9"}, "refuse", "bits_per_byte 0.8 is not above floor 0.9"),
        (0.9, {"direction": "max", "floor": "0.9", "baseline": "none"}, "promote",
         "bits_per_byte 0.9: passes floor 0.9, no baseline asked for"),
        (-1.5, {"floor": "-1"}, "promote", "bits_per_byte -1.5: passes floor -1, nothing was promoted before"),
    ],
)  # fmt: skip
def test_floor(value: float, given: dict[str, str], decision: str, reason: str, pods: Any) -> None:
    told = gate(pods, "wf-1", A, value, **given)
    assert (told.code, told.outputs) == (0, {"decision": decision, "reason": reason}), told.err
    (event,) = pods.events("wf-1", "gated")
    assert (event.fields["decision"], event.fields["reason"], event.fields["value"]) == (decision, reason, value)


@pytest.mark.parametrize(
    ("value", "given", "decision"),
    [
        (2.0, {}, "promote"), (2.0000001, {}, "refuse"), (1.9, {}, "promote"), (2.1, {"baseline": "none"}, "promote"),
        (2.1, {"direction": "max", "floor": "1"}, "promote"), (1.9, {"direction": "max", "floor": "1"}, "refuse"),
        (1.0, {"metric": "loss"}, "refuse"),
    ],
)  # fmt: skip
def test_baseline_is_what_is_promoted_now(value: float, given: dict[str, str], decision: str, pods: Any) -> None:
    promoted(pods, "wf-1", A, 2.0)
    told = gate(pods, "wf-2", B, value, **given)
    assert told.outputs["decision"] == decision, told.outputs["reason"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"value": "nan"}, "finite"), ({"value": "inf"}, "finite"), ({"value": "two"}, "not a number"),
        ({"direction": "up"}, "direction = 'up'"), ({"floor": "low"}, "not a finite"), ({"floor": "nan"}, "--floor"),
        ({"baseline": "best"}, "baseline = 'best'"), ({"pointer": "../x"}, "pointer = '../x'"),
        ({"checkpoint_digest": "latest"}, "64 hex digits"), ({"checkpoint_digest": B}, "no evaluation in this run"),
        ({"value": "2.05"}, "run evaluate"),
    ],
)  # fmt: skip
def test_wrong_gate_is_one_clear_line(given: dict[str, str], said: str, pods: Any) -> None:
    told = gate(pods, "wf-1", A, 2.0, **given)
    assert (told.code, told.err.count("\n"), told.outputs) == (2, 1, {})
    assert said in told.err


def test_promotion_records_why_and_happens_once(any_pods: Any) -> None:
    promoted(any_pods, "wf-1", A, 2.0)
    promoted(any_pods, "wf-2", B, 1.9)
    assert promote(any_pods, "wf-2", B).outputs["promoted-digest"] == B
    assert promote(any_pods, "wf-1", A).outputs["promoted-digest"] == A, "a retry of the older one answers the same"
    first, second = history(any_pods)
    assert (second["digest"], second["previous"], second["value"], second["metric"]) == (B, A, 1.9, "bits_per_byte")
    assert (second["workflow"], second["run_id"], second["uri"]) == ("wf-2", "wf-2", f"s3://x/{B}")
    assert (first["previous"], first["rollback"]) == ("", False)
    assert any_pods.events("wf-2", "promoted")[0].fields["previous"] == A


def test_only_the_evaluated_and_passed_checkpoint_of_this_run(pods: Any) -> None:
    promoted(pods, "wf-1", A, 2.0)
    for told in (promote(pods, "wf-2", A), promote(pods, "wf-1", B)):
        assert told.code == 2
        assert "never evaluated in run" in told.err
    evaluated(pods, "wf-3", C, 1.0)
    assert "never came to the gate" in promote(pods, "wf-3", C).err
    assert gate(pods, "wf-4", B, 9.0).outputs["decision"] == "refuse"
    told = promote(pods, "wf-4", B)
    assert (told.code, told.outputs) == (2, {})
    assert "refused by the gate: bits_per_byte 9 is not below floor 2.2" in told.err
    gate(pods, "wf-5", B, 1.5)
    assert "says 1.5" in promote(pods, "wf-5", B, metric="bits_per_byte", value="1.4").err
    assert [entry["digest"] for entry in history(pods)] == [A]


def test_pointer_that_moved_after_the_gate_is_judged_again(pods: Any) -> None:
    for workflow, digest, value in [("wf-1", A, 2.0), ("wf-2", B, 1.9), ("wf-3", C, 1.8)]:
        assert gate(pods, workflow, digest, value).outputs["decision"] == "promote"
    assert promote(pods, "wf-2", B).outputs["promoted-digest"] == B
    told = promote(pods, "wf-1", A)
    assert (told.code, told.outputs["promoted-digest"]) == (0, "")
    assert "pointer moved after the gate: bits_per_byte 2 is worse than 1.9" in told.out
    assert promote(pods, "wf-3", C).outputs["promoted-digest"] == C
    assert [entry["digest"] for entry in history(pods)] == [B, C]


def test_promotions_at_the_same_time_form_one_history(any_pods: Any) -> None:
    digests = {f"racer-{i}": str(i) * 64 for i in range(4)}
    for workflow, digest in digests.items():
        gate(any_pods, workflow, digest, 2.0)
    usual = {"pointer": "production"}
    started = [any_pods.start(PromoteArgs, name, checkpoint_digest=d, **usual) for name, d in digests.items()]
    assert [any_pods.finish(*one).outputs["promoted-digest"] for one in started] == list(digests.values())
    entries = history(any_pods)
    assert {entry["digest"] for entry in entries} == set(digests.values())
    assert [entry["previous"] for entry in entries] == ["", *[entry["digest"] for entry in entries[:-1]]]


def test_rollback_goes_back_one_by_one(pods: Any) -> None:
    for workflow, digest, value in [("wf-1", A, 2.0), ("wf-2", B, 1.9), ("wf-3", C, 1.8)]:
        promoted(pods, workflow, digest, value)
    assert promote(pods, "back-1", C, rollback=True).outputs["promoted-digest"] == B
    assert promote(pods, "back-1", C, rollback=True).outputs["promoted-digest"] == B, "a retry moves nothing"
    assert "not at cccccccccccc" in promote(pods, "back-2", C, rollback=True).err
    assert promote(pods, "back-2", B, rollback=True).outputs["promoted-digest"] == A
    told = promote(pods, "back-3", A, rollback=True)
    assert (told.code, told.outputs) == (2, {})
    assert "nothing to go back to: what it is at now, aaaaaaaaaaaa, was the first" in told.err
    assert [entry["digest"] for entry in history(pods)] == [A, B, C, B, A]
    assert [entry["rollback"] for entry in history(pods)] == [False, False, False, True, True]
    assert history(pods)[-1]["previous"] == B
    assert gate(pods, "wf-4", B, 1.95).outputs["decision"] == "promote", "the baseline is what is promoted now"


def test_a_rollback_of_what_is_not_promoted_any_more_moves_nothing(pods: Any) -> None:
    """B was to go; C had been promoted meanwhile, and the way back from B promoted B."""
    for workflow, digest, value in [("wf-1", A, 2.0), ("wf-2", B, 1.9), ("wf-3", C, 1.8)]:
        promoted(pods, workflow, digest, value)
    told = promote(pods, "back", B, rollback=True)
    assert (told.code, told.outputs) == (2, {})
    assert "it is at cccccccccccc, not at bbbbbbbbbbbb: look again" in told.err
    assert [entry["digest"] for entry in history(pods)] == [A, B, C]


def test_nothing_to_roll_back(pods: Any) -> None:
    told = promote(pods, "back", A, rollback=True)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert re.search(r"nothing to go back to: nothing was ever promoted below file://\S+/\w+$", told.err), told.err
