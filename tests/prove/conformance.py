"""Every runtime with the launchers that its guides use, on its real controller, hurt in each of five ways.

One line is a training: it goes on by itself, no committed step is done again, and nothing of it is left.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from argosy.steps.gang.runtimes import RUNTIMES
from argosy.workflows.spec.placement import RUNTIMES as BUILT
from tests.cluster import runtimes
from tests.cluster.cluster import Cluster
from tests.cluster.faults import survived
from tests.cluster.scripts import OVER_MPI, WITHOUT_TORCH
from tests.cluster.training import SCRIPT, new_training
from tests.prove.record import Record

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
STEPS = 60
COLUMNS = ["runtime", "launcher", "fault", "detected after (s)", "resumed after (s)", "steps lost", "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next cases that are not recorded yet; 0 when all that were done held."""
    record = Record("conformance", seed)
    cluster = Cluster()
    with cluster.lent(), runtimes.operators(cluster):
        todo = [CASES[number] for number in record.left(min(count, COUNT))]
        record.go_on(todo, lambda case: _case(cluster, *case), minutes)
    return record.told("Every runtime and launcher, hurt on its real controller", COLUMNS)


def _case(cluster: Cluster, runtime: str, launcher: str, fault: str) -> dict[str, Any]:
    case: dict[str, Any] = {"runtime": runtime, "launcher": launcher, "fault": fault}
    gang = f'runtime = "{runtime}"\nlauncher = "{launcher}"\nplacement = "{BUILT[runtime][0]}"'
    row = next(each for each in RUNTIMES if each.name == runtime)
    kinds = [f"{kind.plural}.{kind.api_version.partition('/')[0]}" for kind in (row.kind, row.holder) if kind]
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("conform") as namespace:
        training = new_training(
            cluster, namespace, Path(folder) / "run", steps=STEPS, script=SCRIPTS[launcher], tables={"gang": gang}
        )
        try:
            cost = survived(training, fault, *kinds)
        except AssertionError as error:
            print(error, flush=True)
            return {**case, "held": False, "error": " ".join(str(error).split())[:200]}
    return {
        **case,
        "detected after (s)": cost["detected"],
        "resumed after (s)": cost["resumed"],
        "steps lost": int(cost["lost"]),
        "held": True,
    }
