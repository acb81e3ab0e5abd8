"""Two nodes of two ranks write folders of their own and are killed at random instants, again and again.

A case is one run: lives that end by a kill, and one that may end well. In each, before anything goes on: every
commit holds all four ranks' files, whole and of one step; what is restored is never older than an acknowledged
commit; and at the end the last step is committed as final.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract.channel import Assignment, Orders
from argosy.steps.pods import processes
from tests.launch.nodes import Cluster
from tests.prove.record import ROOT, Record

LIVES = 4
STEPS, EVERY, PAUSE = 120, 10, 0.05
FAULTS = ("rank", "node, disk kept", "node and its disk", "both nodes", "node stopped, comes back", "supervisor")
COLUMNS = ["kills", "runs", "by fault", "commits looked at", "restored", "torn or mixed", "lost", "held"]
_NODE = ROOT / "tests" / "launch" / "node_process.py"


@dataclass
class Seen:
    """What a case found."""

    faults: list[str] = field(default_factory=list)
    commits: int = 0
    restored: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` cases are recorded or ``minutes`` are over; 0 when all held."""
    record = Record("folder-kills", seed)

    def case(number: int) -> dict[str, Any]:
        return {"case": number, **_case(record.folder / "folder-kills", random.Random(f"{seed}-{number}"))}

    record.go_on(record.left(count), case, minutes)
    return record.told("Folders of 2 nodes x 2 ranks, killed at random instants", ["case", *COLUMNS])


def _case(work: Path, dice: random.Random) -> dict[str, Any]:
    shutil.rmtree(work, ignore_errors=True)
    shared = dice.random() < 0.3
    writers = {} if shared else {"checkpoint_writers": "every"}
    rig = Cluster(work, shared=shared, checkpoint_timeout_seconds=5, checkpoint_keep=0, **writers)
    seen = Seen()
    try:
        for number in range(LIVES):
            _life(rig, dice, seen, dice.choice(FAULTS) if number < LIVES - 1 else "")
        newest = rig.store.newest()
        if newest is None or not newest.final or rig.step_of(newest) != STEPS:
            seen.lost.append("the end was not committed")
    except AssertionError as error:
        seen.wrong.append(str(error))
    finally:
        rig.close()
    return {
        "kills": len(seen.faults),
        "runs": "shared folder" if shared else "a disk per node",
        "by fault": "; ".join(seen.faults),
        "commits looked at": seen.commits,
        "restored": " ".join(map(str, seen.restored)),
        "torn or mixed": "; ".join(seen.wrong),
        "lost": "; ".join(seen.lost),
        "held": not seen.wrong and not seen.lost,
    }


def _life(rig: Cluster, dice: random.Random, seen: Seen, fault: str) -> None:
    nodes = _start(rig)
    ended = False
    try:
        if fault:
            _strike(rig, nodes, dice, fault)
            seen.faults.append(fault)
        else:
            ended = _finish(rig, nodes)
    finally:
        said = _end(rig, nodes)
    acknowledged = [int(step) for step in re.findall(r"checkpoint of step (\d+) committed", said)]
    steps = {}
    for commit in rig.store.commits():
        steps[commit.digest] = rig.step_of(commit)
        seen.commits += 1
    newest = max(steps.values(), default=0)
    if acknowledged and newest < max(acknowledged):
        seen.lost.append(f"step {max(acknowledged)} was acknowledged, {newest} is there")
    resumed = {int(step) for step in re.findall(r'"resumed": (\d+)', said)}
    if len(resumed) > 1:
        seen.wrong.append(f"ranks resumed from {sorted(resumed)}")
    seen.restored += sorted(resumed)
    if seen.restored != sorted(seen.restored):
        seen.lost.append(f"resumed from {seen.restored}")
    if not fault and not ended:
        seen.lost.append(f"the undisturbed life did not end: {said[-300:]}")


def _start(rig: Cluster) -> list[subprocess.Popen[bytes]]:
    """A claim, and a node process each, with what the newest commit holds."""
    rig.restart += 1
    rig.channel.assign(rig.restart, {})
    claim = rig.store.claim(f"g/{rig.restart}")
    newest = rig.store.newest()
    nodes = []
    for index in range(rig.nnodes):
        told = Assignment(
            restart=rig.restart, attempt=1, node_rank=index, nnodes=rig.nnodes, master_addr="", master_port=0,
            run_id="r1", workflow="w", generation=claim.generation, log_seq=claim.seq,
            resume_digest=newest.digest if newest else "", resume_step=newest.step if newest else 0,
            dataset_digest="", args=[],
        )  # fmt: skip
        work = rig.root / f"work-{0 if rig.shared else index}"
        work.mkdir(parents=True, exist_ok=True)
        plan = {
            "args": rig.args.to_argv(), "assignment": asdict(told), "workdir": str(work),
            "identity": [f"p{index}", f"node-{index}", index, rig.endpoint.url, rig.endpoint.token],
            "ranks": list(range(index * rig.nproc, (index + 1) * rig.nproc)),
            "steps": STEPS, "every": EVERY, "pause": PAUSE,
        }  # fmt: skip
        path = rig.root / f"plan-{index}.json"
        path.write_text(json.dumps(plan))
        with (rig.root / f"log-{rig.restart}-{index}").open("wb") as log:
            nodes.append(subprocess.Popen([sys.executable, str(_NODE), str(path)], stdout=log, stderr=log))
    return nodes


def _strike(rig: Cluster, nodes: list[subprocess.Popen[bytes]], dice: random.Random, fault: str) -> None:
    """Wait for a random instant of the training, and do it."""
    rig.until(lambda: all("resumed" in _log(rig, index) for index in range(2)), "first life sign", 60)
    time.sleep(dice.uniform(0.0, STEPS * PAUSE * 0.7))
    index = dice.randrange(2)
    if fault == "rank":
        os.kill(dice.choice(sorted(processes.descendants(nodes[index].pid))), signal.SIGKILL)
    elif fault.startswith("node and") or fault == "node, disk kept":
        nodes[index].kill()
        if fault.endswith("disk") and not rig.shared:
            nodes[index].wait()
            shutil.rmtree(rig.root / f"work-{index}")
    elif fault == "both nodes":
        for node in nodes:
            node.kill()
    elif fault.startswith("node stopped"):
        nodes[index].send_signal(signal.SIGSTOP)
        rig.store.claim("another gang")  # it has been replaced, and wakes up
        time.sleep(0.3)
        nodes[index].send_signal(signal.SIGCONT)
    elif fault == "supervisor":
        rig.end_supervisor()
        time.sleep(dice.uniform(0.0, 1.0))
        rig.supervise()
        rig.channel.assign(rig.restart, {}, released=False)
    time.sleep(dice.uniform(0.0, 1.0))


def _finish(rig: Cluster, nodes: list[subprocess.Popen[bytes]]) -> bool:
    """Whether all nodes finish by themselves."""
    phases: dict[str, str] = {}
    deadline = time.monotonic() + 120
    while set(phases.values()) != {"finished"} or len(phases) < 2:
        phases |= {report.pod: report.phase for report in rig.channel.drain()}
        if time.monotonic() > deadline or any(node.poll() is not None for node in nodes):
            return False
        time.sleep(0.05)
    return True


def _end(rig: Cluster, nodes: list[subprocess.Popen[bytes]]) -> str:
    """Stop all, and what they said."""
    rig.channel.order(Orders(command="stop"))
    for node in nodes:
        try:
            node.wait(20)
        except subprocess.TimeoutExpired:
            node.kill()
            node.wait()
    processes.kill_all(lambda: processes.descendants(os.getpid()))
    return "".join(_log(rig, index) for index in range(2))


def _log(rig: Cluster, index: int) -> str:
    return (rig.root / f"log-{rig.restart}-{index}").read_text(errors="replace")
