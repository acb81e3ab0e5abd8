"""A machine that sleeps, or a supervisor that is stopped and goes on: nobody is lost while nobody looked."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from argosy.steps.supervisor.awake import AwakeClock

if TYPE_CHECKING:
    from conftest import Rig

ASLEEP_SECONDS = 2.2


def test_what_a_process_sleeps_through_hardly_counts() -> None:
    clock = AwakeClock(0.05)
    before = clock.now()
    time.sleep(0.2)
    assert 0.0 < clock.now() - before < 0.06
    before = clock.now()
    time.sleep(0.02)
    assert 0.02 <= clock.now() - before < 0.06


@pytest.mark.variant
def test_a_supervisor_that_slept_loses_nobody(rig: Rig) -> None:
    """It took nodes that it had not heard for lost: here those that wake a moment after it."""
    rig.plan |= {"steps": 30, "step_seconds": 0.03, "commit_every": 15}
    rig.options = {"heartbeat_timeout_seconds": 2, "hang_timeout_seconds": 2}
    supervisor = rig.start()
    rig.until(lambda: rig.steps(0))
    asleep = [supervisor.pid, *rig.processes()]
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(ASLEEP_SECONDS)
    for pid in asleep:
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.3 if pid == supervisor.pid else 0.0)
    assert supervisor.wait(60) == 0, rig.log()
    assert [event.fields["cause"] for event in rig.events("restart_ended")] == []
