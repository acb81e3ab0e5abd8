"""Ranks that fail in five ways, on every rank, here and on a cluster: is the culprit named, with its evidence?

A training of two nodes (two ranks each here, one each on the cluster) fails ten times, once in each generation, each
time after a few commits: the rank kills itself, is stopped for good, leaves with a code, reads memory that is not its
own, or raises. The other ranks fail too, because a peer is gone: they must not be blamed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from argosy.steps.store.base import ObjectStore
from tests.cluster.cluster import Cluster
from tests.cluster.training import SCRIPT, new_training, run_toml
from tests.prove.record import Record

COUNT = 20
"""Chains of ten faults: the first ten here, the others on the cluster."""
HERE = 10
FAULTS = 10
RANKS = {"here": 2, "cluster": 1}
"""Of each of the two nodes."""
KINDS = ("killed", "stopped", "left", "segfault", "raised")
COLUMNS = ["where", "chain", "faults", "culprit named", "evidence of it", "action right", "ended", "held", "wrong"]
FAIL = '''
def fail_as_planned(step, first):
    """The fault of this generation, if it is this rank's and its step has come: ten in all, one in each."""
    number = int(os.environ["ARGOSY_GENERATION"]) - 1
    plan = json.loads(Path("plan.json").read_text())
    if number >= len(plan) or step != first + 3 or dist.get_rank() != plan[number]["rank"]:
        return
    kind = plan[number]["kind"]
    if kind == "killed":
        os.kill(os.getpid(), 9)
    if kind == "stopped":
        os.kill(os.getpid(), 19)
    if kind == "left":
        os._exit(37)
    if kind == "segfault":
        os.kill(os.getpid(), 11)
    raise ValueError(f"sample {number} of this dataset is broken")

'''
DEADLINES = "hang_seconds = 90"
RETRY = "max_same_failure = 20"
"""Under load a fault may come before the commit that it waits for: blame is what is looked at here, not budgets."""


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next chains; 0 when in all that were run the culprit was named each time."""
    record = Record("rank-faults", seed)
    cluster = Cluster()
    todo = record.left(count)
    with cluster.lent() if any(number >= HERE for number in todo) else nullcontext():
        record.go_on(todo, lambda number: _case(cluster if number >= HERE else None, number, seed), minutes)
    cases = record.cases()
    faults, named = (sum(case[key] for case in cases) for key in ("faults", "culprit named"))
    note = f"{named} of {faults} culprits named, {sum(case['evidence of it'] for case in cases)} with their evidence."
    print(note)
    return record.told("Ranks that fail, and who is blamed", COLUMNS, note=note, by=["where"])


def plan_of(number: int, seed: int, world: int) -> list[dict[str, Any]]:
    """Each kind twice, in random order, on random ranks."""
    chance = random.Random(f"{seed}/{number}")
    kinds = list(KINDS) * (FAULTS // len(KINDS))
    chance.shuffle(kinds)
    return [{"kind": kind, "rank": chance.randrange(world)} for kind in kinds]


def script() -> str:
    """The training of tests/cluster that also fails as planned."""
    main = SCRIPT.index("steps, seconds = ")
    loop = '    step = state["step"] + 1\n'
    text = SCRIPT[:main] + FAIL.lstrip("\n") + "\n" + SCRIPT[main:]
    text = text.replace("while state[", 'first = state["step"]\nwhile state[')
    return text.replace(loop, loop + "    fail_as_planned(step, first)\n")


def _tables(where: str) -> dict[str, str]:
    return {"gang": f"nproc_per_node = {RANKS[where]}", "deadlines": DEADLINES, "retry": RETRY, "top": ""}


def _case(cluster: Cluster | None, number: int, seed: int) -> dict[str, Any]:
    where = "here" if cluster is None else "cluster"
    plan = plan_of(number, seed, 2 * RANKS[where])
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "run"
        root.mkdir()
        (root / "plan.json").write_text(json.dumps(plan))
        events, evidence, ended = _here(root) if cluster is None else _there(cluster, root)
    told = [event for event in events if event.kind == "restart_ended"]
    wrong = [said for fault, event in zip(plan, told, strict=False) if (said := _wrong(fault, event, evidence))]
    named = sum(event.fields.get("rank") == fault["rank"] for fault, event in zip(plan, told, strict=False))
    quoted = sum(bool(evidence.get(_key(event))) for event in told)
    return {
        "where": where,
        "chain": number,
        "faults": len(told),
        "culprit named": named,
        "evidence of it": quoted,
        "action right": len(told) - len(wrong),
        "ended": ended,
        "held": named == quoted == len(told) == FAULTS and not wrong and ended == "Succeeded",
        "wrong": "; ".join(wrong)[:300],
    }


def _wrong(fault: dict[str, Any], event: Event, evidence: dict[str, str]) -> str:
    said = event.fields
    right = {
        "killed": said.get("signal") == 9,
        "stopped": said.get("cause") == "hang",
        "left": "37" in str(said.get("quote")),
        "segfault": said.get("signal") == 11,
        "raised": said.get("cause") == "user_exception" and "of this dataset is broken" in str(said.get("quote")),
    }[fault["kind"]]
    kept = bool(evidence.get(_key(event)))
    if right and kept and said.get("rank") == fault["rank"]:
        return ""
    told = f"{said.get('cause')} of rank {said.get('rank')}, {said.get('quote')!r}"
    return f"{fault['kind']} of rank {fault['rank']}: {told}"


def _key(event: Event) -> str:
    return f"{event.fields.get('attempt')}/{event.fields.get('restart')}"


def _here(root: Path) -> tuple[list[Event], dict[str, str], str]:
    text = run_toml(
        name="blamed",
        nnodes=2,
        args=json.dumps([str(4 * FAULTS + 6), "0.05"]),
        bucket=f"file://{root.parent}",
        endpoint="",
        **_tables("here"),
    )
    kept = [line for line in text.splitlines() if not line.startswith(("secrets", "AWS_", "resources."))]
    (root / "run.toml").write_text("\n".join(kept) + "\n")
    (root / "train.py").write_text(script())
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "run", "run.toml", "--state-dir", "../state"]
    done = subprocess.run(command, cwd=root, env=dict(os.environ), capture_output=True, text=True, timeout=580)
    events, evidence = _kept(open_store(f"file://{root.parent}/store"), "blamed")
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:], flush=True)
    return events, evidence, "Succeeded" if done.returncode == 0 else f"exit {done.returncode}"


def _there(cluster: Cluster, root: Path) -> tuple[list[Event], dict[str, str], str]:
    with cluster.namespace("blame") as namespace:
        training = new_training(
            cluster,
            namespace,
            root,
            name="blamed",
            steps=4 * FAULTS + 6,
            seconds=0.05,
            tables=_tables("cluster"),
            script=script(),
        )
        training.submit()
        ended = training.ended(580)
        with training.store() as store:
            events, evidence = _kept(store, "blamed")
    return events, evidence, ended


def _kept(store: ObjectStore, name: str) -> tuple[list[Event], dict[str, str]]:
    """Events by time, and by attempt/restart the evidence that is kept of it."""
    run = sorted({each.key.split("/")[2] for each in store.list(f"{name}/runs/")})[0]
    prefix = f"{name}/runs/{run}"
    evidence = {}
    for each in store.list(f"{prefix}/attempts/"):
        if Path(each.key).name.startswith("restart-"):
            found = json.loads(store.get(each.key))
            evidence[f"{found['attempt']}/{found['restart']}"] = found.get("quote") or ""
    return read_events(store, prefix), evidence
