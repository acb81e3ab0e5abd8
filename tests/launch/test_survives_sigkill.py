"""A rank that SIGKILL does not end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.pods import processes
from tests.held import MAY_BE_TRACED, held_at_its_end

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

SLEEPS = f"""
{MAY_BE_TRACED}
import os, time
with open("pid.new", "w") as told:
    told.write(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)
"""


def test_the_node_is_at_fault_and_its_pod_begins_nothing_more(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(SLEEPS)
    gang.start(script="train.py", launcher="plain", grace_seconds=1)
    gang.assign()
    told = gang.workspace(0) / "pid"
    gang.until(told.exists, 20, "rank")
    pid = int(told.read_text())
    with held_at_its_end(pid):
        gang.order("stop")
        assert gang.exit_codes(120) == [ExitCode.SUSPECT_NODE]
        assert processes.start_time(pid) is not None
    gang.look()
    assert {(error["cause"], error["code"], error["node"]) for error in gang.errors()} == {("hang", 71, "node-0")}
    assert f"argosy: processes [{pid}] survive SIGKILL" in gang.pods[0].text()
