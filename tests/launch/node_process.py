"""One node as a process that can be killed: launch's savers and channel, ranks that write files, no torchrun.

Run as ``node_process.py PLAN.json``: {"args": argv of launch, "assignment", "identity": [...], "workdir", "ranks",
"steps", "every", "pause"}. Ranks write ``checkpoint-N/rankR.json`` in two halves and remove what is older than four.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment, Ending
from argosy.steps.launch.channel_client import ChannelClient
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves
from argosy.steps.store import open_store
from argosy.steps.store.leaving import LeavableStore

RANK = """
import json, os, pathlib, random, sys, time
out, rank, steps, every, pause = pathlib.Path(sys.argv[1]), *map(float, sys.argv[2:6])
rank, first, dice = int(rank), 1, random.Random()
for path in sorted(out.glob(f"checkpoint-*/rank{rank}.json"), key=lambda path: int(path.parent.name.split("-")[1])):
    first = json.loads(path.read_text())["step"] + 1
print(json.dumps({"resumed": first - 1, "rank": rank}), flush=True)
for step in range(first, int(steps) + 1):
    time.sleep(pause * dice.uniform(0.5, 1.5))
    if step % int(every):
        continue
    folder = out / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"step": step, "rank": rank, "pad": "x" * dice.randrange(10, 200000)})
    with open(folder / f"rank{rank}.json", "w") as target:
        target.write(text[: len(text) // 2]); target.flush()
        time.sleep(pause * dice.uniform(0, 3))
        target.write(text[len(text) // 2 :])
    for old in out.glob(f"checkpoint-*/rank{rank}.json"):
        if int(old.parent.name.split("-")[1]) <= step - 4 * every:
            old.unlink()
"""


def main() -> int:
    """Run the node until it is told to stop; exit code 0."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    args, assignment = LaunchArgs.from_argv(plan["args"]), Assignment(**plan["assignment"])
    identity = Identity(*plan["identity"])
    reporter = Reporter(ChannelClient(identity.channel_url, identity.channel_token), identity, assignment)
    store = LeavableStore(open_store(args.store_uri), threading.Event())
    saves = Saves(args, assignment, store, Path(plan["workdir"]), reporter)
    reporter.start()
    saves.restore({})
    out = Path(plan["workdir"]) / args.checkpoint_path
    numbers = [str(plan[name]) for name in ("steps", "every", "pause")]
    ranks = {
        rank: subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", RANK, str(out), str(rank), *numbers], preexec_fn=die_with_parent()
        )
        for rank in plan["ranks"]
    }
    for number, rank in ranks.items():
        saves.started(number, rank.pid)
    Path(plan["workdir"], "pids").write_text(json.dumps([rank.pid for rank in ranks.values()]))
    saves.start(reporter.endings)
    reporter.enter("running")
    told: set[int] = set()
    while reporter.orders() is None and len(told) < len(ranks):
        time.sleep(0.01)
        for number, rank in ranks.items():
            if number not in told and (code := rank.poll()) is not None:
                told.add(number)
                reporter.ending(
                    Ending(rank=number, time=time.time(), exit_code=code, signal=None, stopped=False, pod=identity.pod)
                )
    if all(rank.poll() == 0 for rank in ranks.values()):
        saves.finish(final=True, go_on=lambda: reporter.orders() is None)
        reporter.enter("finished")
    saves.stop()
    for rank in ranks.values():
        rank.kill()
        rank.wait()
    while reporter.orders() is None and os.getppid() != 1:
        time.sleep(0.02)
    reporter.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
