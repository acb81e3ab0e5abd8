"""The record: a pure function of events and state."""

from __future__ import annotations

import random
import re
import threading
from dataclasses import replace
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Report
from argosy.steps.contract.injection import CANNOT_EXIT
from argosy.steps.contract.restart_rule import RestartRule
from argosy.steps.record.building import build_record
from argosy.steps.record.naming import node_line
from argosy.steps.record.restarts import restarts_of
from argosy.steps.record.story import goodput_sentence, headline, lost_words, outcome, way_on
from argosy.steps.record.summary import summary
from argosy.steps.record.tally import Tally
from argosy.steps.record.termination import read_message
from argosy.steps.record.wording import percent
from argosy.steps.runlog import ENGINE_WENT, Event, RunLog, read_events
from argosy.steps.store import open_store
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.supervisor.record import Record
from argosy.workflows.cli.explain import story as explained
from argosy.workflows.cli.run import exit_code, not_injected
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.status import lines as status
from argosy.workflows.cli.top import COLUMNS, Row
from argosy.workflows.report.page import LastWords, render
from argosy.workflows.report.timeline import timeline


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


def test_of_a_short_run_it_is_said_that_it_mostly_started(story) -> None:
    story.at(4.0, "gang_created", attempt=1, gang="gpt-abc12-g1", nnodes=1, nproc_per_node=1)
    story.at(5.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 4, 11.0, 0.01)
    story.at(12.0, "train_ended", exit_code=0)
    told = goodput_sentence(story.record(seconds=13.0))
    assert told == "0.5% of 8.0 s went into steps that were kept, 74.9% into starting"


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


@pytest.mark.parametrize(("step_from", "said"), [("count", "Trained on 2 nodes"), ("name", "Trained to step 12 on")])
def test_where_a_mute_script_went_on_is_not_where_it_ended(story, step_from: str, said: str) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=2, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    told = {"generation": 1, "bytes": 1, "step_from": step_from}
    story.at(20.0, "checkpoint_committed", step=2, digest="a" * 64, **told)
    story.at(30.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9)
    story.at(40.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=2, restored_digest="a" * 64)
    story.at(80.0, "checkpoint_committed", step=12, digest="b" * 64, **told)
    story.at(90.0, "train_ended", exit_code=0)
    assert said in "\n".join(explained(story.record()))


def test_what_a_mute_script_did_again_is_told_in_the_first_line_too(story) -> None:
    """As in the account of its first attempt: a single step that was read tells no time, but how far it came."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    for restart, began in ((0, 0.0), (1, 20.0)):
        story.at(began, "restart_began", attempt=1, restart=restart, generation=1 + restart, restored_step=0)
        story.at(began + 9, "step", attempt=1, restart=restart, rank=0, step=200)
        if not restart:
            story.at(10.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9)
    told = {"step": 200, "told": 200, "step_from": "file", "generation": 2, "bytes": 1, "final": True}
    story.at(30.0, "checkpoint_committed", digest="a" * 64, **told)
    story.at(31.0, "train_ended", exit_code=0)
    record = story.record()
    assert record.goodput is None
    assert "Lost: 200 steps" in "\n".join(explained(record))
    assert "1 failure on the way, 200 steps done again" in headline(record)


def test_a_table_rounds_goodput_as_the_account_does(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.at(91.1458, "step", attempt=1, restart=0, rank=0, step=1)
    story.at(95.573, "step", attempt=1, restart=0, rank=0, step=2)
    story.at(100.0, "train_ended", exit_code=0)
    record = story.record()
    shown = Row(RunFolder(story.state_dir / "runs" / story.workflow, story.state_dir), record=record).cells(0.0)[
        COLUMNS.index("goodput")
    ]
    assert goodput_sentence(record).startswith(f"{shown} of"), (shown, record.goodput)
    assert percent(round(record.goodput.ratio, 4)) != shown, "a figure that rounding twice does not change"


@pytest.mark.parametrize(("cause", "left"), [("none", "trained: step 40"), ("sigterm", "starting from step 40")])
def test_a_training_that_has_ended_makes_no_steps(cause: str, left: str, story) -> None:
    """While the next step ran, "step 40" was told as if it were being made; after "step train: succeeded", too."""
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 40, 1.0, 1.0)
    story.at(41.0, "train_ended", cause=cause)
    story.record()
    tally = Tally()
    for event in read_events(story.store, f"gpt/runs/{story.workflow}"):
        tally.absorb(event)
    assert not tally.running
    assert tally.waiting().startswith(left)


def test_what_was_saved_between_two_printed_steps_was_reached(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    for step in range(10, 251, 10):
        story.at(step / 10, "step", attempt=1, restart=0, rank=0, step=step, loss=1.0)
    told = {"step": 256, "told": 256, "step_from": "file", "generation": 1, "bytes": 1, "final": True}
    story.at(26.0, "checkpoint_committed", digest="a" * 64, **told)
    story.at(27.0, "train_ended", exit_code=0)
    assert "Attempt 1 began from scratch and reached step 256." in "\n".join(explained(story.record()))


def test_who_is_stopped_before_anything_was_saved_has_no_checkpoint_to_go_on_from(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(12.0, "train_ended", cause="sigterm", exit_code=76)
    assert "What to do: Nothing was saved; start it again: " in "\n".join(explained(story.record("Failed")))
    story.at(3.0, "checkpoint_committed", step=10, digest="a" * 64, generation=1)
    assert "What to do: Go on from the last checkpoint: " in "\n".join(explained(story.record("Failed")))


def test_who_was_stopped_has_not_failed(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 10, 1.0, 1.0)
    story.at(12.0, "train_ended", cause="sigterm", exit_code=76)
    text = "\n".join(explained(story.record("Failed")))
    assert "on the way" not in text
    assert "gave up" not in text
    assert "The training was stopped; started again it goes on." in text
    story.at(20.0, "restart_began", attempt=2, restart=0, generation=2, restored_step=0)
    story.at(30.0, "train_ended", cause="none", exit_code=0)
    assert "on the way" not in "\n".join(explained(story.record()))


@pytest.mark.parametrize(("phase", "more"), [("Succeeded", ", which will go on until it is mended"), ("Failed", "")])
def test_a_cause_that_comes_often_is_told_and_goes_on_only_where_the_run_does(phase: str, more: str, story) -> None:
    for restart in range(4):
        story.at(10.0 * restart, "restart_began", attempt=1, restart=restart, generation=1, restored_step=0)
        story.at(10.0 * restart + 5.0, "restart_ended", attempt=1, restart=restart, cause="host_oom", last_step=10)
    assert f", 4 times for host_oom{more}" in headline(story.record(phase))
    assert ("go on until" in headline(story.record(phase))) == bool(more)


def test_the_night_between_two_workflows_of_a_run_is_no_time_of_training(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 10, 1.0, 1.0)
    story.at(10.0, "train_ended", cause="user_exception", exit_code=70)
    story.at(11.0, "finalized", status="Failed")
    story.at(30010.0, "gang_created", attempt=2, gang="h", nnodes=1, nproc_per_node=1)
    story.at(30010.0, "restart_began", attempt=2, restart=0, generation=2, restored_step=10)
    story.steps(2, 0, 11, 20, 30011.0, 1.0)
    story.at(30020.0, "train_ended", exit_code=0)
    story.at(30021.0, "finalized", status="Succeeded")
    assert story.record().goodput.wall == pytest.approx(20.0)
    story.log.flush()
    told = build_record(read_events(story.store, "gpt/runs/gpt-abc12"), {"phase": "Succeeded"})
    assert told.ended - told.started == 30021.0
    assert told.spent(told.started, told.ended) == pytest.approx(21.0)


@pytest.mark.parametrize(
    ("back", "counts"),
    [
        (("gang_deleted", {"attempt": 1, "gang": "g", "reason": ENGINE_WENT}), False),  # the machine was off
        (("admission", {"decision": "start", "reason": "taken over"}), False),  # another workflow
        (("gang_deleted", {"attempt": 1, "gang": "g", "reason": "an older attempt"}), True),  # its next pod
    ],
)
def test_days_in_which_nobody_had_it_run_are_no_time_of_training(back: Any, counts: bool, story) -> None:
    """An end that was not written down, as of a power cut, made 81 % of goodput 35 %."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 5, 1.0, 1.0)
    story.at(5.5, "admission", decision="duplicate", reason="it runs")  # who was not let in ends nothing
    story.steps(1, 0, 6, 10, 6.0, 1.0)
    story.at(30010.0, back[0], **back[1])
    story.at(30011.0, "gang_created", attempt=2, gang="h", nnodes=1, nproc_per_node=1)
    story.at(30011.0, "restart_began", attempt=2, restart=0, generation=2, restored_step=10)
    story.steps(2, 0, 11, 20, 30012.0, 1.0)
    story.at(30021.0, "train_ended", exit_code=0)
    record = story.record(seconds=30030.0)
    assert record.goodput.wall == pytest.approx(30021.0 if counts else 20.0)
    assert status(record, 0.0)[0].endswith("8 h 20 min" if counts else "29.0 s"), "argosy ls, status and the report"


def test_a_word_that_was_read_late_belongs_to_the_save_whose_files_say_it(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 18, 1.0, 0.1)
    told = {"step": 20, "step_from": "file", "told": 18, "generation": 1, "bytes": 1}
    story.at(3.0, "checkpoint_committed", digest="a" * 64, **told)
    story.steps(1, 0, 19, 30, 3.5, 0.1)
    story.at(5.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=30)
    story.at(6.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=20, restored_digest="a" * 64)
    story.steps(1, 1, 21, 40, 7.0, 0.1)
    story.at(9.0, "train_ended", exit_code=0)
    assert story.record().goodput.lost_steps == 10


def test_what_nobody_trained_again_was_not_done_again(story) -> None:
    """The loss is no number from step 35 on, twice; what was saved since then is no step that was kept."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    saves = {1: [(3.0, 30, "a"), (4.0, 40, "b")], 2: [(14.0, 40, "c")]}
    for attempt, (began, first, last) in enumerate(((0.0, 1, 52), (10.0, 31, 50)), start=1):
        again = {"restored_step": 30, "restored_digest": "a" * 64} if attempt == 2 else {"restored_step": 0}
        story.at(began, "restart_began", attempt=1, restart=attempt - 1, generation=attempt, **again)
        story.steps(1, attempt - 1, first, last, began + 0.1, 0.1)
        for moment, step, name in saves[attempt]:
            told = {"step": step, "step_from": "file", "told": step, "generation": attempt, "bytes": 1}
            story.at(moment, "checkpoint_committed", digest=name * 64, **told)
        ended = {"attempt": 1, "restart": attempt - 1, "cause": "numerics_nan", "last_step": 34}
        story.at(began + 6.0, "restart_ended", **ended)
        for name in "bc"[attempt - 1]:
            story.at(began + 6.1, "set_aside", digest=name * 64, reason="rolled back before step 34")
    story.at(17.0, "train_ended", cause="numerics_nan", exit_code=77)
    record = story.record("Failed")
    text = "\n".join(explained(record))
    assert "20 steps done again, 22 steps lost" in text
    assert "reached step 50. It ended after 6.0 s: numerics_nan" in text
    assert record.newest.digest == record.checkpoint_digest == "a" * 64


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


def test_a_training_that_was_stopped_and_went_on_ended_more_than_once(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.at(20.0, "train_ended", cause="sigterm", exit_code=76)
    story.at(60.0, "restart_began", attempt=2, restart=0, generation=2, restored_step=0)
    story.steps(2, 0, 1, 40, 61.0, 1.0)
    story.at(110.0, "train_ended", cause="none", exit_code=0)
    record = story.record()
    assert [(each.cause, each.exit_code) for each in record.restarts] == [("sigterm", 76), ("", 0)]
    assert "cut off" not in "\n".join(explained(record))


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


def test_a_day_of_steps_is_one_pass() -> None:
    """Looking through all earlier steps at each one would take this test's five minutes, and took a user's."""
    began = Event(0.0, "restart_began", "w", {"attempt": 1, "restart": 0})
    own = {"attempt": 1, "restart": 0, "rank": 0}
    told = [Event(1.0 + step, "step", "w", {**own, "step": step}) for step in range(1, 200_001)]
    back = [Event(300_000.0 + step, "step", "w", {**own, "step": step}) for step in range(100_000, 100_003)]
    (restart,) = restarts_of([began, *told, *back])
    assert [point.step for point in restart.points] == list(range(1, 100_003))


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


@pytest.mark.parametrize(("failed", "named"), [("snapshot finalize", "snapshot"), ("finalize", "finalize")])
def test_the_step_that_failed_is_named_and_not_the_one_that_runs_after_it(failed: str, named: str) -> None:
    nodes = [
        {"type": "Pod", "displayName": name, "templateName": name, "phase": "Failed", "startedAt": 10.0}
        for name in failed.split()
    ]
    told = "\n".join(explained(build_record([], {"phase": "Failed", "nodes": nodes})))
    assert f"failed at the step {named}" in told


def test_one_that_was_stopped_while_it_trained_has_not_failed_at_that_step() -> None:
    """``argo stop``: Argo notes a signal's 143 for the supervisor's 76, and the step was said to fail with it."""
    verdict = 'main: Error (exit code 143): {"cause":"sigterm","exit_code":76,"step":3}'
    train = {"type": "Pod", "displayName": "train(0)", "templateName": "train", "phase": "Failed", "message": verdict}
    began = Event(1.0, "restart_began", "w", {"attempt": 1, "restart": 0, "restored_step": 0})
    for message, said in (("Stopped with strategy 'Stop'", "was stopped"), ("", "failed")):
        state = {"phase": "Failed", "message": message, "nodes": [train | {"exitCode": 143}]}
        told = "\n".join(explained(build_record([began], state)))
        assert f"The workflow {said} at the step train" in told
        assert ("with exit code 143" in told) == (said == "failed")
        assert ("It was stopped at the step train." in told) == (said == "was stopped")


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_one_whole_row(cause: Cause) -> None:
    assert cause.name.lower() == cause
    assert cause.meaning.endswith(".")
    assert cause.remedy.endswith(".")
    stops = cause.exit_code in (70, 73, 74, 77, 78)
    assert not stops or cause.restart in (
        RestartRule.BY_CODE,
        RestartRule.SAME_EXCEPTION,
        RestartRule.FRAGMENTED,
        RestartRule.SAME_PLACE,
        RestartRule.ACCESS,
    )


def test_a_passed_over_checkpoint_is_told(story) -> None:
    story.at(0.0, "restart_began", attempt=1, restart=0, restored_step=40, restored_digest="b" * 64)
    story.at(1.0, "restart_ended", attempt=1, restart=0, cause="checkpoint_corrupt", exit_code=72, last_step=40)
    again = {"restored_step": 20, "restored_digest": "c" * 64, "skipped": ["b" * 64]}
    story.at(3.0, "restart_began", attempt=1, restart=1, **again)
    told = way_on(story.record(), 0)
    assert "from step 20, the newest verified checkpoint (cccccccccccc)" in told
    assert "Passed over bbbbbbbbbbbb" in told


def saved_twice(story) -> None:
    """Trained to step 30, with checkpoints a of step 10 and b of 20."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 30, 1.0, 1.0)
    for step, digest in ((10, "a" * 64), (20, "b" * 64)):
        story.at(step + 1.0, "checkpoint_committed", step=step, step_from="file", told=step, digest=digest)


def test_what_a_damaged_checkpoint_cost_is_told_where_it_was_found(story) -> None:
    """An attempt had reached step 30: "Lost: 20 steps. Started again ... from step 20"."""
    saved_twice(story)
    story.at(60.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=30)
    story.at(61.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=20, restored_digest="b" * 64)
    story.at(62.0, "restart_ended", attempt=1, restart=1, cause="checkpoint_corrupt", last_step=20)
    story.at(62.0, "set_aside", digest="b" * 64, reason="checkpoint_corrupt")
    story.at(63.0, "restart_began", attempt=1, restart=2, generation=3, restored_step=10, restored_digest="a" * 64)
    story.steps(1, 2, 11, 40, 64.0, 1.0)
    said = "\n".join(explained(record := story.record()))
    first, second = re.findall(r"Lost: (\d+) steps. Started again .*, from step (\d+),", said)
    assert (first, second) == (("10", "20"), ("10", "10"))
    assert (record.goodput.lost_steps, lost_words(record)) == (20, "20 steps done again")


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


def test_the_time_line_counts_the_steps_that_an_attempt_made(story) -> None:
    """Of one that began again at step 1 it said "steps 21 to 40", and of one that nothing was kept of "11 to 25: 5"."""
    restarted(story, 1)
    drawn = timeline(story.record())
    told = [bar.tooltip.partition(" (")[0] for lane in drawn.lanes for bar in lane.bars]
    assert "attempt 2: steps 1 to 40" in told


def test_steps_that_went_with_every_checkpoint_are_those_that_were_made_after_it(story) -> None:
    saved_twice(story)
    for restart, (began, restored, digest, last) in enumerate(((60, 20, "b", 25), (80, 0, "", 40))):
        story.at(began - 1, "restart_ended", attempt=1, restart=restart, cause="unknown", signal=9)
        again = {"restored_step": restored, "restored_digest": digest * 64}
        story.at(began, "restart_began", attempt=1, restart=restart + 1, generation=restart + 2, **again)
        story.steps(1, restart + 1, restored + 1, last, began + 1.0, 1.0)
    drawn = timeline(story.record())
    told = [bar.tooltip.partition(" (")[0] for lane in drawn.lanes for bar in lane.bars]
    assert "attempt 2: steps 21 to 25: 5 steps done again" in told


def test_an_attempt_that_nothing_was_kept_of_has_no_steps_that_were(story) -> None:
    """Told of the step that it went on from, it was drawn with "steps 21 to 20"."""
    saved_twice(story)
    story.at(59, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9)
    story.at(60, "restart_began", attempt=1, restart=1, generation=2, restored_step=20, restored_digest="b" * 64)
    story.steps(1, 1, 20, 25, 61.0, 1.0)
    story.at(80, "restart_ended", attempt=1, restart=1, cause="unknown", signal=9)
    drawn = timeline(story.record())
    told = [bar.tooltip.partition(" (")[0] for lane in drawn.lanes for bar in lane.bars]
    assert [text for text in told if text.startswith("attempt 2: steps")] == ["attempt 2: steps 21 to 25: 5 steps lost"]


def test_a_loss_that_is_no_number_replaces_the_one_before(tmp_path) -> None:
    store, tally = open_store(tmp_path.as_uri()), Tally()
    with RunLog(store, "gpt/runs/r", "supervisor") as log:
        steps = [{"rank": 0, "step": 49, "loss": 0.1}, {"rank": 0, "step": 50, "loss": float("nan")}]
        report = Report(pod="p", node="n", node_rank=0, restart=0, phase="running", steps=steps)
        Record(store, "gpt/runs/r", log, 1, 0, LeavableStore(store, threading.Event())).report(report, 0)
    for event in read_events(store, "gpt/runs/r"):
        tally.absorb(event)
    assert tally.progress() == "step 50"


def test_a_script_that_tells_no_steps_is_not_said_to_have_made_none(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    assert headline(story.record("Running", None)).startswith("No step yet on 1 node")
    story.at(9.0, "train_ended", cause="none", exit_code=0)
    assert headline(story.record()).startswith("Trained on 1 node")
    assert "progress_pattern" in goodput_sentence(story.record())


@pytest.mark.parametrize(
    ("told", "counts", "first", "lost", "warns"),
    [
        # What the script had told at the save of step 40, the first step and the next one after the resume.
        ({"step_from": "name", "told": 40}, (25, 45), (41, 42), 5, False),
        ({"step_from": "name", "told": 40}, (25, 45), (20, 41), 5, False),  # a bar is drawn before it resumes
        ({"step_from": "name", "told": 40}, (25, 45), (1, 2), 45, True),  # it does not read its checkpoint
        ({"step_from": "file", "told": 1000}, (970, 1010), (1001, 1002), 10, False),  # the words count something else
        ({"step_from": "print", "told": 40, "relative": True}, (25, 45), (1, 2), 5, False),  # anew in each process
    ],
)
def test_what_is_lost_is_counted_in_the_scripts_own_steps(story, told, counts, first, lost, warns) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, counts[0], counts[1], 1.0, 1.0)
    story.at(50.0, "checkpoint_committed", step=40, digest="a" * 64, generation=1, **told)
    story.at(60.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=counts[1])
    story.at(70.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=40, restored_digest="a" * 64)
    for moment, step in zip((80.0, 81.0), first, strict=True):
        story.at(moment, "step", attempt=1, restart=1, rank=0, step=step, loss=1.0)
    record, tally = story.record(), Tally()
    assert record.goodput.lost_steps == lost
    assert (record.restarts[1].began_again is not None) == warns
    lines = [tally.absorb(event) for event in read_events(story.store, f"gpt/runs/{story.workflow}")]
    assert any("began again" in line for line in lines) == warns


def test_steps_done_again_are_all_counted_though_each_tenth_is_told(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    for step in range(10, 50, 10):
        story.at(step, "step", attempt=1, restart=0, rank=0, step=step, loss=1.0)
    story.at(41.0, "checkpoint_committed", step=40, step_from="name", told=40, digest="a" * 64, generation=1)
    story.at(45.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=40)
    story.at(50.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=40, restored_digest="a" * 64)
    for step in range(10, 50, 10):
        story.at(50 + step, "step", attempt=1, restart=1, rank=0, step=step, loss=1.0)
    assert story.record().goodput.lost_steps == 40, "nine were taken for kept"


def test_a_run_came_as_far_as_its_final_files_say(story) -> None:
    """A script that prints each tenth step ended at 26; the last word was of 20."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 20, 1.0, 1.0)
    final = {"step": 26, "step_from": "file", "told": 26, "final": True}
    story.at(30.0, "checkpoint_committed", digest="a" * 64, generation=1, **final)
    story.at(31.0, "restart_ended", attempt=1, restart=0, cause="none", exit_code=0, last_step=20)
    assert headline(story.record()).startswith("Trained to step 26 of 200 on 1 node")


@pytest.mark.parametrize(
    ("steps", "save", "aside", "reached"),
    [
        (range(10, 21, 10), {"step": 26, "step_from": "file", "told": 26}, False, 26),
        (range(10, 21, 10), {"step": 26, "step_from": "file", "told": 26}, True, 20),
        ((), {"step": 26, "step_from": "name"}, False, 26),
        ((), {"step": 3, "step_from": ""}, False, 0),
    ],
)
def test_the_line_of_an_attempts_end_tells_the_step_that_the_summary_does(steps, save, aside, reached, story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    for step in steps:
        story.at(step, "step", attempt=1, restart=0, rank=0, step=step, loss=1.0)
    story.at(30.0, "checkpoint_committed", digest="a" * 64, generation=1, **save)
    if aside:
        story.at(31.0, "set_aside", digest="a" * 64, reason="rolled back before step 20")
    story.at(32.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=max(steps, default=0))
    assert story.record().restarts[0].last_step == reached
    tally = Tally()
    lines = [tally.absorb(event) for event in read_events(story.store, f"gpt/runs/{story.workflow}")]
    assert lines[-1].startswith(f"attempt 1: ended at step {reached}: unknown")


def test_an_attempt_that_was_cut_off_came_as_far_as_the_checkpoint_that_the_next_found_of_it(story) -> None:
    """Reached step 27, it was said, and the next began from step 30."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 27, 1.0, 1.0)
    again = {"restored_step": 30, "restored_digest": "a" * 64}
    story.at(40.0, "restart_began", attempt=2, restart=0, generation=2, **again)
    record = story.record("Running", None)
    assert record.restarts[0].last_step == 30
    assert lost_words(record) == ""


def test_epochs_of_the_files_are_not_said_to_be_of_so_many_batches(story) -> None:
    """netG_epoch_11.pth, and "[11/12][30/40] Loss_D: 0.5"."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 100, 1.0, 1.0)
    final = {"step": 11, "step_from": "name", "told": 100, "final": True}
    story.at(130.0, "checkpoint_committed", digest="a" * 64, generation=1, **final)
    story.at(131.0, "restart_ended", attempt=1, restart=0, cause="none", exit_code=0, last_step=100)
    assert headline(story.record()).startswith("Trained to step 11 on 1 node")


def test_what_a_fenced_supervisor_says_last_is_no_end_of_its_successors_attempt() -> None:
    """Two submissions of one run id on a real cluster: the second succeeded, and was said to have ended fenced."""

    def told(time: float, kind: str, writer: str, attempt: int, **fields) -> Event:
        return Event(time, kind, writer, {"attempt": attempt, "restart": 0, **fields})

    quote = "generation 1 is over"
    events = [
        told(0, "gang_created", "first", 1, gang="w-aaaaaaaa-a1", nnodes=2, nproc_per_node=1),
        told(1, "restart_began", "first", 1, generation=1, restored_step=0),
        told(8, "admission", "admit", 0, decision="start", reason="by hand"),
        told(9, "step", "first", 1, rank=0, step=102),
        told(10, "gang_created", "second", 2, gang="w2-bbbbbbbb-a2", nnodes=2, nproc_per_node=1),
        told(11, "restart_began", "second", 2, generation=2, restored_step=90, restored_digest="a" * 64),
        told(12, "restart_ended", "first", 1, cause="fenced", node="node-a", quote=quote, last_step=102),
        told(13, "train_ended", "first", 1, cause="fenced", exit_code=73),
        told(20, "step", "second", 2, rank=0, step=120),
    ]
    running = build_record(events, {"name": "w", "phase": "Running"})
    assert [(each.cause, each.ended) for each in running.restarts] == [("fenced", 12), ("", None)]
    assert running.train_cause == ""
    ended = [*events, told(30, "train_ended", "second", 2, cause="none", exit_code=0)]
    assert [each.cause for each in build_record(ended, {"name": "w"}).restarts] == ["fenced", ""]
    # The first one's status told what the second one did as its own, its promotion too.
    promoted = [*ended, Event(31, "promoted", "promote", {"pointer": "production"})]
    one, other = (
        build_record(promoted, {"name": name, "uid": uid * 8, "phase": phase})
        for name, uid, phase in (("w", "A", "Failed"), ("w2", "b", "Succeeded"))
    )
    assert [(each.cause, each.last_step) for each in one.restarts] == [("fenced", 102)]
    assert (one.train_cause, one.promotion, one.admission) == ("fenced", None, None)
    assert way_on(one, 0) == "Not started again, since another supervisor took the run over."  # "argosy gave up"
    assert other == build_record(promoted, {"name": "w2", "uid": "", "phase": "Succeeded"})
    tally = Tally()
    lines = [tally.absorb(event) for event in events]
    assert lines[6] == f"attempt 1: ended at step 102: fenced: node-a\n    | {quote}"
    assert (tally.running, tally.step) == (True, 120)


@pytest.mark.parametrize(
    ("interrupted", "follows"), [("SIGKILL", "Nothing was started after it."), ("", "The next start is under way.")]
)
def test_no_start_is_under_way_in_a_run_that_was_killed_in_the_pause_before_it(interrupted, follows, story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.at(9.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=3)
    assert way_on(replace(story.record("Running", None), interrupted=interrupted), 0) == follows


@pytest.mark.parametrize(
    ("phase", "interrupted", "says", "lost"),
    [
        ("Running", "", "Running", 0), ("Running", "SIGINT", "Interrupted", 7), ("Failed", "", "Failed", 7),
        ("Failed", "SIGINT", "Failed", 7),
    ],
)  # fmt: skip
def test_of_a_start_whose_end_nobody_wrote_down_what_is_in_no_checkpoint_is_lost(
    phase, interrupted, says, lost, story
) -> None:
    """A second Ctrl-C kills the supervisor before it says anything."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 27, 1.0, 1.0)
    story.at(20.5, "checkpoint_committed", step=20, digest="a" * 64, bytes=1, seconds=0.1)
    story.log.flush()
    events = read_events(story.store, "gpt/runs/gpt-abc12")
    record = build_record(events, {**story.state(phase, None), "interrupted": interrupted})
    told = summary(record, "")
    assert (told["phase"], told["interrupted"], told["lost_steps"]) == (says, interrupted, lost)
    assert record.goodput.useful == pytest.approx(27.0 - lost)
    assert lost_words(record) == (f"{lost} steps lost" if lost else "")


@pytest.mark.parametrize(
    ("code", "follows", "failures"),
    [
        (76, "The training was stopped; started again it goes on.", "1 failure"),
        (74, "argosy gave up: the train step ended with sigterm.", "2 failures"),
    ],
)
def test_to_give_up_after_ranks_that_somebody_told_to_stop_is_no_stop(code, follows, failures, story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    for restart in range(2):
        where = {"attempt": 1, "restart": restart}
        story.at(9.0 * restart, "restart_began", **where, generation=1 + restart, restored_step=0)
        story.at(9.0 * restart + 8, "restart_ended", **where, cause="sigterm", signal=2, rank=1, last_step=3)
    story.at(18.0, "train_ended", cause="sigterm", exit_code=code)
    record = story.record("Failed")
    assert way_on(record, 1) == follows
    assert f"{failures} on the way" in headline(record)


@pytest.mark.parametrize("enforced", [False, True])
def test_of_a_flaw_that_is_only_told_it_is_said_what_acts_on_it(enforced, story) -> None:
    slow = "node-2 exchanges at most 0.005 GB/s with any of the 2 nodes it met; half of the gang's nodes reach 0.5 GB/s"
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=3, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.at(9.0, "preflight", summary="3 of 3 links work", flaws=[slow], enforced=enforced)
    told = explained(story.record())
    assert f"Preflight: {slow}." in told
    assert any('gang.preflight = "enforce"' in line for line in told) == (not enforced)


def test_why_a_supervisor_ended_is_told_while_the_next_one_is_awaited(story) -> None:
    """Its store took nothing: of that its starts tell nothing, and nothing was said until the run had ended."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.node("train(0)", 0.0, 9.0, "Failed", message="s3_access: cannot write /a: Read-only file system")
    assert "The step train failed: s3_access: cannot write /a" in headline(story.record("Running", None))
    story.at(9.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=3)
    assert "Read-only" not in headline(story.record("Running", None))


def test_steps_of_ranks_that_were_not_stopped_yet_are_none_of_a_start_that_has_ended(story) -> None:
    """A loss that is no number ends a start whose ranks are alive: live it ended at step 50, in the summary at 58."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 50, 1.0, 0.1)
    story.at(6.0, "restart_ended", attempt=1, restart=0, cause="numerics_nan", last_step=50)
    story.steps(1, 0, 51, 58, 6.1, 0.1)
    ended = story.record().restarts[0]
    assert (ended.last_step, ended.points[-1].step) == (50, 50)
    tally = Tally()
    lines = [tally.absorb(event) for event in read_events(story.store, "gpt/runs/gpt-abc12")]
    assert [line for line in lines if "ended" in line] == ["attempt 1: ended at step 50: numerics_nan"]
    assert (tally.step, tally.running) == (50, False)


def test_steps_that_ranks_saved_before_they_were_stopped_are_part_of_their_start(story) -> None:
    """Nobody trains them again: their losses were missing in the curve, and in what chaos compares."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=2, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 50, 1.0, 0.1)
    story.at(6.0, "restart_ended", attempt=1, restart=0, cause="unknown", last_step=50)
    story.steps(1, 0, 51, 58, 6.1, 0.1)
    story.at(6.6, "checkpoint_committed", step=56, digest="d56")
    story.at(7.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=56, restored_digest="d56")
    story.steps(1, 1, 57, 60, 8.0, 0.1)
    first, second = story.record().restarts
    assert [each.step for each in (*first.points, *second.points)] == [*range(1, 61)]
    assert first.last_step == 56


def test_an_end_is_believed_of_who_adopted_the_gang() -> None:
    events = [
        Event(0, "gang_created", "first", {"attempt": 1, "gang": "g", "nnodes": 1, "nproc_per_node": 1}),
        Event(1, "restart_began", "first", {"attempt": 1, "restart": 0, "generation": 1, "restored_step": 0}),
        Event(5, "step", "adopter", {"attempt": 1, "restart": 0, "rank": 0, "step": 3}),
        Event(9, "train_ended", "adopter", {"cause": "fenced", "exit_code": 73}),
    ]
    assert [(each.cause, each.ended) for each in restarts_of(events)] == [("fenced", 9)]


@pytest.mark.parametrize("behind", [0, 9])
def test_what_a_supervisor_said_that_only_took_a_gang_over_is_its_workflows_own(behind) -> None:
    """Its end, fenced, was dropped with what the other workflow did; and that was kept where its clock was behind."""

    def told(time: float, kind: str, writer: str, attempt: int, **fields) -> Event:
        return Event(time, kind, writer, {"attempt": attempt, "restart": 0, **fields})

    events = [
        told(0, "gang_created", "first", 1, gang="w-aaaaaaaa-a1", nnodes=2, nproc_per_node=1),
        told(1, "restart_began", "first", 1, generation=1, restored_step=0),
        told(9 - behind, "gang_created", "other", 2, gang="w2-bbbbbbbb-a2", nnodes=2, nproc_per_node=1),
        told(9.5 - behind, "step", "other", 1, rank=0, step=101),  # the last words of the gang that it deletes
        told(10, "step", "adopter", 1, rank=0, step=102),
        told(11 - behind, "restart_began", "other", 2, generation=2, restored_step=90),
        told(12, "restart_ended", "adopter", 1, cause="fenced", last_step=102),
        told(13, "train_ended", "adopter", 1, cause="fenced", exit_code=73),
        told(30 - behind, "train_ended", "other", 2, cause="none", exit_code=0),
    ]
    record = build_record(events, {"name": "w", "uid": "a" * 36, "phase": "Failed"})
    assert [(each.cause, each.last_step) for each in record.restarts] == [("fenced", 102)]
    assert record.train_cause == "fenced"


@pytest.mark.parametrize(("saved", "kept"), [(True, "the checkpoint of step 10 (aaaaaaaaaaaa)"), (False, "nothing")])
def test_who_finished_without_a_checkpoint_is_told_what_is_kept_and_where_the_files_lie(
    saved, kept, story, argosy
) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="gpt-abc12-1f-a1", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 11, 1.0, 1.0)
    if saved:
        story.at(11.0, "checkpoint_committed", step=10, step_from="file", told=10, digest="a" * 64, generation=1)
    told = {"cause": "finished_without_checkpoint", "last_step": 11, "quote": "all ranks exited 0"}
    story.at(13.0, "restart_ended", attempt=1, restart=0, **told)
    story.at(14.0, "train_ended", cause="finished_without_checkpoint", exit_code=70)
    story.finish("Failed", 15.0)
    place = story.state_dir / "runs/gpt-abc12/nodes/node-0/pods/gpt-abc12-1f-a1-node-0-0/volumes/workspace"
    place.mkdir(parents=True)
    out = argosy("explain")[1]
    assert f"Not started again, since every rank had ended well. Kept in the store: {kept}." in out
    assert f"What its ranks wrote, until argosy rm gpt-abc12: {place}" in out
    assert "gave up" not in out


def test_an_attempt_that_gave_up_lost_what_it_did_not_save(story) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 18, 1.0, 1.0)
    story.at(11.0, "checkpoint_committed", step=10, step_from="file", told=10, digest="a" * 64, generation=1)
    story.at(60.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=18)
    story.at(61.0, "budget", cause="unknown", spent=3, limit=2)
    story.at(61.0, "train_ended", cause="unknown", exit_code=74)
    record = story.record("Failed", 62.0)
    assert record.goodput.lost_steps == 8
    assert lost_words(record) == "8 steps lost"  # nobody has done them again
    said = "\n".join(explained(record))
    assert "Lost: 8 steps" in said
    assert "retry.max_same_failure" in said
    assert f"argosy submit run.toml -n NAMESPACE -p run-id={record.run_id}" in said
    page = render(record, LastWords("rank 0", ("<script>alert(1)</script>",)))
    assert "What to do" in page
    assert "retry.max_same_failure" in page
    assert "&lt;script&gt;alert(1)" in page
    assert "What to do" not in render(story.record("Succeeded", 62.0))


@pytest.mark.parametrize(
    ("message", "cause", "words"),
    [
        ('main: Error (exit code 70): {"cause":"user_exception","exit_code":70,"message":"it broke"}', "user_exception",
         "user_exception: it broke"),
        ('main: Error (exit code 74): {"cause":"hang","exit_code":74,"rank":1,"step":40,"node":""}', "hang",
         "hang: rank 1, step 40"),
        ('{"exit_code":2,"message":"name: is required"}', "", "name: is required"),
        ('{"cause":"unknown","exit_code":75,"message":"the API did not answer"}', "unknown", "the API did not answer"),
        ('main: Error (exit code 75): {"cause":"unknown","exit_code":75}', "unknown", "unknown"),
        ('child x failed: {"a": 1}', "", 'child x failed: {"a": 1}'),
        ('main: Error (exit code 70): {"cause":"user_exc', "", 'main: Error (exit code 70): {"cause":"user_exc'),
        ("Pod was deleted", "", "Pod was deleted"), ("", "", ""), ("{" * 5000, "", "{" * 5000),
    ],
)  # fmt: skip
def test_a_termination_message_is_told_in_words(message: str, cause: str, words: str) -> None:
    assert read_message(message) == (cause, words)
    ended = {
        "type": "Pod",
        "name": "train",
        "displayName": "train",
        "phase": "Failed",
        "exitCode": 70,
        "message": message,
    }
    assert node_line(ended).endswith(f", exit code 70: {words}" if words else ", exit code 70")


@pytest.mark.parametrize(
    ("phase", "last", "says"),
    [("Succeeded", 11, "step 11 on"), ("Failed", 11, "step 11 of 12 on"), ("Succeeded", 5, "step 5 of 12 on")],
)
def test_who_counts_from_0_has_trained_all_the_same(phase: str, last: int, says: str, story) -> None:
    story.at(0, "gang_created", attempt=1, nnodes=1, nproc_per_node=1)
    story.at(1, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(2, "step", attempt=1, restart=0, rank=0, step=last, loss=1.0, end_step=12)
    assert f"Trained to {says}" in headline(story.record(phase, 9.0))


def test_a_hung_attempt_is_not_drawn_as_steps(story) -> None:
    story.at(0, "gang_created", attempt=1, nnodes=1, nproc_per_node=1)
    story.at(1, "restart_began", attempt=1, restart=0, restored_step=0)
    story.steps(1, 0, 1, 10, 2.0, 1.0)
    story.at(200, "restart_ended", attempt=1, restart=0, last_step=10, cause="hang", rank=0)
    record = story.record("Failed", 210.0)
    drawn = timeline(record)
    assert drawn is not None
    (gang,) = [lane for lane in drawn.lanes if lane.label.startswith("Gang")]
    (stuck,) = [bar for bar in gang.bars if bar.kind == "stuck"]
    assert "no step after 10" in stuck.tooltip
    assert stuck.width > 80
    style, page = render(record).split("</style>")
    used = {name for names in re.findall(r'<rect class="([^"]+)"', page) for name in names.split()}
    assert {name for name in used if not re.search(rf"\.{name}\b[^}}]*fill", style)} == set()  # else it is black


def test_the_time_line_and_the_account_say_one_figure_for_starting(story) -> None:
    """Steps told each ten seconds: the first report is no start-up of its whole distance."""
    story.at(0, "gang_created", attempt=1, nnodes=1, nproc_per_node=1)
    story.at(1, "restart_began", attempt=1, restart=0, restored_step=0)
    for number in range(1, 6):
        story.at(
            20 + 10 * number, "step", attempt=1, restart=0, rank=0, step=10 * number, tokens_per_second=100.0 * number
        )
    story.at(71, "checkpoint_committed", step=56, step_from="file", digest="d" * 64, final=True)
    story.at(71, "train_ended", cause="none", exit_code=0)
    record = story.record("Succeeded", 72.0)
    drawn = timeline(record)
    assert drawn is not None
    assert record.goodput is not None
    texts = [bar.tooltip for lane in drawn.lanes for bar in lane.bars]
    assert record.goodput.starting == 19.0
    assert "attempt 1: imports, rendezvous, restore (19.0 s)" in texts
    assert "  training: step 56, 300 tokens/s" in status(record, 80.0)


def test_a_status_says_how_old_the_last_step_is_that_it_knows(story) -> None:
    """A bucket was full, so the log told nothing more: step 7 stood there while the ranks were at step 55."""
    story.at(0, "gang_created", attempt=1, nnodes=1, nproc_per_node=1)
    story.at(1, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(20, "step", attempt=1, restart=0, rank=0, step=7, loss=0.5)
    running = story.record("Running", 0.0)
    assert "  training: step 7, loss 0.5" in status(running, 1_790_000_000 + 80.0)
    assert "  training: step 7, loss 0.5, told 2 min 14 s ago" in status(running, 1_790_000_000 + 154.0)
    story.at(21, "train_ended", cause="none", exit_code=0)
    assert "  training: step 7, loss 0.5" in status(story.record("Running", 0.0), 1_790_000_000 + 154.0)


def test_what_lies_after_the_last_checkpoint_is_not_counted(story) -> None:
    """A script may count its steps from 0 in what it prints and from 1 in its files: only both numbers are known."""
    story.at(0, "gang_created", attempt=1, nnodes=1, nproc_per_node=1)
    story.at(1, "restart_began", attempt=1, restart=0, restored_step=0)
    for number in range(1, 41):
        story.at(1 + number, "step", attempt=1, restart=0, rank=0, step=number)
    story.at(42, "checkpoint_committed", step=38, step_from="file", told=38, digest="d" * 64, final=True)
    story.at(43, "train_ended", cause="none", exit_code=0)
    told = "\n".join(status(story.record("Succeeded", 44.0), 44.0))
    assert "Trained to step 40 on 1 node × 1 rank in 1 attempt, the last checkpoint being of step 38." in told


def test_a_run_whose_last_save_was_restored_was_trained_as_far_as_it_told(story) -> None:
    """``chaos`` held it for one that ended at its last save, unlike the calm run."""
    facts = {"step": 30, "bytes": 1, "generation": 1}
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 34, 1.0, 0.1)
    story.at(4.1, "checkpoint_committed", digest="a" * 64, step_from="name", told=30, **facts)
    story.at(5.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=34)
    story.at(6.0, "restart_began", attempt=1, restart=1, generation=2, restored_step=30, restored_digest="a" * 64)
    story.steps(1, 1, 31, 40, 7.0, 0.1)
    story.at(9.0, "checkpoint_committed", digest="b" * 64, step_from="file", final=True, **facts)
    story.at(9.1, "train_ended", exit_code=0)
    record = story.record()
    assert record.last_step == 40
    assert headline(record).endswith("4 steps done again, the last checkpoint being of step 30.")


@pytest.mark.parametrize(
    ("saved", "told", "first", "says"),
    [
        (None, None, 0, "7 steps done again"),  # from scratch: 0 to 6
        (6, 6, 6, "1 step done again"),  # 6 are done, the last of them called 5, and 6 is done again
        (6, 5, 6, "1 step done again"),
        (5, 5, 6, "1 step done again"),  # its files call that 5, too
    ],
)
def test_a_script_that_calls_its_first_step_0_does_each_of_them(story, saved, told, first, says) -> None:
    """They were one fewer: what lies before the first was taken for 0, and 6 that are done for the one called 6."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 0, 6, 1.0, 1.0)
    digest = "a" * 64 if saved else ""
    if saved:
        story.at(6.5, "checkpoint_committed", digest=digest, step=saved, step_from="file", told=told, bytes=1)
    story.at(8.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=6)
    story.at(9.0, "restart_began", attempt=1, restart=1, restored_step=saved or 0, restored_digest=digest)
    story.steps(1, 1, first, 9, 10.0, 1.0)
    assert lost_words(story.record()) == says


@pytest.mark.parametrize(("first", "reached"), [(0, 6), (1, 5)])
def test_epochs_that_are_told_from_0_are_those_that_the_files_count(story, first: int, reached: int) -> None:
    """It had "Trained to step 5" beside "newest step 6". One from 1 that saves before it tells came as far as it told:
    it had "Trained to step 9" where 8 was the last.
    """
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(0.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, first, 5, 1.0, 1.0)
    saved = 6 - first
    story.at(6.5, "checkpoint_committed", digest="a" * 64, step=saved, step_from="file", told=saved - 1, bytes=1)
    story.at(12.0, "restart_ended", attempt=1, restart=0, cause="unknown", signal=9, last_step=5)
    assert headline(story.record("Failed")).startswith(f"Trained to step {reached} ")


def test_a_script_that_tells_each_second_step_from_1_on_has_no_step_0(story) -> None:
    """Of two attempts that began again each lost a step more than there were."""
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    for restart in range(3):
        began, saved = 20.0 * restart, {"restored_step": 6, "restored_digest": "a" * 64} if restart else {}
        story.at(began, "restart_began", attempt=1, restart=restart, generation=1, **{"restored_step": 0, **saved})
        for step in range(1, 10, 2):
            story.at(began + step, "step", attempt=1, restart=restart, rank=0, step=step)
        if not restart:
            story.at(6.5, "checkpoint_committed", digest="a" * 64, step=6, step_from="file", told=5, bytes=1)
        story.at(began + 12, "restart_ended", attempt=1, restart=restart, cause="unknown", signal=9, last_step=9)
    record = story.record()
    assert [each.base for each in record.restarts] == [0, 0, 0]
    assert lost_words(record).startswith("18 steps done again")


@pytest.mark.parametrize(("trained", "reached"), [(True, "Trained to step 3 "), (False, "Training has not begun.")])
def test_pods_whose_clock_is_ahead_by_more_than_the_run_have_written_its_log(story, trained, reached) -> None:
    """All of it was taken for a later workflow's: nothing of the training was told."""
    story.at(1000.0, "admission", decision="start", reason="by hand")
    story.at(1001.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1)
    story.at(1001.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 3, 1002.0, 1.0)
    story.node("train" if trained else "admit", 1.0, 9.0)
    assert headline(story.record("Succeeded", 10.0)).startswith(reached)


def test_what_did_not_happen_has_each_its_own_reason(story) -> None:
    """That its script does not call argosy.report was said of a kill, too."""
    quote = f"{CANNOT_EXIT} in rank 0: its script does not call argosy.report; inject kill instead"
    story.at(1.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.at(2.0, "restart_ended", attempt=1, restart=0, cause="launcher_usage", quote=quote, last_step=3)
    assert not_injected(story.record("Failed"), ("exit:rank=0,code=9@step=3", "kill:rank=0@step=20")) == [
        "exit:rank=0,code=9@step=3 did not happen: its script does not call argosy.report",
        "kill:rank=0@step=20 did not happen: its step, time or phase never came",
    ]
