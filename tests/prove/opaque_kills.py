"""Unaware scripts with the real libraries in opaque mode, their ranks SIGKILLed at random instants.

``--count`` kills of each kind of script, several in one run, with the run.toml that ``argosy init`` writes. Each run
must end by itself at the last step, every loss that any of its restarts printed must be the one that an uninterrupted
run without argosy printed for that step, and nothing may be left over. Every commit must bear the step that its files
hold, no alarm may be raised, each failure must be told as the kill that it was, and ``checkpoint get`` must bring what
the script left at its end.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import StepError
from argosy.steps.runlog import Event
from benchmarks.environments import LOCKS, frameworks_python
from tests.prove.engine_kill import events, leftovers
from tests.prove.record import STYLE, Record
from tests.prove.unaware.account import CLI, false_words, result_kept, wrong_labels
from tests.prove.unaware.commits import commits, store_of
from tests.prove.unaware.killer import KINDS, Kill, Killer
from tests.prove.unaware.style import STYLES, Style

KILLS_PER_RUN = 10
LIMIT_SECONDS = 1500.0
TRIES = 3
"""Of a script alone: torch's threads may abort a process as it ends well, argosy or not."""
TITLE = "Ranks of scripts that never heard of argosy killed (SIGKILL) at random instants"
COLUMNS = [
    "style", "kills", "while saving", "before a step", "restored", "losses compared", "losses that differ",
    "resumed wrongly", "not from the newest", "commits", "wrong labels", "false words", "result kept", "last step",
    "exit", "left over", "held",
]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until each style had ``count`` kills or ``minutes`` are over; 0 when all that were run held."""
    only = os.environ.get(STYLE, "")
    record = Record("opaque-kills", seed, style=only)
    folder = record.folder
    deadline = time.monotonic() + minutes * 60
    python = frameworks_python()
    for style in (style for style in STYLES if only in style.name):
        wanted = -(-count // style.share)
        while (done := _killed(record, style)) < wanted:
            if time.monotonic() > deadline:
                print(f"{done} of {wanted} kills of {style.name} done; run the same command to go on", flush=True)
                return 0 if all(case["held"] for case in record.cases()) else 1
            reference = uninterrupted(style, python, folder)
            number = len(record.cases())
            case = kill_some(style, python, folder, random.Random(f"{seed}-{number}"), wanted - done, reference)
            record.add({"case": number, **case})
            print(json.dumps(case), flush=True)
    return record.told(TITLE, COLUMNS, count=count)


def _killed(record: Record, style: Style) -> int:
    return sum(case["kills"] for case in record.cases() if case["style"] == style.name)


def _environ(folder: Path) -> dict[str, str]:
    # A pod's home is empty: without this DeepSpeed would compile its operators again in each.
    return {"TORCH_EXTENSIONS_DIR": str(folder / "torch-extensions")}


def uninterrupted(style: Style, python: Path, folder: Path) -> dict[int, str]:
    """Loss by step of a run without argosy and without kills; made once for a script and a lock."""
    read = sorted(path for path in style.source.iterdir() if path.suffix in (".py", ".json"))
    texts = [path.read_bytes() for path in (*read, *LOCKS)]
    key = hashlib.sha256(b"\0".join([*texts, f"{style.nodes * style.ranks} {style.args}".encode()])).hexdigest()[:12]
    kept = folder / f"opaque-kills-reference-{key}.json"
    for _ in range(TRIES):
        if kept.exists():
            break
        work = folder / "opaque-kills-reference"
        arguments = [word.replace("{checkpoint}", "checkpoints") for word in style.copy(work, {}).get("args", [])]
        command = [
            str(python),
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--local-addr=127.0.0.1",
            f"--nproc-per-node={style.nodes * style.ranks}",
        ]
        environ = {**os.environ, **_environ(folder), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        told = [environ]
        if style.launcher == "plain":
            command, told = [str(python)], [{**environ, **each} for each in _ranks(style.nodes * style.ranks)]
        first, *others = [
            subprocess.Popen([*command, "train.py", *arguments], cwd=work, env=each, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
            for each in told
        ]  # fmt: skip
        printed, _ = first.communicate(timeout=LIMIT_SECONDS)
        for each in others:
            each.communicate(timeout=LIMIT_SECONDS)
        if first.returncode == 0:
            kept.write_text(json.dumps(dict(style.losses(printed))))
    if not kept.exists():
        raise SystemExit(f"{style.name} fails without argosy:\n{printed[-3000:]}")
    return {int(step): loss for step, loss in json.loads(kept.read_text()).items()}


def _ranks(count: int) -> list[dict[str, str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": str(count)}
    return [{**meet, "RANK": str(rank)} for rank in range(count)]


def kill_some(
    style: Style, python: Path, folder: Path, draw: random.Random, most: int, reference: dict[int, str]
) -> dict[str, Any]:
    """One run with at most :data:`KILLS_PER_RUN` kills, and what came of it."""
    work = folder / "opaque-kills"
    where = style.copy(work, _environ(folder))["checkpoint"]["path"]
    began = time.monotonic()
    with (folder / "opaque-kills.log").open("wb") as log:
        engine = subprocess.Popen(
            [str(python), *CLI, "run", "run.toml"],
            cwd=work, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    killer = Killer(engine, work, where, lambda: commits(work))
    try:
        killer.run(draw.choices(KINDS, k=min(most, KILLS_PER_RUN)), draw, LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        engine.wait()
    said = (folder / "opaque-kills.log").read_text(errors="replace")
    case = {
        **judged(style, work, killer.kills, engine.returncode, reference),
        "seconds": round(time.monotonic() - began),
    }
    account = accounted(style, work, where, said, killer.kills)
    held = case["held"] and not account["wrong labels"] and not account["false words"] and account["result kept"]
    case |= {**account, "held": held}
    if not case["held"]:
        kept = folder / f"opaque-kills-failed-{int(time.time())}"
        shutil.copytree(work, kept, ignore=shutil.ignore_patterns("data", "*.sock"))
        shutil.copy(folder / "opaque-kills.log", kept)
        print(f"NOT HELD; kept: {kept}", file=sys.stderr)
    return case


def accounted(style: Style, work: Path, where: str, said: str, kills: list[Kill]) -> dict[str, Any]:
    """What argosy said of the run, and what it kept."""
    store = store_of(work)
    return {
        "commits": len(store.commits()) if store else 0,
        "wrong labels": "; ".join(wrong_labels(store, style.saved) if store else []),
        "false words": "; ".join(false_words(work, said, [kill.ranks for kill in kills])),
        "result kept": result_kept(work, where, style.result),
    }


def judged(style: Style, work: Path, kills: list[Kill], code: int, reference: dict[int, str]) -> dict[str, Any]:
    """What the run left, and whether it holds."""
    printed = style.restarts(work)
    began = [event.fields for event in events(work) if event.kind == "restart_began"]
    restored = [int(fields.get("restored_step") or 0) for fields in began]
    end = max(reference)
    further = end + 1 if style.one_more and end in restored else None
    told = [pair for losses in printed for pair in losses if pair[0] != further]
    compared = printed[0] if style.shuffles and printed else told
    case = {
        "style": style.name,
        "kills": len(kills),
        "while saving": sum(bool(kill.open_file) for kill in kills),
        "before a step": sum(not losses for losses in printed),
        "restored": " ".join(str(step) for step in restored[1:]),
        "losses compared": len(compared),
        "losses that differ": sum(reference.get(step) != loss for step, loss in compared),
        "resumed wrongly": _wrong(printed, restored),
        "not from the newest": _older(events(work)),
        "last step": max((step for step, _ in told), default=-1),
        "exit": code,
        "left over": len(leftovers(work)),
        "instants": [asdict(kill) for kill in kills],
    }
    whole = case["last step"] == end and _ends_well(work) and {step for step, _ in told} == set(reference)
    wrong = ("losses that differ", "resumed wrongly", "not from the newest", "left over")
    quiet = not any(case[each] for each in wrong)
    return {**case, "held": code == 0 and whole and quiet}


def _wrong(printed: list[list[tuple[int, str]]], restored: list[int]) -> int:
    """Restarts that began before the checkpoint they were given, or beyond what any earlier one had reached."""
    wrong, reached = 0, -1
    for index, losses in enumerate(printed):
        if not losses:
            continue
        first = losses[0][0]
        start = restored[index] if index < len(restored) else 0
        wrong += first < start or first > max(reached, 0) + 1
        reached = max(reached, max(step for step, _ in losses))
    return wrong


def _older(log: Sequence[Event]) -> int:
    """Restarts that were not given what had been committed last."""
    older, newest = 0, 0
    for event in log:
        if event.kind == "checkpoint_committed":
            newest = int(event.fields["step"])
        elif event.kind == "restart_began":
            older += int(event.fields.get("restored_step") or 0) != newest
    return older


def _ends_well(work: Path) -> bool:
    """Whether the newest commit is the final one and all its bytes are right."""
    store = store_of(work)
    newest = store.newest() if store else None
    if store is None or newest is None or not newest.final:
        return False
    try:
        store.verify(newest)
    except StepError:
        return False
    return True
