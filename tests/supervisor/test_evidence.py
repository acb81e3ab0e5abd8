"""A start that fails leaves an archive of each node, the host's word, and their names in its verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.store import open_store

if TYPE_CHECKING:
    from conftest import Rig

SCRIPT = """
import os, pathlib, sys, time
rank, out, meet = int(os.environ["RANK"]), pathlib.Path("out"), pathlib.Path(sys.argv[1])
def met(step):
    generation = os.environ["ARGOSY_GENERATION"]
    (meet / f"{generation}-{step}-{rank}").touch()
    while not (meet / f"{generation}-{step}-{1 - rank}").exists():
        time.sleep(0.005)
out.mkdir(exist_ok=True)
saved = [int(path.stem) for path in out.glob("*.step")]
for step in range(max(saved, default=0) + 1, 41):
    time.sleep(0.05)
    met(step)
    if "memory" in sys.argv and rank == 1 and step == 10 and os.environ["ARGOSY_RESTART"] == "0":
        b"x" * (800 << 20)
    print(f"step {step}/40 loss {1 / step:.4f}", flush=True)
    if rank == 0 and step % 8 == 0:
        (out / "new").write_text("x")
        (out / "new").rename(out / f"{step}.step")
while "lingers" in sys.argv and not saved:
    time.sleep(0.05)
"""


def start(rig: Rig, *args: str, before: tuple[str, ...] = ()) -> None:
    rig.trains(SCRIPT, rig.plan["shared"], *args, launcher="plain", include=("*.step",), before=before)
    rig.options |= {"check_in_timeout_seconds": 120}


def fetched(rig: Rig, restart: str = "0000") -> tuple[dict[str, Any], dict[int, dict[str, str]], dict[str, Any]]:
    """The verdict of a start; what each node kept, by node rank; what the host knew."""
    into = rig.folder / "bundle"
    uri = f"{rig.plan['store']}/r/runs/r-abc"
    argosy = [sys.executable, "-m", "argosy.workflows.cli.main", "explain", uri, "--bundle", str(into), "--json"]
    done = subprocess.run(argosy, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"]
    places = sorted(into.glob(f"*/{restart}"))
    place = places[0]
    nodes = {}
    for pod in (path for path in place.iterdir() if path.is_dir()):
        files = {path.relative_to(pod).as_posix(): path.read_text() for path in pod.rglob("*") if path.is_file()}
        nodes[json.loads(files["index.json"])["node_rank"]] = files
    return json.loads((place / "verdict.json").read_text()), nodes, json.loads((place / "host.json").read_text())


def test_a_killed_rank_leaves_what_every_node_knew(rig: Rig) -> None:
    start(rig)
    rig.inject = ("kill:rank=1@step=20",)
    assert rig.run(200) == 0, rig.log()
    verdict, nodes, host = fetched(rig)
    assert (verdict["rank"], verdict["signal"]) == (1, 9)
    assert sorted(Path(each["key"]).name.split(".")[-1] for each in verdict["bundle"]) == ["gz", "gz", "json"]
    store = open_store(rig.plan["store"])
    assert all(len(store.get(each["key"])) == each["bytes"] for each in verdict["bundle"])
    assert sorted(nodes) == [0, 1]
    (ended,) = json.loads(nodes[1]["endings.json"])
    assert (ended["rank"], ended["signal"]) == (1, 9)
    assert "step 20/40 loss" in nodes[1]["ranks/rank-1.log"]
    assert "step 19/40 loss" in nodes[0]["ranks/rank-0.log"]
    assert all("free" in json.loads(line) for line in nodes[0]["machine/room.jsonl"].splitlines())
    assert [state["phase"] for state in host["states"]] == ["Running", "Running"]
    assert rig.events("bundle")[-1].fields["files"] == 3
    # The start that ended well left none.
    assert not list((rig.folder / "bundle").glob("*/0001"))


def test_a_reclaimed_pod_leaves_it_within_its_grace(rig: Rig) -> None:
    start(rig)
    rig.inject = ("preempt:node=1@step=20",)
    assert rig.run(200) == 0, rig.log()
    verdict, nodes, _ = fetched(rig)
    assert verdict["cause"] == "preempted_evicted"
    (ended,) = json.loads(nodes[1]["endings.json"])
    assert (ended["signal"], ended["stopped"]) == (15, True)


def test_a_node_that_is_gone_leaves_what_the_others_knew(rig: Rig) -> None:
    start(rig)
    rig.inject = ("node-loss:node=1@step=20",)
    assert rig.run(200) == 0, rig.log()
    verdict, nodes, host = fetched(rig)
    assert verdict["cause"] == "preempted_evicted"
    assert list(nodes) == [0]
    assert [state["reason"] for state in host["states"]] == ["", "NodeLost"]


SPY = """#!/bin/sh
# As py-spy: told "dump --nonblocking --pid PID" while that process is there.
read name < /proc/$4/comm && echo "$1 of $name, still there"
"""


def test_a_hang_leaves_stacks_from_before_anything_was_killed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    (rig.folder / "bin").mkdir()
    (rig.folder / "bin/py-spy").write_text(SPY)
    (rig.folder / "bin/py-spy").chmod(0o755)
    monkeypatch.setenv("PATH", f"{rig.folder}/bin:{os.environ['PATH']}")
    start(rig)
    rig.inject = ("hang:rank=0@step=20", "hang:rank=1@step=20")
    rig.options |= {"hang_timeout_seconds": 8}
    assert rig.run(250) == 0, rig.log()
    verdict, nodes, _ = fetched(rig)
    assert verdict["cause"] == "hang"
    for rank in (0, 1):
        assert nodes[rank][f"stacks/rank-{rank}.txt"].startswith("dump of python")
    stopped = [node for rank, node in nodes.items() if "most recent call first" in node[f"ranks/rank-{rank}.log"]]
    assert stopped


@pytest.mark.skipif(not os.access("/sys/fs/cgroup/memory", os.W_OK), reason="no control group can be made here")
def test_the_kernels_kill_for_memory_is_told_from_any_other(rig: Rig) -> None:
    """Real groups with real limits: each pod is in one, as on a cluster."""
    group = Path("/sys/fs/cgroup/memory") / f"argosy-{rig.token}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(600 << 20))
        join = 'if [ "$JOB_COMPLETION_INDEX" = 1 ]; then echo $BASHPID > "$0/cgroup.procs"; fi; exec "$@"'
        start(rig, "memory", before=("bash", "-c", join, str(group)))
        assert rig.run(200) == 0, rig.log()
    finally:
        group.rmdir()
    verdict, nodes, _ = fetched(rig)
    assert (verdict["cause"], verdict["rank"], verdict["signal"]) == ("host_oom", 1, 9)
    assert verdict["quote"] in nodes[1]["ranks/rank-1.log"]
    assert "1 since this start began" in nodes[1]["machine/oom-kills.txt"]
