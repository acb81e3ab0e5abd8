"""The record: a pure function of events and state."""

from __future__ import annotations

import random

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.runlog import Event, read_events
from argosy.workflows.cli.explain import story as explained
from argosy.workflows.cli.run import exit_code
from argosy.workflows.cli.tally import Tally
from argosy.workflows.record.advice import ADVICE
from argosy.workflows.record.building import build_record
from argosy.workflows.record.story import goodput_sentence, headline, outcome, way_on
from argosy.workflows.record.summary import summary


def test_attempts_are_the_starts_of_the_agents(story, tell) -> None:
    tell.killed_and_resumed(story)
    tell.judged(story)
    record = story.record()
    facts = [(each.cause, each.signal, each.rank, each.restored_step, each.last_step) for each in record.restarts]
    assert facts == [
        ("unknown", 9, 1, 0, 47),
        ("preempted_evicted", None, None, 40, 110),
        ("", None, None, 100, 200),
    ]
    assert [each.step for each in record.checkpoints if each.restored] == [40, 100]
    assert record.checkpoints[-1].final
    assert outcome(record) == ("Promoted", "good")
    assert "3 attempts, 2 failures" in headline(record)


def test_goodput_parts_add_up_and_lost_steps_are_counted_once(story, tell) -> None:
    tell.killed_and_resumed(story)
    goodput = story.record().goodput
    parts = goodput.useful + goodput.lost + goodput.starting + goodput.recovering + goodput.ending
    assert parts == pytest.approx(goodput.wall)
    assert goodput.wall == pytest.approx(126.2 - 4.0)
    assert goodput.lost_steps == 7 + 10
    # 40 + 60 kept steps of 0.5 s, 100 of 0.4 s
    assert goodput.useful == pytest.approx(90.0, abs=0.5)


def streamed(story, moment: float, rank: int, waited: float) -> None:
    read = {"bytes": 1 << 20, "fetched_bytes": 2 << 20, "requests": 3, "refetched": int(rank == 1)}
    story.at(moment, "streamed", node=f"node-{rank}", rank=rank, waited_seconds=waited, **read)


def test_waiting_for_streamed_data_is_no_work(story) -> None:
    """Two starts of 100 steps of a second each; the second goes on from step 50."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=2, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    streamed(story, 9.0, 0, 5.0)  # before the first step: it is a part of starting
    story.steps(1, 0, 1, 100, 10.0, 1.0)
    for rank, waited in ((0, 4.0), (1, 10.0)):
        for moment in (20.0, 30.0):
            streamed(story, moment, rank, waited)
    story.at(110.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=100)
    story.at(120.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=50, restored_digest="a" * 64)
    story.steps(1, 1, 51, 150, 130.0, 1.0)
    streamed(story, 229.5, 0, 1000.0)  # more than there is: a rank may wait while another one saves
    story.at(230.0, "restart_ended", attempt=1, restart=1, exit_code=0, last_step=150)
    story.at(230.0, "train_ended", exit_code=0)
    record = story.record()
    goodput = record.goodput
    assert goodput.waiting == pytest.approx(20.0 + 100.0)
    assert goodput.useful == pytest.approx(50 * 0.8)
    parts = goodput.useful + goodput.lost + goodput.starting + goodput.recovering + goodput.ending + goodput.waiting
    assert parts == pytest.approx(goodput.wall)
    assert goodput_sentence(record).endswith("went into steps that were kept, 52.2% into waiting for data")
    told = record.streaming
    assert (told.ranks, told.rank, told.node, told.waited_seconds) == (2, 0, "node-0", 1013.0)
    assert summary(record, "")["streamed"] == {
        "bytes": 6 << 20, "fetched_bytes": 12 << 20, "requests": 18, "refetched": 2, "waited_seconds": 1013.0,
    }  # fmt: skip


def test_an_uninterrupted_run_loses_nothing(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 100, 1.0, 1.0)
    story.at(100.0, "restart_ended", attempt=1, restart=0, exit_code=0, last_step=100)
    story.at(100.0, "train_ended", exit_code=0)
    goodput = story.record().goodput
    assert goodput.lost == goodput.waiting == 0
    assert goodput.lost_steps == 0
    assert goodput.ratio == pytest.approx(1.0)


def test_a_restart_whose_supervisor_died_has_an_end_all_the_same(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 30, 1.0, 1.0)
    story.at(60.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=20, restored_digest="a" * 64)
    story.steps(1, 1, 21, 40, 61.0, 1.0)
    record = story.record("Running", None)
    assert [each.last_step for each in record.restarts] == [30, 40]
    assert not record.restarts[0].failed
    assert record.goodput.lost_steps == 10
    assert record.goodput.recovering >= 29.0


def test_the_order_in_which_writers_flushed_does_not_matter(story, tell) -> None:
    tell.killed_and_resumed(story)
    tell.judged(story)
    story.log.flush()
    events = read_events(story.store, f"gpt/runs/{story.workflow}")
    state = story.state("Succeeded", 130.0)
    shuffled = list(events)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    random.Random(seed).shuffle(shuffled)
    assert build_record(shuffled, state) == build_record(events, state)


def test_the_lowest_rank_gives_the_curve(story) -> None:
    story.at(0.0, "restart_began", attempt=1, restart=0)
    for rank in (3, 0, 1):
        story.at(1.0 + rank, "step", attempt=1, restart=0, rank=rank, step=1, loss=float(rank))
    assert [point.loss for point in story.record().restarts[0].points] == [0.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"restored_step": "many"},
        {"restored_step": None},
        {"attempt": [1]},
        {"skipped": 5, "restored_digest": 7},
        {"restart": "1e999", "restored_step": float("inf")},
    ],
)
def test_a_senseless_event_does_not_end_the_reading(wrong) -> None:
    events = [
        Event(1.0, "restart_began", "w", wrong),
        Event(2.0, "unheard_of", "w", {}),
        Event(3.0, "step", "w", wrong),
    ]
    assert len(build_record(events, {}).restarts) == 1


@pytest.mark.parametrize(
    "state",
    [{}, {"nodes": 5}, {"nodes": [5, {"type": "Pod", "startedAt": "soon"}], "parameters": [], "annotations": 3}],
)
def test_a_senseless_state_does_not_end_the_reading(state) -> None:
    record = build_record([], state)
    assert record.restarts == ()
    assert summary(record, "")["attempts"] == []


def test_every_cause_has_its_meaning_and_advice() -> None:
    assert set(ADVICE) == set(Cause)
    for what, remedy in ADVICE.values():
        assert what.endswith(".")
        assert remedy.endswith((".", ";")) or remedy


def test_a_passed_over_checkpoint_is_told(story) -> None:
    story.at(0.0, "restart_began", attempt=1, restart=0, restored_step=40, restored_digest="b" * 64)
    story.at(1.0, "restart_ended", attempt=1, restart=0, cause="checkpoint_corrupt", exit_code=72, last_step=40)
    again = {"restored_step": 20, "restored_digest": "c" * 64, "skipped": ["b" * 64]}
    story.at(3.0, "restart_began", attempt=1, restart=1, **again)
    told = way_on(story.record(), 0)
    assert "from step 20, the newest verified checkpoint (cccccccccccc)" in told
    assert "Passed over bbbbbbbbbbbb" in told


def test_the_exit_code_tells_refusal_from_failure(story, tell) -> None:
    tell.judged(story, "refuse")
    assert exit_code(story.record("Succeeded")) == 3
    assert exit_code(story.record("Failed")) == 1
    assert exit_code(story.record("Running", None)) == 1


def test_a_promoted_run_exits_0(story, tell) -> None:
    tell.judged(story)
    assert exit_code(story.record()) == 0


def restarted(story, first: int) -> None:
    """Killed at 30, restored at 20; the script then tells the steps from ``first`` on."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 30, 1.0, 1.0)
    story.at(31.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, rank=0, last_step=30)
    story.at(33.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=20, restored_digest="a" * 64)
    # Of the first start, come late: no step of the second.
    story.at(33.5, "step", attempt=1, restart=0, rank=0, step=12)
    story.steps(1, 1, first, 40, 34.0, 1.0)
    story.at(90.0, "train_ended", exit_code=0)


@pytest.mark.parametrize(("first", "lost", "warned"), [(21, 10, False), (1, 30, True)])
def test_a_script_that_does_not_read_its_checkpoint_is_found_out(first, lost, warned, story) -> None:
    restarted(story, first)
    record = story.record()
    assert record.goodput.lost_steps == lost
    told = "began again at step 1 although step 20 was restored"
    assert (told in "\n".join(explained(record))) == warned
    tally = Tally()
    lines = [tally.absorb(event) for event in read_events(story.store, f"gpt/runs/{story.workflow}")]
    assert sum(told in line for line in lines) == warned


def test_a_script_that_tells_no_steps_is_not_said_to_have_made_none(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    assert headline(story.record("Running", None)).startswith("No step yet on 1 node")
    story.at(9.0, "train_ended", cause="none", exit_code=0)
    assert headline(story.record()).startswith("Trained on 1 node")
    assert "progress_pattern" in goodput_sentence(story.record())
