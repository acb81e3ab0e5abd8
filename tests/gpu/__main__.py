"""``make gpu``: everything that needs one CUDA GPU, part by part; run it again to go on where it stopped.

python -m tests.gpu [--only PART ...] [--minutes 9] [--together 8] [--again] [--cpu] [--list]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from argosy.steps.pods import processes
from tests.gpu.case import FIGURE, SKIPPED, Part, part
from tests.gpu.record import KEPT, ROOT, Record

# The cheapest and most telling first: minutes on a lent machine may end at any time.
PARTS = (
    "machine", "saves", "stalls", "nccl_logs", "faults", "kills", "throughput", "exactness", "overhead", "resume",
    "example", "trainers",
)  # fmt: skip
TOKEN = "ARGOSY_GPU_CASE"
LOOK_SECONDS = 1.0
BEAT_SECONDS = 20.0
MEMORY_BYTES = 32 << 30
"""Room below /dev/shm from which on cases that need no disk write there."""
ENOUGH = 0.6
"""Share of its limit that must be left for a case to begin: limits are generous."""


def main() -> int:
    """0: all that was run held, or there is no GPU; 1: something did not."""
    parser = argparse.ArgumentParser(prog="make gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--case", help="one case of the part")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no case that may end later")
    parser.add_argument("--together", type=int, default=1, help="so many at once of the cases that time nothing")
    parser.add_argument("--again", action="store_true", help="also what has run already")
    parser.add_argument(
        "--cpu", action="store_true", help="a stand-in on CPUs: tries the suite, proves nothing of GPUs"
    )
    parser.add_argument("--list", action="store_true", help="parts, cases and how they ended")
    parser.add_argument("--folder", type=Path, default=KEPT, help="where results are kept (default .gpu)")
    args = parser.parse_args()
    if not args.cpu and not args.list and (why := no_gpu()):
        print(f"no GPU here ({why}): nothing was run and nothing is claimed")
        return 0
    record = Record("cpu" if args.cpu else "cuda", args.folder)
    todo = [(name, case) for name in args.only for case in part(name).cases if args.case in (None, case)]
    if args.list:
        for name, case in todo:
            print(f"{name:<12} {case:<32} {record.state(name, case) or 'not run'}")
        return 0
    return run(record, todo, args)


def no_gpu() -> str:
    """Why there is none; "" where there is one. Asked in another process: some cases fork, which CUDA forbids."""
    ask = "import torch; torch.ones(1, device='cuda').item()"
    try:
        done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return "CUDA did not answer within 120 s"
    said = done.stderr.strip().splitlines() or ["?"]
    return "" if done.returncode == 0 else said[-1][:200]


def run(record: Record, todo: list[tuple[str, str]], args: argparse.Namespace) -> int:
    """What has not run first, then what failed before; what may run beside others after the machine itself."""
    end = time.monotonic() + args.minutes * 60
    states = {each: record.state(*each) for each in todo}
    fresh = [each for each in todo if args.again or states[each] == ""]
    failed = [each for each in todo if each not in fresh and states[each] in ("failed", "timed out")]
    waiting = [each for each in fresh + failed if record.device == "cuda" or part(each[0]).cpu]
    beside = [each for each in waiting if args.together > 1 and each[1] in part(each[0]).beside]
    for name, case in (each for each in waiting if each[0] == PARTS[0]):
        in_time(record, name, case, end)
    beside.sort(key=lambda each: -part(each[0]).seconds)  # the longest first: they end together
    with ThreadPoolExecutor(args.together) as pool:
        list(pool.map(lambda each: in_time(record, *each, end), beside))
    for name, case in (each for each in waiting if each[0] != PARTS[0] and each not in beside):
        in_time(record, name, case, end)
    table = record.folder / ("gpu.md" if record.device == "cuda" else "cpu.md")
    print(table.read_text() if table.exists() else "nothing was left to run", flush=True)
    held = [figure["held"] for each in todo for figure in record.figures(*each) if "held" in figure]
    ends = [record.state(*each) for each in todo]
    counts = ", ".join(f"{ends.count(end)} {end}" for end in sorted({*ends}) if end)
    print(f"{sum(held)} of {len(held)} bars held; cases: {counts}")
    return 0 if all(held) and not {"failed", "timed out"} & {*ends} else 1


def in_time(record: Record, name: str, case: str, end: float) -> None:
    """Run a case where it is likely to be done before ``end``."""
    chosen = part(name)
    if time.monotonic() + ENOUGH * chosen.seconds > end:
        print(f"--- {name}: {case}: too few minutes are left; the same command goes on", flush=True)
    else:
        one(record, name, case, chosen, min(chosen.seconds, end - time.monotonic()))


def one(record: Record, name: str, case: str, chosen: Part, seconds: float) -> None:
    """Run a case; whatever becomes of it, the others are not touched."""
    print(f"--- {name}: {case} (at most {seconds:.0f} s)", flush=True)
    at: dict[str, Any] = {"part": name, "case": case}
    record.add({**at, "begins": True})
    memory = case not in chosen.disk and shutil.disk_usage("/dev/shm").free > MEMORY_BYTES
    scratch = Path(tempfile.mkdtemp(prefix="argosy-gpu-", dir="/dev/shm" if memory else None))
    known = {f"{f['case']}: {f['what']}": f["value"] for f in record.figures(name) if f["case"] != case}
    command = [
        sys.executable, "-m", "tests.gpu.child", name, case, "--device", record.device,
        "--folder", str(scratch), "--seconds", str(seconds), "--known", json.dumps(known),
    ]  # fmt: skip
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    environ = {
        # Sixteen threads of each of ten processes wait for each other's cores.
        **({"OMP_NUM_THREADS": "1"} if case in chosen.beside else {}),
        # A lent machine's own name need not resolve; all ranks are here.
        **{"GLOO_SOCKET_IFNAME": "lo", **os.environ}, TOKEN: str(scratch), "PYTHONUNBUFFERED": "1",
        "ARGOSY_GPU_RESULTS": str(record.folder),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }  # fmt: skip
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        tail = followed(record, at, process, began + seconds)
        late = process.poll() is None and time.monotonic() >= began + seconds
    finally:
        with contextlib.suppress(TimeoutError):  # a process that the driver holds: the next case may still run
            processes.kill_all(lambda: {*processes.carrying(TOKEN, str(scratch)), *processes.descendants(process.pid)})
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.stdout is not None:
            process.stdout.close()
        shutil.rmtree(scratch, ignore_errors=True)
    state = "timed out" if late else {0: "ran", SKIPPED: "not possible here"}.get(process.returncode, "failed")
    why = "" if state == "ran" else " / ".join(line for line in list(tail)[-3:])
    record.add({
        **at, "state": state, "seconds": round(time.monotonic() - began), "why": why,
        **({"tail": list(tail)} if state in ("failed", "timed out") else {}),
    })  # fmt: skip
    print(f"--- {name}: {case}: {state} after {time.monotonic() - began:.0f} s", flush=True)


def followed(record: Record, at: dict[str, Any], process: subprocess.Popen[bytes], deadline: float) -> deque[str]:
    """Pass its lines on and keep its figures until it ends or its time is over; its last lines."""
    assert process.stdout is not None
    tail: deque[str] = deque(maxlen=40)
    rest, beat = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.select(LOOK_SECONDS):
                if process.poll() is not None:
                    break  # a grandchild holds the pipe
                if time.monotonic() - beat > BEAT_SECONDS:
                    beat = time.monotonic()
                    print(f"    … {deadline - beat:.0f} s left", flush=True)
                continue
            data = os.read(process.stdout.fileno(), 1 << 16)
            *lines, rest = (rest + data).split(b"\n")
            for line in [raw.decode(errors="replace") for raw in lines]:
                if line.startswith(FIGURE):
                    record.add({**at, **json.loads(line[len(FIGURE) :])})
                tail.append(line[:500])
                print(f"    {line[:300]}", flush=True)
            if not data:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.1, deadline - time.monotonic()))
                break
    return tail


if __name__ == "__main__":
    sys.exit(main())
