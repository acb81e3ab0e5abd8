"""What ``argosy chaos`` says of a start that met several faults, and of one that a damaged checkpoint cost."""

from __future__ import annotations

from argosy.steps.contract.injection import parse
from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.story import way_on
from argosy.steps.runlog import Event
from argosy.workflows.cli.chaos.judging import judge

KILLED, SEGV, CORRUPT = "supervisor-kill@step=5", "segv:rank=1@step=13", "corrupt-shard@step=23"


def record() -> RunRecord:
    """Saves at 10 and 20; its supervisor is killed at 5, its rank at 14, and the checkpoint of 20 damaged at 23."""
    events: list[Event] = []

    def at(time: float, kind: str, **fields: object) -> None:
        events.append(Event(time, kind, "w", {"attempt": 1, "restart": 0, **fields}))

    def steps(restart: int, first: int, last: int, began: float) -> None:
        for step in range(first, last + 1):
            at(began + step - first, "step", restart=restart, rank=0, step=step, loss=1.0)

    def save(step: int, digest: str, time: float) -> None:
        at(time, "checkpoint_committed", step=step, digest=digest * 64, step_from="name", told=step, generation=1)

    at(0, "gang_created", gang="g", nnodes=1, nproc_per_node=2)
    at(1, "restart_began", restored_step=0)
    steps(0, 1, 14, 1.1)
    save(10, "a", 10.5)
    at(5.5, "injected", fault="supervisor-kill", step=5, asked=KILLED)
    at(14.5, "injected", fault="segv", rank=1, step=14, asked=SEGV)
    at(15.5, "restart_ended", cause="native_crash", signal=11, rank=1, last_step=14)
    at(20, "restart_began", restart=1, restored_step=10, restored_digest="a" * 64)
    steps(1, 11, 24, 20.1)
    save(20, "b", 29.5)
    at(33.5, "injected", fault="corrupt-shard", rank=0, step=24, asked=CORRUPT)
    at(34.5, "restart_ended", restart=1, cause="unknown", signal=9, rank=0, last_step=24)
    at(35, "restart_began", restart=2, restored_step=20, restored_digest="b" * 64)
    at(36, "restart_ended", restart=2, cause="checkpoint_corrupt", last_step=20)
    at(36, "set_aside", digest="b" * 64, reason="checkpoint_corrupt")
    at(37, "restart_began", restart=3, restored_step=10, restored_digest="a" * 64, skipped=["b" * 64])
    steps(3, 11, 30, 37.1)
    save(30, "c", 60)
    at(61, "restart_ended", restart=3, cause="none", exit_code=0, last_step=30)
    at(62, "train_ended", cause="none", exit_code=0)
    return build_record(sorted(events, key=lambda event: event.time), {"name": "w", "phase": "Succeeded"})


def test_what_was_lost_is_told_once_and_in_all() -> None:
    told = record()
    judged = {text: judge(parse(text), told, 30) for text in (KILLED, SEGV, CORRUPT)}
    assert not any(each.wrong for each in judged.values()), judged
    assert judged[KILLED].named == "nothing: training went on"
    assert [each.lost_steps for each in judged.values()] == [
        0,
        4,
        14,
    ]  # of the last ten went with the damaged checkpoint
    assert told.goodput is not None
    assert told.goodput.lost_steps == 18


def test_a_checkpoint_that_was_found_damaged_is_not_called_verified() -> None:
    assert "from step 20, the newest checkpoint, which was found damaged (bbbbbbbbbbbb)" in way_on(record(), 1)
    assert "from step 10, the newest verified checkpoint (aaaaaaaaaaaa)" in way_on(record(), 2)
