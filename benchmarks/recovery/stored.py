"""What a restart asks of the store, an S3 of our own: two nodes with a rank each, one rank killed or one node lost.

python -m benchmarks.recovery.stored [--mib 200] [--mode checkpointer] [--lose] [--latency 0.03]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from tests.s3.server import S3Server

RUN = """\
name = "stored"
script = "train.py"
[storage]
uri = "s3://b/store"
[gang]
nnodes = 2
nproc_per_node = 1
spares = {spares}
resources = {{ cpu = "1", memory = "{memory}Mi" }}
[checkpoint]
mode = "{mode}"
{more}
"""
OPAQUE = 'path = "out"\ninclude = ["*.pt"]'
HEAD = """
import os, sys, time, torch, torch.distributed as dist
from argosy import Checkpointer, report
dist.init_process_group("gloo")
state = {{str(n): torch.full(({numbers},), n, dtype=torch.float32) for n in range(8)}}
first = 1
"""
LOOP = {
    "checkpointer": """
saver = Checkpointer()
if found := saver.restore(into=state):
    first = found.step + 1
def save(step):
    saver.save(step, state, final=step == 15, wait=True)
""",
    "opaque": """
if os.path.exists("out/state.pt"):
    found = torch.load("out/state.pt")
    first, state = found["step"] + 1, found["state"]
def save(step):
    if dist.get_rank() == 0:
        os.makedirs("out", exist_ok=True)
        torch.save({"step": step, "state": state}, "out/part")
        os.replace("out/part", "out/state.pt")
    if first == 1:
        time.sleep(5 + 8 * state["0"].numel() / 2e7)  # so that it is committed when the rank is killed
""",
}
TAIL = """
for step in range(first, 16):
    dist.barrier()
    for each in state.values():
        each += step
    if step in (10, 15):
        save(step)
    report(step, end_step=15)
    if first == 1 and step == 12:
        time.sleep(600)  # the fault comes
dist.destroy_process_group()
"""


def main() -> int:
    """Train once and print what was read; 0 when the run went well."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery.stored")
    parser.add_argument("--mib", type=int, default=200, help="size of a checkpoint")
    parser.add_argument("--mode", choices=sorted(LOOP), default="checkpointer")
    parser.add_argument("--lose", action="store_true", help="the second node is lost, and a spare takes its rank")
    parser.add_argument("--latency", type=float, default=0.03, help="seconds that an answer of the store takes")
    args = parser.parse_args()
    with S3Server(("b",), plan=lambda seen: "slow") as server, tempfile.TemporaryDirectory() as scratch:
        server.slow_seconds = args.latency
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        os.environ.update({**keys, "AWS_ENDPOINT_URL": server.endpoint})
        folder = Path(scratch)
        more = OPAQUE if args.mode == "opaque" else "every_steps = 10"
        told = {"mode": args.mode, "memory": 1000 + 4 * args.mib, "spares": int(args.lose), "more": more}
        (folder / "run.toml").write_text(RUN.format(**told))
        script = HEAD.format(numbers=args.mib << 15) + LOOP[args.mode] + TAIL
        (folder / "train.py").write_text(script)
        command = [str(Path(sys.executable).parent / "argosy"), "run", "run.toml", "--state-dir", str(folder / "state")]
        fault = "node-loss:node=1@step=12" if args.lose else "kill:rank=1@step=12"
        code = subprocess.run([*command, "--inject", fault], cwd=folder).returncode
        # Of the save that the restart goes back to, and not what the end of the run reads of the last one.
        files = [seen for seen in server.requests if "/data/0000000010-" in seen.path and "/files/" in seen.path]
        read = sum(seen.served for seen in files if seen.operation.startswith("Get"))
        print(f"{args.mode}: {read} bytes of {args.mib << 20} in a checkpoint were asked of the store")
        for began, step in _restarts():
            print(f"restart with the first step {step.time - began.time:.1f} s after it began")
        for event in _events("restored"):
            print("restored", event.fields)
    return code


def _events(kind: str) -> list[Event]:
    store = open_store("s3://b/store")
    runs = {info.key.split("/")[2] for info in store.list("stored/runs")}
    return [each for run in runs for each in read_events(store, f"stored/runs/{run}") if each.kind == kind]


def _restarts() -> list[tuple[Event, Event]]:
    steps = _events("step")
    return [
        (began, next(step for step in steps if step.fields["restart"] == began.fields["restart"]))
        for began in _events("restart_began")
    ]


if __name__ == "__main__":
    sys.exit(main())
