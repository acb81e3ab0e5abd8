"""Gangs that wait: in a queue, for the rest of their nodes, or in vain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.gang.host import Standing
from argosy.steps.gang.reasons import REFUSED
from argosy.steps.store.leaving import UNWRITTEN
from argosy.steps.supervisor.placing import STUCK_SECONDS, News, Refusal
from tests.cli.api_server import FakeApi, serving

if TYPE_CHECKING:
    from conftest import Rig


def phases(rig: Rig) -> list[tuple[int, str]]:
    return [(event.fields["attempt"], event.fields["phase"]) for event in rig.events("gang_waits")]


def test_a_queue_costs_nothing_and_no_clock_runs_in_it(rig: Rig) -> None:
    # 4 s in a queue, longer than the check-in may take; the pods ask long before anybody has seen them.
    rig.late = [[[0, "queued", 0], [4, "placing", 1], [5, "placed", 2]]]
    rig.options = {"check_in_timeout_seconds": 3, "placement_timeout_seconds": 3}
    assert rig.run() == 0, rig.log()
    assert phases(rig) == [(1, "queued"), (1, "placing"), (1, "placed")]
    assert rig.events("restart_ended") == []
    assert len(rig.events("restart_began")) == 1
    assert "as the script says: queued" in rig.log()


def test_what_is_partly_placed_for_too_long_is_given_back_and_charged_to_nobody(rig: Rig) -> None:
    partly: list[list[Any]] = [[0, "placing", 1]]
    rig.late = [partly, partly, partly]
    rig.options = {"placement_timeout_seconds": 1, "max_restarts": 1, "max_same_failure": 1}
    assert rig.run() == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["unschedulable"] * 3
    assert [event.fields["attempt"] for event in rig.events("gang_deleted")] == [1, 2, 3, 4]
    assert len(rig.assignments()) == rig.nnodes
    assert "1 of 2 pods had a node 1 s after the gang was admitted" in rig.log()


def test_back_in_the_queue_the_deadline_begins_anew(rig: Rig) -> None:
    rig.late = [[[0, "placing", 1], [1, "queued", 0], [3, "placing", 1], [4, "placed", 2]]]
    rig.options = {"placement_timeout_seconds": 2}
    assert rig.run() == 0, rig.log()
    assert rig.events("restart_ended") == []


def test_a_gang_that_somebody_deletes_while_it_waits_is_made_again_under_another_name(rig: Rig) -> None:
    rig.late = [[[0, "queued", 0], [0.5, "lost", 0]]]
    assert rig.run() == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["preempted_evicted"]
    assert len({event.fields["gang"] for event in rig.events("gang_created")}) == 2


def test_a_supervisor_killed_while_its_gang_waits_leaves_it_to_the_next(rig: Rig) -> None:
    rig.late = [[[0, "queued", 0]]]
    process = rig.start()
    rig.until(lambda: "is queued" in rig.log())
    process.kill()
    process.wait()
    rig.late = []
    assert rig.run() == 0, rig.log()
    assert len({event.fields["gang"] for event in rig.events("gang_deleted")}) == 1


def test_a_quota_that_others_use_up_is_waited_for_and_charged_to_nobody(rig: Rig) -> None:
    """Of pods it was; a count of JobSets or Services ended a run that was half done, as if no retry could help."""
    rig.late = [[[0, "full", 0], [1.5, "placed", 2]]]
    assert rig.run() == 0, rig.log()
    (waits,) = (event.fields for event in rig.events("gang_waits"))
    assert (waits["phase"], "exceeded quota" in waits["why"]) == ("queued", True)
    assert rig.events("restart_ended") == []


@pytest.mark.parametrize(
    ("used", "limited", "passes"), [("jobs=4,x=1", "jobs=4,x=9", True), ("jobs=0,x=0", "jobs=0,x=9", False)]
)
def test_a_quota_that_never_has_room_is_no_wait(used: str, limited: str, passes: bool, tmp_path: Path) -> None:
    said = f'jobs "g" is forbidden: exceeded quota: q, requested: jobs=1,x=1, used: {used}, limited: {limited}'

    class Full(FakeApi):
        def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
            return 403, {"reason": "Forbidden", "message": said}

    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "g"}}
    with serving(Full({"metadata": {"name": "w"}}), tmp_path) as kubeconfig:
        api = connect(kubeconfig=str(kubeconfig))
        with pytest.raises(StepError) as caught:
            api.create(job)
    cause, code = (Cause.UNSCHEDULABLE, 75) if passes else (Cause.CONFIG_OR_RBAC, 78)
    assert (caught.value.cause, int(caught.value.code)) == (cause, code)


QUOTA = "couldn't assign flavors to pod set main: "
WANTED = "previously considered podsets requests (0) + current podset request (2)"
POD = 'Error creating: pods "g-0-x" is forbidden: '


@pytest.mark.parametrize(
    ("why", "ends"),
    [
        (f'{POD}violates PodSecurity "restricted:latest": runAsNonRoot != true', True),
        (f"{POD}[minimum cpu usage per Container is 200m, but request is 100m]", True),
        (f"{POD}failed quota: small: must specify limits.cpu for: main", True),
        ('Error creating: admission webhook "policy" denied the request: no', True),
        (f"{POD}exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2", False),
        ('Error creating: admission webhook "hnc" denied the request: exceeded hierarchical quota in "team"', False),
        ("0/3 nodes are available: 3 Insufficient cpu.", False),
        (f"{QUOTA}insufficient quota for cpu in flavor a, {WANTED} > maximum capacity (0)", True),
        (f"{QUOTA}resource cpu unavailable in ClusterQueue", True),
        (f"{QUOTA}insufficient unused quota for cpu in flavor a, 1 more needed", False),
        (
            f"{QUOTA}insufficient quota for cpu in flavor a, {WANTED} > maximum capacity (0), "
            "insufficient unused quota for cpu in flavor b, 1 more needed",
            False,
        ),
    ],
)
def test_what_can_never_have_its_pods_is_not_queued(why: str, ends: bool) -> None:
    """A queue that has less in all than the gang wants was waited for without an end."""
    refusal, standing = (
        Refusal(900.0, has_fitted=False),
        Standing(phase="refused" if REFUSED.search(why) else "queued", why=why),
    )
    assert not refusal.is_over(standing, 100.0)
    assert not refusal.is_over(standing, 100.0 + STUCK_SECONDS)
    assert refusal.is_over(standing, 101.0 + STUCK_SECONDS) is ends
    assert not refusal.is_over(Standing(phase="placing", why=why), 200.0)  # some came: it is looked at anew
    assert not refusal.is_over(standing, 201.0)
    assert refusal.verdict(standing).exit_code == 78


def test_of_the_same_place_other_words_are_told_less_and_less_often() -> None:
    """Volcano names another node each second: two days in its queue were an object in the store for each."""
    news, told = News(), []
    for second in range(2 * 24 * 3600):
        standing = Standing(phase="queued", why=f"can possibly be assigned to node-{second % 3}" if second > 5 else "")
        if news.is_worth_telling(standing, 0, float(second)):
            told.append(second)
    assert told[:2] == [0, 6], told  # the first words at once
    assert told[2] >= 30
    assert len(told) < 300
    assert news.is_worth_telling(Standing(phase="placing", why="node-1"), 1, second + 1.0)
    assert news.is_worth_telling(Standing(phase="placing", why="node-1"), 2, second + 1.5)
    assert not news.is_worth_telling(Standing(phase="placing", why="node-2"), 2, second + 2.0)


def test_a_queue_that_became_too_small_for_what_trained_in_it_is_waited_for(rig: Rig) -> None:
    """Whoever took its quota gives it back: the run had ended for good."""
    small = f"{QUOTA}insufficient quota for cpu in flavor a, {WANTED} > maximum capacity (0)"
    room = rig.folder / "room"
    rig.late = [[], [[0, "queued", 0, small], [str(room), "placed", 2]]]
    rig.inject = ("preempt:node=1@step=5",)
    process = rig.start()
    rig.until(lambda: "is queued" in rig.log())  # so long that it would have been believed
    room.touch()
    assert process.wait(60) == 0, rig.log()
    assert phases(rig) == [(2, "queued"), (2, "placed")]


def test_a_webhook_that_does_not_answer_is_no_queue_and_has_as_long_as_nodes_have() -> None:
    """The gang stood as queued, without an end."""
    why = 'Error creating: Internal error occurred: failed calling webhook "pods.policy": connection refused'
    refusal, standing = (
        Refusal(900.0, has_fitted=False),
        Standing(phase="refused" if REFUSED.search(why) else "queued", why=why),
    )
    assert not refusal.is_over(standing, 100.0)
    assert not refusal.is_over(standing, 1000.0)
    assert refusal.is_over(standing, 1001.0)
    verdict = refusal.verdict(standing)
    assert (verdict.cause, verdict.exit_code) == ("config_or_rbac", 75)


def test_a_run_whose_pods_are_refused_ends_with_what_the_cluster_said(rig: Rig) -> None:
    said = f"{POD}violates PodSecurity: runAsNonRoot != true"
    rig.late = [[[0, "refused", 0, said]]]
    assert rig.run(30) == 78, rig.log()
    assert [event.fields["cause"] for event in rig.events("train_ended")] == ["config_or_rbac"]
    assert said in rig.log()
    assert len(rig.events("gang_deleted")) == 1


def test_a_supervisor_whose_rights_are_taken_says_what_it_ended_for(rig: Rig) -> None:
    """It could end no gang either, and the run's log had no end: "The next start is under way"."""
    rig.late = [[[0, "forbidden", 0]]]
    assert rig.run(30) == 78, rig.log()
    assert [event.fields["cause"] for event in rig.events("train_ended")] == ["config_or_rbac"]
    assert "a gang was left: jobsets is forbidden" in rig.log()


def test_of_a_supervisor_whose_store_is_away_it_is_not_said_that_it_left_a_gang(rig: Rig) -> None:
    """Its gangs were gone, and nothing took that down."""
    rig.late = [[[0, "unwritten", 0]]]
    assert rig.run(30) == 75, rig.log()
    assert UNWRITTEN in rig.log()
    assert "a gang was left" not in rig.log()


def test_a_pod_without_its_image_is_told_of_at_once(rig: Rig) -> None:
    """It was said when it had been believed, a minute later."""
    rig.late = [[[0, "starting", 99], [2, "placed", 99]]]
    assert rig.run() == 0, rig.log()
    waits = [event.fields for event in rig.events("gang_waits")]
    assert [each["why"] for each in waits if each["phase"] == "starting"] == [
        "no-image on node-9: ErrImagePull: not found"
    ]
    assert "is starting, 3 of 2 pods have a node: no-image on node-9: ErrImagePull: not found" in rig.log()


def test_an_elastic_gang_goes_on_with_fewer_nodes_and_asks_for_all_the_next_time(rig: Rig) -> None:
    rig.nnodes = 3
    rig.late = [[[0, "placing", 2]]]
    rig.plan["faults"] = [{"index": 1, "step": 5, "how": "segv"}]  # goes on elsewhere: a new gang
    rig.options = {"placement_timeout_seconds": 1, "min_nnodes": 2, "max_restarts": 1}
    assert rig.run() == 0, rig.log()
    assert [event.fields["nnodes"] for event in rig.events("gang_created")] == [3, 2, 3]
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == ["unschedulable", "native_crash"]
    assert "2 of 3 pods had a node 1 s after the gang was admitted, enough to go on with" in rig.log()
    assert rig.assignments()[-1]["resume_step"] == 3
