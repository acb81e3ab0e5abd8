"""Who stood by and who took over, as status, explain and whoever follows a run are told."""

from __future__ import annotations

from typing import Any

from argosy.steps.record.building import build_record
from argosy.steps.record.story import way_on
from argosy.steps.record.summary import summary
from argosy.steps.record.tally import Tally
from argosy.steps.runlog import Event
from argosy.workflows.cli.explain import story
from argosy.workflows.cli.status import lines


def event(time: float, kind: str, **fields: Any) -> Event:
    return Event(time, kind, "supervisor", {"attempt": 1, **fields})


def stands(time: float, node: int, ready: bool = True) -> Event:
    return event(time, "standing_by", node=f"node-{node}", pod=f"pod-{node}", ready=ready)


EVENTS = [
    event(0, "gang_created", gang="g", nnodes=2, nproc_per_node=1),
    event(1, "restart_began", restart=0),
    stands(2, 2, ready=False),
    stands(3, 2),
    event(50, "restart_ended", restart=0, cause="preempted_evicted", node="node-1"),
    event(51, "took_over", restart=1, node_rank=1, node="node-2", pod="pod-2", from_node="node-1", from_pod="pod-1"),
    event(51, "restart_began", restart=1),
    stands(60, 3, ready=False),
]


def test_status_says_who_stands_by_now() -> None:
    running = {"name": "w", "phase": "Running"}
    assert "  spares: 1 node ready (node-2)" in lines(build_record(EVENTS[:4], running), 10.0)
    text = "  spares: 1 node preparing (node-3); took over: node-2 in place of node-1"
    assert text in lines(build_record(EVENTS, running), 70.0)
    gone = [*EVENTS[:4], event(20, "spare_lost", node="node-2", pod="pod-2")]
    assert "  spares: stood by: node-2" in lines(build_record(gone, running), 30.0)
    assert not any("spares" in line for line in lines(build_record(EVENTS[:2], running), 5.0))


def test_explain_says_who_went_on_in_whose_place() -> None:
    record = build_record(EVENTS, {"name": "w"})
    assert way_on(record, 0).startswith("Started again on the same pods, node-2 in place of node-1 after")
    ended = build_record([*EVENTS, event(90, "train_ended", cause="none", exit_code=0)], {"name": "w"})
    assert "Spares: stood by: node-2, node-3; took over: node-2 in place of node-1." in story(ended)
    told = {"gang": 1, "restart": 1, "node_rank": 1, "node": "node-2", "from_node": "node-1"}
    assert summary(record, "")["spares"] == {"ready": [], "preparing": ["node-3"], "took_over": [told]}


def test_whoever_follows_a_run_is_told() -> None:
    tally = Tally()
    said = [line for each in EVENTS if (line := tally.absorb(each)).startswith("spare")]
    assert said == [
        "spare: node-2 gets ready to stand by",
        "spare: node-2 stands by",
        "spare: node-2 in place of node-1",
        "spare: node-3 gets ready to stand by",
    ]
