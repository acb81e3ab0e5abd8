"""What status, explain and the report say of the network, from the events that nodes wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.nccl.symptoms import SYMPTOMS
from argosy.steps.record.advice import advice_for
from argosy.steps.record.building import build_record
from argosy.steps.record.tally import Tally
from argosy.steps.runlog import Event

WHY = 'expected NET/IB with GDR, got NET/Socket because "NET/IB : No device found."'
REMEDY = "Ask for the RDMA resource in the pod."


def told(story, moment: float, restart: int, node: str, state: str, sentence: str, remedy: str = "") -> None:
    fields = {"state": state, "sentence": sentence, "remedy": remedy, "profile": "ib-sriov"}
    story.at(moment, "transport", attempt=1, restart=restart, node=node, **fields)


@pytest.fixture
def fallen_back(story) -> Path:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=2, nproc_per_node=8)
    story.at(1.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    told(story, 2.0, 0, "node-0", "ok", "NET/IB with GDR on 8 devices")
    story.at(9.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=0)
    told(story, 10.0, 1, "node-0", "unknown", "expected NET/IB with GDR, not known: no channel is open")
    told(story, 11.0, 1, "node-0", "ok", "NET/IB with GDR on 8 devices")
    told(story, 11.5, 1, "node-1", "wrong", WHY, REMEDY)
    story.steps(1, 1, 1, 20, 12.0)
    story.at(30.0, "train_ended", exit_code=0)
    return story.finish("Succeeded", 31.0)


def test_status_has_one_line_of_the_newest_start_and_begins_with_what_is_wrong(fallen_back, argosy) -> None:
    _, out, _ = argosy("status")
    lines = [line for line in out.splitlines() if "transport" in line]
    assert lines == [f"  transport: wrong on node-1: {WHY} (and 1 more line: argosy explain)"]


def test_explain_says_each_node_and_the_way_to_mend_it(fallen_back, argosy) -> None:
    _, out, _ = argosy("explain")
    assert f"Transport wrong on node-1: {WHY}.\n" in out
    assert "Transport ok on node-0: NET/IB with GDR on 8 devices.\n" in out
    assert f"  To mend it: {REMEDY}\n" in out


def test_json_has_the_verdict_of_each_node(fallen_back, argosy) -> None:
    _, out, _ = argosy("status", "--json")
    assert json.loads(out)["transport"] == [
        {"node": "node-0", "state": "ok", "sentence": "NET/IB with GDR on 8 devices", "remedy": None},
        {"node": "node-1", "state": "wrong", "sentence": WHY, "remedy": REMEDY},
    ]


def test_the_report_has_a_row_for_each_node(fallen_back, argosy) -> None:
    code, out, _ = argosy("report", "--json")
    page = Path(json.loads(out)["report"]).read_text()
    assert code == 0
    assert "<h2>Transport <small>what NCCL&#39;s log says" in page or "<h2>Transport <small>what NCCL's log" in page
    assert '<span class="tag bad">wrong</span>' in page
    assert "got NET/Socket because &#34;NET/IB : No device found.&#34;" in page


def test_a_run_without_a_fabric_says_nothing_of_it(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    for verb in ("status", "explain", "report"):
        assert "ransport" not in argosy(verb)[1]
    assert json.loads(argosy("status", "--json")[1])["transport"] == []


def test_many_nodes_that_say_the_same_are_one_line(story, argosy) -> None:
    story.at(1.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    for index in range(300):
        told(story, 2.0, 0, f"node-{index:03}", "wrong", WHY, REMEDY)
    story.finish("Running", None)
    _, out, _ = argosy("explain")
    assert f"Transport wrong on 300 nodes (node-000, node-001, ...): {WHY}." in out
    assert out.count("To mend it") == 1


@pytest.mark.parametrize("fields", [{}, {"attempt": "x", "restart": None, "node": 7, "state": ["wrong"]}])
def test_a_senseless_event_is_no_reason_to_fail(fields) -> None:
    event = Event(1.0, "transport", "w", fields)
    assert len(build_record([event], {}).transports) == 1
    assert Tally().absorb(event).startswith("transport on ")


def test_a_run_that_is_watched_tells_it_with_the_remedy() -> None:
    fields = {"node": "node-1", "state": "wrong", "sentence": WHY, "remedy": REMEDY}
    assert Tally().absorb(Event(1.0, "transport", "w", fields)) == f"warning: transport on node-1: {WHY}\n    {REMEDY}"


def test_faults_of_the_environment_are_told_once_for_all_nodes(story, argosy) -> None:
    fault = "error NCCL001: no NCCL and no torch ever read NCCL_TIMEOUT; remove it"
    tally = Tally()
    for index in range(3):
        fields = {"node": f"node-{index}", "variables": ["NCCL_TIMEOUT=3600 (pod)"], "findings": [fault]}
        story.at(1.0, "environment", attempt=1, restart=0, **fields)
        said = tally.absorb(Event(1.0, "environment", "w", fields))
        assert said == (f"environment: {fault}" if index == 0 else "")
    story.at(1.5, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.finish("Running", None)
    assert argosy("explain")[1].count(f"Environment: {fault}.\n") == 1


def test_a_known_line_has_a_narrower_remedy_than_its_cause() -> None:
    for symptom in SYMPTOMS:
        if symptom.cause is not None:
            assert advice_for(symptom.cause, symptom.example) == (symptom.cause.meaning, symptom.remedy)
    assert advice_for("nccl_network_init", WHY)[1].startswith("Ask for the RDMA resource in the pod")
    assert advice_for("user_exception", "KeyError: 'x'") == (Cause.USER_EXCEPTION.meaning, Cause.USER_EXCEPTION.remedy)
