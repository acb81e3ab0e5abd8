"""Runs whose ranks are SIGKILLed 100 times each: the final bits equal those of one process that nobody disturbed.

World size from {1, 2, 4} at each start, the store is S3 over HTTP with requests that go wrong, some old gangs stay
alive (SIGSTOP) and wake up after the next one claimed. One case is one run. Of each: every loss that any rank logged,
the SHA-256 of weights, optimizer (Adam's step included), schedule and generators, every sample exactly once per epoch
in the committed history, the log one chain, zombies fenced (73).
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.exact.history import differences, proven, read
from tests.exact.kills import NEVER, KilledRun
from tests.exact.zygote import Zygote
from tests.prove.record import Record
from tests.s3 import S3Server, at_random, nothing

KILLS = 100
FAULT_RATE = 0.03
LAST_STEPS = 8
SEEN = ("one rank first", "zombies", "fenced", "too late to restore", "ended by the store")
COLUMNS = [
    "run", "kills", "at 1/2/4 ranks", *SEEN, "S3 faults", "S3 requests", "shards", "steps", "commits",
    "losses compared", "losses that differ", "sha256 model", "sha256 optimizer", "sha256 rng", "seconds", "held",
]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` runs of 100 kills are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("exact-kills", seed)
    began = time.monotonic()
    with closing(Zygote()) as zygote:
        for number in record.left(count):
            case = one_run(number, f"{seed}-{number}", KILLS, zygote)
            record.add(case)
            print(json.dumps(case), flush=True)
            # A run that would not end in time is not begun.
            if time.monotonic() - began + case["seconds"] * 1.3 > minutes * 60:
                print(f"{number + 1} of {count} done; run the same command to go on", flush=True)
                break
    return record.told("Exact resume: runs killed (SIGKILL) 100 times each, at changing world sizes", COLUMNS)


def one_run(number: int, seed: str, kills: int, zygote: Zygote, steps_at_most: int = 10) -> dict[str, Any]:
    """Killed ``kills`` times, finished, and compared with a run of one process; what was found is under ``wrong``."""
    began = time.monotonic()
    recipe = {"seed": number + 1, "samples": 101, "global_batch": 22, "shards": (8, 5, 6, 11)[number % 4]}
    with served(seed, FAULT_RATE) as server, tempfile.TemporaryDirectory() as folder:
        run = KilledRun("s3://argosy-tests/killed", Path(folder, "killed"), recipe, zygote, seed)
        run.steps_at_most = steps_at_most
        run.kill(kills)
        end = run.finish(LAST_STEPS)
        seconds = time.monotonic() - began
        faults = Counter(request.fault for request in server.requests if request.fault)
        requests = len(server.requests)
        server.begin(nothing)
        wrong, history = list(run.wrong), None
        if not wrong:
            truth = undisturbed(zygote, Path(folder, "truth"), recipe, end, seed)
            history = read(run.uri, run.folder)
            wrong = differences(history, read(truth.uri, truth.folder), recipe)
        if wrong:
            kept = Path(tempfile.gettempdir(), f"exact-kills-{seed}")
            shutil.copytree(folder, kept, dirs_exist_ok=True)
            print(f"what the ranks said is kept in {kept}", flush=True)
    return {
        "run": number,
        "kills": run.kills.total(),
        "at 1/2/4 ranks": "/".join(str(run.kills[world]) for world in (1, 2, 4)),
        **{name: run.seen[name] for name in SEEN},
        "S3 requests": requests,
        "S3 faults": faults.total(),
        "kinds of faults": dict(faults),
        "shards": recipe["shards"],
        **(proven(history) if history else {}),
        "losses that differ": sum("loss" in text for text in wrong),
        "seconds": round(seconds),
        "wrong": wrong[:5],
        "held": not wrong,
    }


def undisturbed(zygote: Zygote, folder: Path, recipe: dict[str, int], end: int, seed: str) -> KilledRun:
    """The same training in one process, from the first step to the last."""
    run = KilledRun("s3://argosy-tests/truth", folder, recipe, zygote, seed)
    assert end < NEVER
    gang = run.start(1, end)
    run.gangs.wait(gang, 600.0, everyone=True)
    assert gang.own_codes() == {0}, gang.errors(folder)
    return run


@contextmanager
def served(seed: str, fault_rate: float) -> Iterator[S3Server]:
    """An S3 on loopback that this process and those it starts find in their environment."""
    with S3Server() as server:
        server.begin(at_random(hash_of(seed), fault_rate))
        given = {"AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
                 "AWS_REGION": "us-east-1"}  # fmt: skip
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            yield server
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value


def hash_of(seed: str) -> int:
    """A number for a plan of faults."""
    return int.from_bytes(seed.encode()[-8:])
