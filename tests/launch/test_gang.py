"""Whole nodes: real launch, the supervisor's own channel, torchrun and gloo ranks where these are looked at."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract import env as names
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.trouble import Trouble
from argosy.steps.pods import processes
from argosy.steps.record.advice import advice_for
from argosy.steps.store import open_store
from argosy.steps.verdict import judge

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

pytestmark = pytest.mark.torch

TRAIN = """
import os, sys, time
import torch, torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=60))
rank = dist.get_rank()
for step in range(1, int(sys.argv[1]) + 1):
    loss = torch.tensor(float(rank + step))
    dist.all_reduce(loss)
    print(f"step {step} loss {loss.item():.3f}", flush=True)
    time.sleep(0.01)
dist.destroy_process_group()
"""


def write(gang: Gang, text: str) -> None:
    for index in range(gang.nnodes):
        (gang.workspace(index) / "train.py").write_text(text)


def test_a_killed_rank_is_named_and_the_next_restart_finishes(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(2)
    write(gang, TRAIN)
    gang.start(script="train.py", arg=("40",), nproc_per_node=1)
    gang.assign(0, fault={"fault": "kill", "rank": 1, "step": 15, "code": None})
    gang.until(lambda: set(gang.endings()) == {0, 1}, 60, "endings")
    endings = gang.endings()
    assert endings[1]["signal"] == signal.SIGKILL
    assert 15 <= endings[1]["last_step"] < 40
    assert not endings[1]["stopped"]
    assert endings[0]["signal"] is None
    assert endings[0]["exit_code"] == 1

    # The survivor of a lost peer is held back: its pod still runs while the root is not known.
    time.sleep(1.0)
    gang.look()
    assert gang.phases() == {"pod-0": "running", "pod-1": "failed"}
    assert [event["fault"] for event in gang.events("injected")] == ["kill"]

    verdict = judge(
        [Ending(**ending) for ending in gang.endings().values()], [Trouble(**error) for error in gang.errors()], []
    )
    assert (verdict.cause, verdict.signal, verdict.rank, verdict.node) == (Cause.UNKNOWN, 9, 1, "node-1")
    assert verdict.quote == "rank 1 on node-1 was ended by signal 9"
    assert "peer_lost" in verdict.consequences[0]

    began = time.monotonic()
    gang.order("stop", root={"cause": "unknown", "rank": 1, "node": "node-1", "quote": verdict.quote})
    gang.reports.clear()
    gang.assign(1, args=[])
    assert time.monotonic() - began < 20
    gang.until(lambda: set(gang.phases().values()) == {"finished"}, 60, "second restart's end")
    assert max(step["step"] for step in gang.steps()) == 40
    assert [ending["exit_code"] for ending in gang.endings().values()] == [0, 0]
    losses = {step["step"]: step["loss"] for step in gang.steps() if step["rank"] == 0}
    assert losses[40] == 81.0
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]
    assert "[rank 1] step 15 loss" in gang.pods[1].text()


HANGS = """
import os, signal, time
for step in range(1, 1000):
    print(f"step {step} loss 1.0", flush=True)
    time.sleep(0.02)
"""


def test_a_hanging_rank_prints_its_stack_and_nothing_is_left(make_gang: Callable[[int], Gang], tmp_path: Path) -> None:
    gang = make_gang(1)
    write(gang, HANGS)
    gang.start(script="train.py", nproc_per_node=2)
    gang.assign(0, fault={"fault": "hang", "rank": 1, "step": 5, "code": None})
    gang.until(lambda: bool(gang.events("injected")), 30, "hang")
    # As the supervisor does: it stops the gang only when it has the stacks.
    root = {"cause": "hang", "rank": 1, "node": "node-0", "quote": "no step"}
    gang.order("continue", root=root)
    gang.until(lambda: set(gang.endings()) == {0, 1}, 20, "endings")
    gang.order("stop", root=root)
    gang.until(lambda: bool(gang.channel.check_ins()), 20, "check-in after the stop")
    assert 'train.py", line' in gang.pods[0].text()
    left = processes.carrying(names.POD_TOKEN, f"{gang.folder}-0") - {gang.pods[0].process.pid}
    # Only the next restart's agent waits already.
    assert [Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[3] for pid in left] == [
        b"argosy.steps.launch.standby"
    ]
    gang.order("exit", 75)
    assert gang.exit_codes() == [75]


def _standing_by(gang: Gang) -> set[int]:
    """Processes of the pod that have imported torchrun: the one that restarts are forked from, and forks of it."""
    found = processes.carrying(names.POD_TOKEN, f"{gang.folder}-0")
    return {pid for pid in found if b"argosy.steps.launch.standby" in Path(f"/proc/{pid}/cmdline").read_bytes()}


def test_torch_is_imported_once_a_pod_and_again_when_what_stood_by_was_killed(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, HANGS)
    gang.start(script="train.py", nproc_per_node=1)
    for restart in range(3):
        gang.reports.clear()
        gang.assign(restart)
        gang.until(lambda: bool(gang.steps()), 60, "steps")
        if restart == 2:
            break
        agents = _standing_by(gang)
        stands_by = min(agents, key=lambda pid: processes.start_time(pid) or 0)
        assert len(agents) == 2
        assert processes.descendants(stands_by) >= agents - {stands_by}
        if restart == 0:
            gang.order("stop", root={"cause": "unknown"})
            gang.until(lambda: bool(gang.channel.check_ins()), 30, "check-in")
            assert _standing_by(gang) == {stands_by}
        else:
            os.kill(stands_by, signal.SIGKILL)
            gang.until(lambda: bool(gang.errors()), 30, "error")
            assert "torchrun ended with signal 9 and no rank failed by itself" in gang.errors()[0]["message"]
            gang.order("stop", root={"cause": "unknown"})
    assert stands_by not in _standing_by(gang)
    gang.order("exit", 75)
    assert gang.exit_codes() == [75]


def test_a_script_that_cleans_its_temporary_folder_does_not_end_restarts(make_gang: Callable[[int], Gang]) -> None:
    """The agents' socket lies there: the next restart's ranks never came, and nobody said why."""
    gang = make_gang(1)
    write(gang, HANGS)
    gang.start(script="train.py", nproc_per_node=1)

    def clean() -> None:
        (found,) = gang.folder.rglob("standby/ranks.sock")
        found.unlink()

    def begin(restart: int) -> list[str]:
        gang.reports.clear()
        gang.assign(restart)
        gang.until(lambda: bool(gang.steps() or gang.errors()), 60, "steps, or an error")
        return [error["message"] for error in gang.errors()]

    def stop() -> None:
        gang.order("stop", root={"cause": "unknown"})
        gang.until(lambda: bool(gang.channel.check_ins()), 30, "check-in")

    assert begin(0) == []
    clean()
    stop()
    assert begin(1) == []
    stop()
    clean()  # when the next agent stands by already
    assert "does the script clean its temporary folder?" in begin(2)[0]
    stop()
    assert begin(3) == []
    gang.order("exit", 75)
    assert gang.exit_codes() == [75]


SAVES_ON_SIGTERM = """
import os, pathlib, signal, sys, time
out = pathlib.Path("out"); out.mkdir(exist_ok=True)
def stop(*_):
    (out / "saved").write_text("yes")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
for step in range(1, 10000):
    print(f"step {step} loss 1.0", flush=True)
    time.sleep(0.01)
"""


@pytest.mark.parametrize(("launcher", "text", "code"), [("torchrun", SAVES_ON_SIGTERM, 76), ("plain", HANGS, 75)])
def test_sigterm_of_the_pod_reaches_the_ranks(
    make_gang: Callable[[int], Gang], launcher: str, text: str, code: int
) -> None:
    gang = make_gang(1)
    write(gang, text)
    gang.start(script="train.py", launcher=launcher, nproc_per_node=2, grace_seconds=10)
    gang.assign(0)
    gang.until(lambda: {step["rank"] for step in gang.steps()} == {0, 1}, 30, "steps")
    os.kill(gang.pods[0].process.pid, signal.SIGTERM)
    assert gang.exit_codes() == [code]
    gang.look()
    assert {error["cause"] for error in gang.errors()} == {"sigterm"}
    assert {error["code"] for error in gang.errors()} == {code}
    assert (gang.workspace(0) / "out" / "saved").exists() == (code == 76)


def test_training_goes_on_while_the_supervisor_is_away(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, HANGS.replace("1000", "60"))
    gang.start(script="train.py", launcher="plain")
    gang.assign(0)
    gang.until(lambda: bool(gang.steps()), 30, "first step")
    # A restarted supervisor: same port, same token, another process' memory.
    gang.restart_supervisor(away_seconds=2.0)
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 30, "end")
    assert sorted({step["step"] for step in gang.steps()}) == list(range(1, 60))
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]


def test_wrong_script_is_a_clear_error(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    gang.start(script="trian.py", launcher="plain")
    gang.assign(0)
    gang.until(lambda: bool(gang.errors()), 20, "error")
    error = gang.errors()[0]
    assert error["cause"] == "launcher_usage"
    assert "trian.py" in error["message"]
    gang.order("exit", 78)
    assert gang.exit_codes() == [78]
    assert "Traceback" not in gang.pods[0].text()


def test_exit_injection_into_a_plain_script_is_refused_not_imitated(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, HANGS)
    gang.start(script="train.py", launcher="plain")
    gang.assign(0, fault={"fault": "exit", "rank": 0, "step": 3, "code": 42})
    gang.until(lambda: bool(gang.errors()), 30, "error")
    message = gang.errors()[0]["message"]
    assert "does not call argosy.report" in message
    meant, remedy = advice_for("launcher_usage", message)
    assert "the training itself did not fail" in meant
    assert "Inject kill" in remedy
    assert gang.events("injected") == []
    gang.order("exit", 78)
    assert gang.exit_codes() == [78]


SAVES = """
import torch, torch.distributed as dist, os, sys
from argosy import Checkpointer, report
dist.init_process_group("gloo")
saver = Checkpointer()
found = saver.restore()
first = found.step + 1 if found else 1
weight = found.state["w"] if found else torch.zeros(3)
for step in range(first, 31):
    weight += step
    if saver.due(step) or step == 30:
        saver.save(step, {"w": weight}, final=step == 30)
    report(step, loss=float(weight[0]), end_step=30)
dist.destroy_process_group()
"""


def test_a_checkpointer_under_launch_and_an_exit_that_the_rank_does_itself(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    write(gang, SAVES)
    checkpoints = CheckpointStore(open_store(gang.store_uri), "run/runs/run-1")
    claim = checkpoints.claim("first")
    gang.start(script="train.py", nproc_per_node=2, checkpoint_every_steps="auto", checkpoint_failure_hours=50.0)
    fault = {"fault": "exit", "rank": 1, "step": 25, "code": 42}
    gang.assign(0, generation=claim.generation, log_seq=claim.seq, fault=fault)
    gang.until(lambda: gang.phases() == {"pod-0": "failed"}, 60, "failure")
    assert gang.endings()[1]["exit_code"] == 42
    assert [event["step"] for event in gang.events("checkpoint_committed")] == [10, 20]
    assert [(event["fault"], event["rank"], event["step"]) for event in gang.events("injected")] == [("exit", 1, 25)]
    # Nothing is measured before the first two saves; then the interval is decided, from milliseconds and 50 hours.
    assert re.search(r"argosy: a checkpoint every [1-9]\d\d+ steps from step 20 on \(before: 10\)", gang.pods[0].text())
    newest = checkpoints.newest()
    assert newest is not None
    claim = checkpoints.claim("second")
    gang.order("stop", root={"cause": "unknown"})
    gang.reports.clear()
    gang.assign(1, generation=claim.generation, log_seq=claim.seq, resume_digest=newest.digest, resume_step=newest.step)
    gang.until(lambda: gang.phases() == {"pod-0": "finished"}, 60, "end")
    losses = {step["step"]: step["loss"] for step in gang.steps() if step["rank"] == 0}
    assert losses == {step: float(sum(range(step + 1))) for step in range(21, 31)}
    last = checkpoints.newest()
    assert last is not None
    assert (last.step, last.final, last.generation) == (30, True, claim.generation)
    gang.order("exit", 0)
    assert gang.exit_codes() == [0]
