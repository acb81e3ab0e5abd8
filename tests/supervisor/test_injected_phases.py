"""Faults by phase and by signal happen to real ranks and nodes, and are told for what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.supervisor.test_evidence import start

if TYPE_CHECKING:
    from conftest import Rig


@pytest.mark.parametrize(
    ("inject", "cause", "rank", "node"),
    [
        ("abort:rank=1@step=12", "native_crash", 1, "node-1"),
        pytest.param("fpe:rank=0@phase=start", "native_crash", 0, "node-0", marks=pytest.mark.variant),
        ("term:rank=1@phase=end", "sigterm", 1, "node-1"),
        pytest.param("preempt:node=1@phase=start", "preempted_evicted", None, "node-1", marks=pytest.mark.variant),
        pytest.param("node-loss:node=1@phase=end", "preempted_evicted", None, "node-1", marks=pytest.mark.variant),
    ],
)
def test_it_happens_and_is_named(rig: Rig, inject: str, cause: str, rank: int | None, node: str) -> None:
    # What happens at the end finds ranks that have not ended by themselves.
    start(rig, *(["lingers"] if "phase=end" in inject else []))
    rig.inject = (inject,)
    assert rig.run(200) == 0, rig.log()
    (ended,) = (event.fields for event in rig.events("restart_ended"))
    assert (ended["cause"], ended["rank"], ended["node"]) == (cause, rank, node), ended["quote"]
    (told,) = rig.events("injected")
    assert told.fields["asked"] == inject


def test_a_supervisor_is_killed_in_a_phase_and_the_next_goes_on(rig: Rig) -> None:
    start(rig)
    rig.inject = ("supervisor-kill@phase=end",)
    assert rig.run(200) == -9, rig.log()
    assert rig.run(200) == 0, rig.log()
    assert [event.fields["asked"] for event in rig.events("injected")] == ["supervisor-kill@phase=end"]


def test_of_two_faults_of_a_rank_the_second_happens_in_the_next_start(rig: Rig) -> None:
    # The first start reaches the step of both: it was told of one of them only.
    start(rig)
    rig.inject = ("kill:rank=1@step=12", "abort:rank=1@step=12")
    assert rig.run(200) == 0, rig.log()
    signals = [event.fields["signal"] for event in rig.events("restart_ended")]
    assert signals[:2] == [9, 6], rig.log()
    assert [event.fields["asked"] for event in rig.events("injected")] == [*rig.inject]
