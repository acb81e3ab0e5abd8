"""The demo's run, the whole engine SIGKILLed at a random instant, run again: it must end promoted.

After each: no process is left, no committed step was trained again, and every step's loss equals the
uninterrupted run's to the last bit that the log keeps.
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
from pathlib import Path
from typing import Any

from argosy.steps.contract import env
from argosy.steps.pods import processes
from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from tests.prove.record import ROOT, Record

ARGOSY = str(Path(sys.executable).parent / "argosy")
EXAMPLE = ROOT / "examples" / "stdlib-gpt"
LIMIT_SECONDS = 240.0


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` cases are recorded or ``minutes`` are over; 0 when all that were run held."""
    folder = Path(os.environ.get("ARGOSY_PROOFS", Path.home() / ".cache" / "argosy" / "proofs"))
    record = Record("engine-kill", seed, folder)
    deadline = time.monotonic() + minutes * 60
    work = folder / "engine-kill"
    losses, seconds = uninterrupted(work)
    print(f"uninterrupted: {seconds:.1f} s, {len(losses)} losses; seed {seed}", flush=True)
    for number in range(len(record.cases()), count):
        instant = random.Random(f"{seed}-{number}").uniform(0.3, seconds)
        case = kill_once(work, number, instant, losses)
        record.add(case)
        print(json.dumps(case), flush=True)
        if time.monotonic() > deadline:
            print(f"{number + 1} of {count} done; run the same command to go on", flush=True)
            break
    table = record.write_table(
        "The engine killed at random instants",
        ["case", "killed at s", "during", "exit", "phase", "restored", "steps replayed", "left over", "losses", "held"],
    )
    print(f"written: {table.relative_to(ROOT)}")
    return 0 if all(case["held"] for case in record.cases()) else 1


def fresh(work: Path) -> Path:
    """A copy of the example with an empty state folder and its dataset."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(EXAMPLE, work, ignore=shutil.ignore_patterns(".argosy", "__pycache__"))
    subprocess.run([sys.executable, "prepare.py"], cwd=work, check=True, capture_output=True)
    return work


def start(work: Path) -> subprocess.Popen[bytes]:
    """The engine, its output kept."""
    with (work / "out.log").open("ab") as log:
        return subprocess.Popen([ARGOSY, "run", "run.toml"], cwd=work, stdout=log, stderr=log, start_new_session=True)


def uninterrupted(work: Path) -> tuple[dict[int, float], float]:
    """Losses by step and the seconds of a run that nobody disturbs."""
    fresh(work)
    began = time.monotonic()
    code = start(work).wait(LIMIT_SECONDS)
    if code != 0:
        raise SystemExit(f"the uninterrupted run failed with {code}:\n{(work / 'out.log').read_text()[-3000:]}")
    return losses_of(events(work)), time.monotonic() - began


def events(work: Path) -> list[Event]:
    """The event log of the only run in the store, read from disk as it is."""
    store = work / ".argosy" / "volumes" / "argosy" / "store"
    runs = sorted(store.glob("*/runs/*"))
    return read_events(open_store(f"file://{store}"), runs[-1].relative_to(store).as_posix()) if runs else []


def losses_of(log: list[Event]) -> dict[int, float]:
    """Step -> loss; a step seen twice must have the same loss, else it is NaN (never equal)."""
    found: dict[int, float] = {}
    for event in log:
        if event.kind == "step" and event.fields.get("rank", 0) == 0 and event.fields.get("loss") is not None:
            step, loss = int(event.fields["step"]), float(event.fields["loss"])
            found[step] = loss if found.get(step, loss) == loss else float("nan")
    return found


def kill_once(work: Path, number: int, instant: float, expected: dict[int, float]) -> dict[str, Any]:
    """One case."""
    fresh(work)
    engine = start(work)
    try:
        engine.wait(instant)
    except subprocess.TimeoutExpired:
        os.kill(engine.pid, signal.SIGKILL)
        engine.wait()
    before = events(work)
    code = start(work).wait(LIMIT_SECONDS)
    return judged(work, number, instant, before, code, expected)


def judged(
    work: Path, number: int, instant: float, before: list[Event], code: int, expected: dict[int, float]
) -> dict[str, Any]:
    """What the case left, and whether it holds."""
    after = events(work)
    told = subprocess.run([ARGOSY, "status", "--json"], cwd=work, capture_output=True, text=True, check=False)
    state = json.loads(told.stdout) if told.returncode == 0 else {}
    left = leftovers(work)
    committed = max((int(e.fields["step"]) for e in before if e.kind == "checkpoint_committed"), default=0)
    restarts = [e for e in after if e.kind == "restart_began" and e not in before]
    restored = [int(e.fields.get("restored_step") or 0) for e in restarts]
    retrained = [e for e in after if e.kind == "step" and e not in before and int(e.fields["step"]) <= committed]
    seen = losses_of(after)
    equal = sum(seen.get(step) == loss for step, loss in expected.items())
    held = (
        code == 0
        and bool(state.get("promoted_digest"))
        and state["promoted_digest"] == state.get("evaluated_digest")
        and not left
        and not retrained
        and all(step >= committed for step in restored)
        and equal == len(expected)
    )
    return {
        "case": number,
        "killed at s": round(instant, 2),
        "during": before[-1].kind if before else "start",
        "exit": code,
        "phase": state.get("phase", "?"),
        "restored": restored[-1] if restored else "",
        "steps replayed": len(retrained),
        "left over": len(left),
        "losses": f"{equal}/{len(expected)}",
        "held": held,
    }


def leftovers(work: Path) -> set[int]:
    """Processes that still belong to a pod of this folder's runs."""
    return {
        pid
        for pid in processes.carrying(env.POD_TOKEN, "")
        if str(work).encode() in Path(f"/proc/{pid}/environ").read_bytes()
    }


if __name__ == "__main__":
    sys.exit(prove(count=1, seed=1, minutes=10))
