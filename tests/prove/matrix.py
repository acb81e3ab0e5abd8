"""Each kind of fault in each phase of a training on its first, middle and last rank: how is it called, what is done?

Three nodes with one rank each, the real supervisor, the real ``launch``. One line is one kind in one phase, a row one
kind in all of them. Kinds that a restart helps are a chain: the three ranks are struck one after the other, each in a
start of its own, and the run must end well. After a kind that ends a run each rank has a run of its own. ``COUNT`` is
the number of faults; the last fifty are single ones of both sorts that must be over at the first retry.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.pods.leftovers import sweep
from argosy.steps.store import open_store
from tests.prove.record import Record
from tests.supervisor.conftest import Rig

SCRIPT = Path(__file__).with_name("striking") / "train.py"
RANKS = 3
LANES = 3
PHASES = ("start", "before the ranks meet", "restore", "first step", "step", "after a collective", "save", "end")
BEFORE_STEPS = PHASES[:4]
HANG_SECONDS = 25
CAUSES = {
    "killed": "unknown", "segfault": "native_crash", "aborted": "native_crash", "divided by zero": "native_crash",
    "left": "unknown", "left, transient": "unknown", "stopped": "hang", "holds the GIL": "hang",
    "port taken": "address_in_use", "disk full": "disk_full", "memory": "host_oom", "raised": "user_exception",
    "not installed": "import_error", "bus error": "shm_exhausted",
}  # fmt: skip
ALONE = ("disk full", "memory", "raised", "not installed", "bus error")
"""A second one without progress ends the run, and some the first."""
STOPS = {"not installed": ExitCode.CONFIGURATION, "bus error": ExitCode.CONFIGURATION}
SINGLES = 50
CHAINS = [
    (kind, PHASES[(turn + number) % len(PHASES)]) for turn in range(len(PHASES)) for number, kind in enumerate(CAUSES)
]
"""Each kind once before any comes a second time."""
COUNT = RANKS * len(CHAINS) + SINGLES
JUDGED = ["cause right", "rank right", "action right", "quote in the logs"]
OVER = "over at the first retry"
COLUMNS = ["fault", "faults", *JUDGED, OVER, "seconds", "held", "wrong"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` faults are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("matrix", seed)
    done = {(case["fault"], case["phase"], case["single"]) for case in record.cases()}
    chains = [(kind, phase, 0) for kind, phase in CHAINS[: -(-count // RANKS)]]
    alone = [(kind, phase, number) for number, (kind, phase) in enumerate(singles(seed), 1)]
    half = len(CHAINS) // 2
    cases = [*chains[:half], *alone[: max(0, count - RANKS * len(CHAINS))], *chains[half:]]
    record.go_on([case for case in cases if case not in done], lambda case: one(*case, seed), minutes - 1, LANES)
    return _told(record)


def singles(seed: int) -> list[tuple[str, str]]:
    """Fifty of what a restart helps."""
    chance = random.Random(f"{seed}/singles")
    helped = [(kind, phase) for kind, phase in CHAINS if action(kind, phase) == "restart"]
    return chance.sample(helped, SINGLES)


def action(kind: str, phase: str) -> str:
    """What the list of causes wants after the first of it."""
    if kind in STOPS or (kind == "raised" and phase in BEFORE_STEPS):
        return "stop"
    return "restart"


def one(kind: str, phase: str, single: int, seed: int) -> dict[str, Any]:
    """One line of the table."""
    began = time.monotonic()
    ranks = [random.Random(f"{seed}/{single}").randrange(RANKS)] if single else list(range(RANKS))
    runs = [[rank] for rank in ranks] if kind in ALONE else [ranks]
    told = [each for run in runs for each in _run(kind, phase, run)]
    counted = {name: sum(each[name] for each in told) for name in (*JUDGED, OVER)}
    wrong = "; ".join(each["wrong"] for each in told if each["wrong"])
    return {
        "fault": kind, "phase": phase, "single": single, "faults": len(told), **counted,
        "seconds": round(time.monotonic() - began, 1), "held": not wrong, "wrong": wrong[:400],
    }  # fmt: skip


def _run(kind: str, phase: str, ranks: list[int]) -> list[dict[str, Any]]:
    """One run with a fault on each of ``ranks``, one after the other; how each was told."""
    with tempfile.TemporaryDirectory() as folder:
        rig = Rig(Path(folder), f"matrix-{uuid.uuid4().hex}", {"store": f"file://{folder}/store", "shared": folder})
        try:
            _start(rig, [{"kind": kind, "phase": phase, "rank": rank} for rank in ranks])
            code = rig.run(240)
            return _judged(rig, kind, phase, ranks, code)
        finally:
            if rig.process is not None and rig.process.poll() is None:
                rig.process.kill()
                rig.process.wait()
            sweep(rig.token)


def _start(rig: Rig, plan: list[dict[str, Any]]) -> None:
    faults = rig.folder / "faults.json"
    faults.write_text(json.dumps(plan))
    rig.nnodes = RANKS
    rig.trains(SCRIPT.read_text(), faults, launcher="plain", include=("*.step",), grace_seconds=3)
    rig.options = {"hang_timeout_seconds": HANG_SECONDS, "check_in_timeout_seconds": 120, "max_same_failure": 20,
                   "max_restarts": 20, "heartbeat_timeout_seconds": 60}  # fmt: skip


def _judged(rig: Rig, kind: str, phase: str, ranks: list[int], code: int) -> list[dict[str, Any]]:
    store = open_store(rig.plan["store"])
    keys = [info.key for info in store.list("r/runs/r-abc/attempts") if "/restart-" in info.key]
    verdicts = sorted((json.loads(store.get(key)) for key in keys), key=lambda each: (each["attempt"], each["restart"]))
    logs = rig.log() + "".join(path.read_text(errors="replace") for path in rig.local.glob("nodes/*/pods/*/log"))
    found = []
    for number, rank in enumerate(ranks):
        if number >= len(verdicts):
            found.append(
                dict.fromkeys((*JUDGED, OVER), False) | {"wrong": f"rank {rank}: not seen; {rig.log()[-300:]}"}
            )
            continue
        said = verdicts[number]
        wanted = _wanted(kind, phase, number, verdicts[:number])
        right = {
            "cause right": said["cause"] == CAUSES[kind],
            "rank right": said["rank"] == rank,
            "action right": said["decision"]["action"] == wanted,
            "quote in the logs": _is_in(said["quote"], logs),
            OVER: wanted == "restart" and (len(verdicts) > number + 1 or code == 0),
        }
        bad = [name for name, held in right.items() if not held and (name != OVER or wanted == "restart")]
        if number + 1 == len(ranks) and wanted == "restart" and (code != 0 or len(verdicts) > len(ranks)):
            bad.append(f"the run ended with {code} after {len(verdicts)} failures")
        words = f"rank {rank}: {', '.join(bad)}: {said['cause']} of rank {said['rank']}, {said['decision']['action']}: "
        found.append({**right, "wrong": f"{words}{said['quote']!r}" if bad else ""})
    return found


def _wanted(kind: str, phase: str, number: int, before: list[dict[str, Any]]) -> str:
    """A third hang at one step ends the run: where no step is made there is but one."""
    del before
    if CAUSES[kind] == "hang" and number == 2 and phase in BEFORE_STEPS:
        return "stop"
    return action(kind, phase)


def _is_in(quote: str, logs: str) -> bool:
    """Whether a line says it: with a rank's or a node's addition in brackets behind it."""
    return bool(quote) and (quote in logs or quote.split(" (rank ")[0] in logs)


def _told(record: Record) -> int:
    cases = record.cases()
    faults = sum(case["faults"] for case in cases)
    figures = ", ".join(f"{name} {sum(case[name] for case in cases)}" for name in JUDGED)
    alone = [case for case in cases if case["single"]]
    over = sum(case["held"] for case in alone)
    note = (
        f"{faults} of {COUNT} faults were run: {figures}. {over} of {len(alone)} single ones over at the first retry. "
        "After the third hang at one step, and after what no restart helps, the run must stop."
    )
    print(note)
    return record.told(
        "Every kind of fault in every phase, and what was made of it", COLUMNS, count=0, note=note, by=["fault"]
    )
