"""The whole chain on every runtime, a rank killed in the middle of it: each ends promoted, with one and the same model.

One line is a runtime. The bytes of its last checkpoint must be those of the same YAML run on this machine by the
embedded engine, undisturbed; the losses are equal then too.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.gang.runtimes import RUNTIMES
from argosy.workflows.spec.placement import RUNTIMES as BUILT
from tests.cluster import runtimes
from tests.cluster.chain import Chain
from tests.cluster.cluster import Cluster
from tests.cluster.faults import rank_killed
from tests.cluster.progress import wait_for
from tests.cluster.training import new_training
from tests.prove.record import Record

COUNT = len(RUNTIMES)
STEPS = 60
COLUMNS = ["runtime", "attempts", "killed after", "model", "as on one machine", "promoted", "seconds", "held", "error"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """The next runtimes that are not recorded yet; 0 when all that were done held."""
    record = Record("cluster-chains", seed)
    cluster = Cluster()
    with cluster.lent(), runtimes.operators(cluster):
        todo = [RUNTIMES[number].name for number in record.left(min(count, COUNT))]
        record.go_on(todo, lambda runtime: _case(cluster, runtime), minutes)
    return record.told("The whole chain on every runtime, a rank killed on the way", COLUMNS)


def _case(cluster: Cluster, runtime: str) -> dict[str, Any]:
    began = time.monotonic()
    case: dict[str, Any] = {"runtime": runtime, "held": False, "error": ""}
    with tempfile.TemporaryDirectory() as folder, cluster.namespace("chain") as namespace:
        try:
            case |= _chain(cluster, namespace, Path(folder) / "run", runtime)
        except Exception as error:
            print(error, flush=True)
            case["error"] = " ".join(str(error).split())[:200]
    return {**case, "seconds": round(time.monotonic() - began)}


def _chain(cluster: Cluster, namespace: str, folder: Path, runtime: str) -> dict[str, Any]:
    gang = f'runtime = "{runtime}"\nplacement = "{BUILT[runtime][0]}"'
    made = new_training(cluster, namespace, folder, name="stdlib-gpt", steps=STEPS, tables={"gang": gang})
    chain = Chain(**vars(made))
    chain.submit()
    killed = _first_commit(chain)
    rank_killed(chain)
    assert chain.ended(600) == "Succeeded", chain.tale()
    starts = len(chain.events("restart_began"))
    assert starts > 1, f"the training was over before its rank was killed, {STEPS} steps are too few"
    there, here = chain.final_bytes(chain.workflow), chain.final_bytes(chain.run_here())
    promoted = not chain.unfinished()
    return {
        "attempts": starts,
        "killed after": f"step {killed} of {STEPS}",
        "model": " ".join(digest[:12] for _, digest in sorted(there.items())),
        "as on one machine": there == here,
        "promoted": promoted,
        "held": promoted and there == here,
        "error": "" if there == here else json.dumps({"there": there, "here": here}),
    }


def _first_commit(chain: Chain) -> int:
    """Its step, out of the commits themselves: what the run's events tell of it comes seconds later."""
    with chain.store() as store:
        commits = CheckpointStore(store, f"{chain.name}/runs/{chain.workflow}")
        wait_for("a commit", lambda: commits.newest() is not None, 300)
        newest = commits.newest()
    assert newest is not None
    return newest.step
