"""What a run waited for before its nodes were there, as status and report tell it."""

from __future__ import annotations

import fcntl
import io
from typing import Any

import pytest

from argosy.steps.record.building import build_record
from argosy.steps.record.naming import node_line
from argosy.steps.record.story import headline
from argosy.steps.record.tally import Tally
from argosy.steps.record.waiting import waiting_sentence
from argosy.steps.runlog import Event
from argosy.workflows.cli.explain import story
from argosy.workflows.cli.live import PlainScreen, Watch
from argosy.workflows.cli.status import lines as status


def event(time: float, kind: str, **fields: Any) -> Event:
    return Event(time, kind, "supervisor", {"attempt": 1, "gang": "g", **fields})


def waits(time: float, phase: str, placed: int, why: str = "") -> Event:
    return event(time, "gang_waits", phase=phase, placed=placed, nnodes=3, why=why)


@pytest.mark.parametrize(
    ("events", "sentence"),
    [
        ([event(0, "gang_created")], ""),
        (
            [
                waits(10, "queued", 0, "quota"),
                waits(70, "placing", 1),
                waits(130, "placing", 2),
                waits(160, "placed", 3),
            ],
            "1 min 00 s in the queue; 2.0 node-minutes held by gangs that were not whole (quota)",
        ),
        ([waits(10, "placing", 2), event(40, "gang_deleted")], "1.0 node-minutes held by gangs that were not whole"),
        (
            [waits(0, "queued", 0, "no room"), event(30, "step")],
            "gang 1 is queued, 0 of 3 pods have a node; 30.0 s in the queue (no room)",
        ),
        ([waits(0, "placing", 1, "no room")], "gang 1 is placing, 1 of 3 pods have a node (no room)"),
        ([waits(0, "starting", 3, "no image"), event(30, "restart_ended")], ""),
        ([waits(0, "starting", 3, "no image")], "gang 1 is starting, 3 of 3 pods have a node (no image)"),
        ([waits(0, "refused", 0, "a webhook")], "gang 1 is refused, 0 of 3 pods have a node (a webhook)"),
        ([waits(0, "queued", 0, "no room"), event(30, "train_ended")], "30.0 s in the queue (no room)"),
    ],
)
def test_waits_are_told(events: list[Event], sentence: str) -> None:
    assert waiting_sentence(build_record(events, {"name": "w"})) == sentence


QUEUED = [event(0, "gang_created"), waits(10, "queued", 0, "no room")]
STEPS = [event(at, "step", restart=0, rank=0, step=at) for at in (20, 30, 40)]
HANGS = [event(0, "gang_created"), event(10, "restart_began", restart=0), *STEPS]


@pytest.mark.parametrize(
    ("state", "seconds", "useful"),
    [
        ({"phase": "Running"}, 90.0, 30.0), ({"phase": "Running", "interrupted": "SIGKILL"}, 0.0, 0.0),
        ({"phase": "Running", "silent_since": 10.0}, 0.0, 30.0), ({"phase": "Failed"}, 0.0, 0.0),
    ],
)  # fmt: skip
def test_what_goes_on_lasts_until_now_though_nothing_is_told(
    state: dict[str, Any], seconds: float, useful: float
) -> None:
    """For hours a queue was of two seconds, and the goodput of a hanging run that of its last step. What is over has
    lost its steps: no checkpoint holds them.
    """
    queued = build_record(QUEUED, {"name": "w", **state}, 100.0).waiting
    assert queued is not None
    assert queued.queued_seconds == seconds
    goodput = build_record(HANGS, {"name": "w", **state}, 130.0).goodput
    assert goodput is not None
    assert (goodput.wall, goodput.useful, goodput.ending) == (40.0 + seconds, useful, seconds)


def test_status_tells_how_long_it_has_been_so_now(story: Any, argosy: Any) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=3, nproc_per_node=1)
    story.at(10.0, "gang_waits", attempt=1, gang="g", phase="queued", placed=0, nnodes=3, why="no room")
    folder = story.finish("Running", None)
    story.now += 90.0
    with (folder / "engine.lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, out, err = argosy("status")
    assert (code, err) == (0, "")
    assert "1 min 30 s in the queue" in out


UNSTARTED = {"id": "1", "type": "Pod", "displayName": "admit(0)", "templateName": "admit", "phase": "Pending"}


def test_a_run_that_trained_is_not_said_to_have_not_when_its_store_was_emptied() -> None:
    node = {**UNSTARTED, "templateName": "train", "phase": "Succeeded"}
    state = {"name": "w", "phase": "Succeeded", "annotations": {"argosy.dev/run-name": "r"}, "nodes": [node]}
    assert headline(build_record([], state)).endswith("of which nothing is left in the store.")


@pytest.mark.parametrize(
    ("message", "waits"),
    [
        ('CreateContainerConfigError: secret "s3" not found', True),
        ("Unschedulable: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.", True),
        ("PodInitializing", False),
        ("", False),
    ],
)
def test_a_step_whose_pod_cannot_begin_says_why(message: str, waits: bool) -> None:
    """Argo shows it in ``argo get`` only: a Secret that is missing was waited for in silence."""
    node = {**UNSTARTED, "message": message}
    assert node_line(node) == (f"step admit waits: {message}" if waits else "")
    state = {"name": "w", "phase": "Running", "annotations": {"argosy.dev/run-name": "r"}, "nodes": [node]}
    said = f" The step admit waits: {message.rstrip('.')}." if waits else ""
    assert headline(build_record([], state)) == "Training has not begun." + said


def test_an_image_that_no_node_can_pull_is_told_of_once() -> None:
    """Two lines came with every try, in turn, as long as it was waited for."""
    shown = io.StringIO()
    watch = Watch(PlainScreen(shown))
    for message in (
        "ErrImagePull: failed to do request: read udp 10.0.0.1:54924: i/o timeout",
        'ImagePullBackOff: Back-off pulling image "argosy/step:9"',
        "ErrImagePull: failed to do request: read udp 10.0.0.1:54337: i/o timeout",
        'CreateContainerConfigError: secret "s3" not found',
    ):
        watch._tell_node({**UNSTARTED, "message": message})
    assert [line.split()[6].rstrip(":") for line in shown.getvalue().splitlines()] == [
        "ErrImagePull",
        "CreateContainerConfigError",
    ]


def test_why_a_try_ended_is_told_until_a_training_has_more_to_say() -> None:
    ended = {
        **UNSTARTED,
        "templateName": "train",
        "displayName": "train(0)",
        "phase": "Error",
        "message": "pod deleted",
    }
    nodes = [ended, {**ended, "id": "2", "displayName": "train(1)", "phase": "Running", "message": ""}]
    state = {"name": "w", "phase": "Running", "annotations": {"argosy.dev/run-name": "r"}, "nodes": nodes}
    assert headline(build_record([], state)).endswith("The step train ended in an error: pod deleted.")
    began = event(9, "restart_began", restart=0, restored_step=0)
    assert "pod deleted" not in headline(build_record([began], state))


def test_a_training_that_fails_again_and_again_before_it_begins_says_why() -> None:
    """Six tries had ended on a full disk, of which status and explain said that training had not begun."""
    full = '{"cause":"disk_full","message":"cannot write shard: No space left on device"}'
    failed = {**UNSTARTED, "templateName": "train", "displayName": "train(0)", "phase": "Failed", "message": full}
    nodes = [failed, {**failed, "id": "2", "displayName": "train(1)", "phase": "Running", "message": ""}]
    state = {"name": "w", "phase": "Running", "annotations": {"argosy.dev/run-name": "r"}, "nodes": nodes}
    why = "The step train failed: disk_full: cannot write shard: No space left on device."
    assert headline(build_record([], state)) == f"Training has not begun. {why}"
    stopped = headline(build_record([], {**state, "message": "stopped by SIGTERM; run it again to resume"}))
    assert stopped == f"stopped by SIGTERM; run it again to resume. {why}"


def test_gangs_that_did_not_start_are_told_before_the_run_gives_up() -> None:
    """Three gangs ended for want of the image while status said that training had not begun."""
    ended = event(9, "restart_ended", restart=0, cause="image_pull", node="node-b", quote="Back-off pulling image")
    record = build_record([ended], {"name": "w", "phase": "Running", "annotations": {"argosy.dev/run-name": "r"}})
    said = "Training has not begun: 1 start failed, the last for image_pull: node-b."
    assert headline(record) == said
    assert story(record)[:2] == [f"w: Running. {said}", "    | Back-off pulling image"]
    assert f"  {said}" in status(record, 10)


def test_a_gang_that_got_no_pod_that_far_is_no_attempt() -> None:
    ended = event(9, "restart_ended", restart=0, cause="image_pull", node="node-b", quote="Back-off pulling image")
    assert (
        Tally().absorb(ended)
        == "gang 1 failed before its ranks were started: image_pull: node-b\n    | Back-off pulling image"
    )


def test_status_and_explain_say_whether_it_waits_or_has_waited() -> None:
    """A gang that was queued showed nothing until the next event."""
    waiting = build_record([waits(0, "queued", 0, "no room")], {"name": "w", "phase": "Running"})
    said = "gang 1 is queued, 0 of 3 pods have a node (no room)"
    assert f"  waits: {said}" in status(waiting, 10.0)
    assert f"Waits for nodes: {said}." in story(waiting)
    placed = build_record([waits(0, "queued", 0), waits(30, "placed", 3)], {"name": "w", "phase": "Running"})
    assert "  waited: 30.0 s in the queue" in status(placed, 40.0)


def test_whoever_follows_a_run_is_told_what_it_waits_for() -> None:
    tally = Tally()
    assert tally.absorb(waits(10, "queued", 0, "quota")) == "gang 1 is queued, 0 of 3 pods have a node: quota"
    assert tally.waiting() == "gang 1 is queued, 0 of 3 pods have a node"
    tally.absorb(event(20, "restart_began"))
    assert tally.waiting() == "starting, no step yet"


def test_a_fault_by_time_is_not_said_to_have_come_at_step_0() -> None:
    told = Tally().absorb(event(9, "injected", fault="segv", rank=2, step=0, asked="segv:rank=2@seconds=4"))
    assert told == "injected: segv (rank 2)"
    assert Tally().absorb(event(9, "injected", fault="kill", rank=0, step=7)) == "injected: kill (rank 0, after step 7)"
