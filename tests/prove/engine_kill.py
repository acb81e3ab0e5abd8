"""The demo's run, the whole engine SIGKILLed at a random instant, run again: it must end promoted.

After each: no process is left, nothing at or before the newest commit was trained again, every loss that the log
holds equals the uninterrupted run's, and so do the bytes of the final checkpoint.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract import env
from argosy.steps.pods import processes
from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from tests.prove.record import ROOT, Record

ARGOSY = str(Path(sys.executable).parent / "argosy")
EXAMPLE = ROOT / "examples" / "stdlib-gpt"
LIMIT_SECONDS = 300.0
COLUMNS = [
    "case", "killed at s", "during", "committed", "restored", "steps trained again", "losses that differ",
    "final bytes", "left over", "exit", "phase", "held",
]  # fmt: skip


@dataclass(frozen=True)
class Truth:
    """The uninterrupted run: loss by step, SHA-256 of each file of its final checkpoint, wall seconds."""

    losses: dict[int, float]
    files: dict[str, str]
    seconds: float


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` cases are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("engine-kill", seed)
    work = record.folder / "engine-kill"
    truth = uninterrupted(work)
    print(f"uninterrupted: {truth.seconds:.1f} s, {len(truth.losses)} losses; seed {seed}", flush=True)

    def killed(number: int) -> dict[str, Any]:
        return kill_once(work, number, random.Random(f"{seed}-{number}"), truth)

    record.go_on(record.left(count), killed, minutes)
    return record.told("The whole engine killed (SIGKILL) at random instants, and run again", COLUMNS)


def fresh(work: Path) -> Path:
    """A copy of the example with an empty state folder and its dataset."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(EXAMPLE, work, ignore=shutil.ignore_patterns(".argosy", "__pycache__"))
    subprocess.run([sys.executable, "prepare.py"], cwd=work, check=True, capture_output=True)
    return work


def start(work: Path) -> subprocess.Popen[bytes]:
    """The engine, its output kept beside the copy."""
    with (work.parent / "engine-kill.log").open("ab") as log:
        return subprocess.Popen([ARGOSY, "run", "run.toml"], cwd=work, stdout=log, stderr=log, start_new_session=True)


def uninterrupted(work: Path) -> Truth:
    """What a run gives that nobody disturbs."""
    fresh(work)
    began = time.monotonic()
    code = start(work).wait(LIMIT_SECONDS)
    seconds = time.monotonic() - began
    if code != 0:
        raise SystemExit(f"the uninterrupted run failed with {code}; see {work.parent / 'engine-kill.log'}")
    _, losses = losses_of(events(work), {})
    return Truth(losses, final_files(work), seconds)


def run_store(work: Path) -> tuple[str, str] | None:
    """(store uri, run prefix) of the only run, read from disk as it lies there; None before it has one."""
    store = work / ".argosy" / "volumes" / "argosy" / "store"
    runs = sorted(store.glob("*/runs/*"))
    return (f"file://{store}", runs[-1].relative_to(store).as_posix()) if runs else None


def events(work: Path) -> list[Event]:
    """The run's event log."""
    where = run_store(work)
    return read_events(open_store(where[0]), where[1]) if where else []


def committed(work: Path) -> int:
    """Step of the newest commit."""
    where = run_store(work)
    newest = CheckpointStore(open_store(where[0]), where[1]).newest() if where else None
    return newest.step if newest else 0


def final_files(work: Path) -> dict[str, str]:
    """Path -> SHA-256 of the final checkpoint's files, each read and verified."""
    where = run_store(work)
    store = CheckpointStore(open_store(where[0]), where[1]) if where else None
    newest = store.newest() if store else None
    if store is None or newest is None or not newest.final:
        return {}
    store.verify(newest)
    return {file.path: file.sha256 for file in newest.files}


def losses_of(log: list[Event], truth: dict[int, float]) -> tuple[int, dict[int, float]]:
    """How many logged losses differ from ``truth``, and the losses by step."""
    told = [
        (int(event.fields["step"]), float(event.fields["loss"]))
        for event in log
        if event.kind == "step" and event.fields.get("rank", 0) == 0 and event.fields.get("loss") is not None
    ]
    return sum(truth.get(step, loss) != loss for step, loss in told), dict(told)


def kill_once(work: Path, number: int, draw: random.Random, truth: Truth) -> dict[str, Any]:
    """One case. A run that ended before its instant is begun again with an earlier one: nothing was killed."""
    instant = draw.uniform(0.2, truth.seconds)
    while not struck(fresh(work), instant):
        instant = draw.uniform(0.2, instant)
    killed = time.time()
    step = committed(work)
    code = start(work).wait(LIMIT_SECONDS)
    return judged(work, number, instant, killed, step, code, truth)


def struck(work: Path, instant: float) -> bool:
    """Whether the engine was killed ``instant`` seconds after its start, and had not ended by itself."""
    engine = start(work)
    try:
        engine.wait(instant)
    except subprocess.TimeoutExpired:
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
        return True
    return False


def judged(
    work: Path, number: int, instant: float, killed: float, step: int, code: int, truth: Truth
) -> dict[str, Any]:
    """What the case left, and whether it holds."""
    log = events(work)
    before, after = [e for e in log if e.time <= killed], [e for e in log if e.time > killed]
    done = subprocess.run([ARGOSY, "status", "--json"], cwd=work, capture_output=True, text=True, check=False)
    told = json.loads(done.stdout) if done.returncode == 0 else {}
    restored = [int(e.fields.get("restored_step") or 0) for e in after if e.kind == "restart_began"]
    again = [e for e in after if e.kind == "step" and int(e.fields["step"]) <= step]
    differ, _ = losses_of(log, truth.losses)
    case = {
        "case": number,
        "killed at s": round(instant, 2),
        "during": before[-1].kind if before else "before the first event",
        "committed": step,
        "restored": restored[-1] if restored else "",
        "steps trained again": len(again),
        "losses that differ": differ,
        "final bytes": "equal" if truth.files == final_files(work) != {} else "DIFFERENT",
        "left over": len(leftovers(work)),
        "exit": code,
        "phase": told.get("phase", "?"),
    }
    promoted = bool(told.get("promoted_digest")) and told["promoted_digest"] == told.get("evaluated_digest")
    quiet = not (again or differ or case["left over"]) and all(found >= step for found in restored)
    return {**case, "held": code == 0 and promoted and quiet and case["final bytes"] == "equal"}


def leftovers(work: Path) -> set[int]:
    """Processes that still belong to a pod of this folder's runs."""
    found = set()
    for pid in processes.carrying(env.POD_TOKEN, ""):
        try:
            if str(work).encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
        except OSError:
            continue
    return found
