"""Every runtime with the launchers that its guides use, on its real controller, hurt in each of five ways.

One line is a training: it goes on by itself, no committed step is done again, and nothing of it is left. Some are in
progress at once, each in a namespace of its own: only a lost node is everybody's affair, and is tried alone.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from argosy.steps.gang.runtimes import RUNTIMES
from argosy.workflows.spec.placement import RUNTIMES as BUILT
from tests.cluster import runtimes
from tests.cluster.cluster import Cluster
from tests.cluster.faults import survived
from tests.cluster.scripts import OVER_MPI, WITHOUT_TORCH
from tests.cluster.training import SCRIPT, new_training
from tests.prove.record import STYLE, Record

SCRIPTS = {"torchrun": SCRIPT, "plain": WITHOUT_TORCH, "mpirun": OVER_MPI}
PAIRS = (
    ("mpijob", "mpirun"),
    ("xgboostjob", "plain"),
    ("tfjob", "plain"),
    ("pytorchjob", "torchrun"),
    ("trainjob", "torchrun"),
    ("volcano", "torchrun"),
    ("job", "torchrun"),
    ("jobset", "torchrun"),
    ("jobset", "mpirun"),
    ("job", "plain"),
    ("mpijob", "torchrun"),
    ("tfjob", "torchrun"),
    ("xgboostjob", "torchrun"),
)
"""As their guides train first, then the rest."""
FAULTS = ("node_lost", "pod_evicted", "rank_killed", "supervisor_killed", "pod_deleted")
CASES = [(runtime, launcher, fault) for fault in FAULTS for runtime, launcher in PAIRS]
CASES += [("rayjob", launcher, fault) for fault in FAULTS for launcher in ("torchrun", "plain")]
"""The last ones last: a record knows its cases by their numbers."""
COUNT = len(CASES)
STEPS = 120
"""So many that a slow machine sees the tenth before the last is done: a fault that comes later is none."""
AT_ONCE = 3
PATIENCE = 4.0
COLUMNS = ["runtime", "launcher", "fault", "detected after (s)", "resumed after (s)", "steps lost", "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next cases, of all runtimes or of one, that are not recorded yet; 0 when all that were done held."""
    only = os.environ.get(STYLE, "")
    cases = [case for case in CASES if only in ("", case[0])]
    record = Record("conformance", seed, style=only)
    cluster = Cluster()
    with cluster.lent(), runtimes.operators(cluster):
        os.environ.update(cluster.s3_environment)  # each training sets it for a moment, and takes it back
        todo = [cases[number] for number in record.left(min(count, len(cases)))]
        deadline = time.monotonic() + minutes * 60
        while todo and time.monotonic() < deadline:
            size = 1 if todo[0][2] == "node_lost" else AT_ONCE
            batch, todo = todo[:size], todo[size:]
            with ThreadPoolExecutor(size) as pool:
                for case in pool.map(partial(_held, cluster), batch):
                    record.add(case)
                    print(case, flush=True)
    note = f"{len(cases) - len(record.cases())} of the {len(cases)} rows are not run yet."
    return record.told("Every runtime and launcher, hurt on its real controller", COLUMNS, count=0, note=note)


def _held(cluster: Cluster, case: tuple[str, str, str]) -> dict[str, Any]:
    runtime, launcher, fault = case
    told: dict[str, Any] = {"runtime": runtime, "launcher": launcher, "fault": fault}
    gang = f'runtime = "{runtime}"\nlauncher = "{launcher}"\nplacement = "{BUILT[runtime][0]}"'
    row = next(each for each in RUNTIMES if each.name == runtime)
    kinds = [f"{kind.plural}.{kind.api_version.partition('/')[0]}" for kind in (row.kind, row.holder) if kind]
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("conform") as namespace:
        training = new_training(
            cluster, namespace, Path(folder) / "run", steps=STEPS, script=SCRIPTS[launcher], tables={"gang": gang},
            patience=PATIENCE,
        )  # fmt: skip
        try:
            cost = survived(training, fault, *kinds)
        except AssertionError as error:
            print(error, flush=True)
            return {**told, "held": False, "error": " ".join(str(error).split())[:200]}
    return {
        **told,
        "detected after (s)": cost["detected"],
        "resumed after (s)": cost["resumed"],
        "steps lost": int(cost["lost"]),
        "held": True,
    }
