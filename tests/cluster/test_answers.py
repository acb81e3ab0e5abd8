"""What is done about a training that goes badly, on a real cluster: a slow rank, a loss that stays NaN, a replay."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.faults import rank_killed
from tests.cluster.training import ARGOSY, SCRIPT, new_training

pytestmark = pytest.mark.variant


def test_a_slow_ranks_node_is_left(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Rank 1 works twice as long as the other while its first gang lives; its ranks report, for whoever only prints
    steps tells nothing of its own work."""
    slow = '(2 if os.environ["ARGOSY_ATTEMPT"] == "1" and dist.get_rank() == 1 else 1)'
    script = SCRIPT.replace("time.sleep(seconds)", f"time.sleep(seconds * {slow})")
    script = script.replace(
        'print(f"step {step} loss {1 / step:.4f}", flush=True)', "argosy.report(step, loss=1 / step)"
    )
    script = script.replace("import torch\n", "import argosy\nimport torch\n", 1)
    tables = {"deadlines": 'on_slow_rank = "act"'}
    training = new_training(cluster, namespace, tmp_path / "run", script=script, args=("700", "0.2"), tables=tables)
    training.submit()
    assert training.ended(600) == "Succeeded", training.tale()
    (named,) = training.events("slow_rank")
    assert named.fields["rank"] == 1
    (left,) = training.events("node_excluded")
    assert left.fields["node"] == named.fields["node"]
    (ended,) = training.events("restart_ended")
    assert (ended.fields["cause"], ended.fields["rank"]) == ("nccl_timeout", 1)
    assert training.events("restart_began")[1].fields["restored_step"] >= named.fields["step"] - 5
    assert training.committed() == 700


def test_data_that_make_the_loss_nan_are_passed_over(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Three times in a row it is no number from step 20 on; the third start asks for nothing of steps 20 to 23."""
    turns = 'bad = state["step"] >= 20 and not argosy.skips(20) or state["sum"] != state["sum"]\n    '
    script = SCRIPT.replace(
        '    print(f"step', f'    {turns}state["sum"] += float("nan") if bad else 0\n    print(f"step'
    )
    script = script.replace("loss {1 / step:.4f}", "loss {state['sum'] / step:.4f}")
    script = script.replace("import torch\n", "import argosy\nimport torch\n", 1)
    tables = {"retry": "nan_skip_steps = 4"}
    training = new_training(cluster, namespace, tmp_path / "run", script=script, args=("40", "0.5"), tables=tables)
    training.submit()
    assert training.ended() == "Succeeded", training.tale()
    assert [event.fields["cause"] for event in training.events("restart_ended")] == ["numerics_nan"] * 2
    (skipped,) = training.events("skipped")
    assert (skipped.fields["first"], skipped.fields["last"]) == (20, 23)
    assert "loss" in training.events("step")[-1].fields


def test_a_clusters_failure_happens_again_on_one_machine(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(cluster, namespace, tmp_path / "run")
    training.submit()
    training.until_committed(5)
    rank_killed(training)
    assert training.ended() == "Succeeded", training.tale()
    (there,) = training.events("restart_ended")
    run = f"{training.bucket}/store/{training.name}/runs/{training.workflow}"
    keys = {f"ARGOSY_SECRET_S3_{name}": value for name, value in cluster.s3_environment.items()}
    done = subprocess.run(
        [*ARGOSY, "replay", run, "--file", "workflow.yaml", "--json"],
        cwd=training.folder, env=training.environment | keys, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    here = json.loads(done.stdout)
    first, second = here["attempts"]
    assert (first["signal"], first["rank"], first["last_step"]) == (9, there.fields["rank"], there.fields["last_step"])
    assert (second["cause"], here["last_step"]) == (None, 40)
