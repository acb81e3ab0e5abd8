"""A training is hurt on a real cluster: it finishes by itself, loses nothing, leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.faults import QUICK, survive
from tests.cluster.training import SCRIPT, new_training


@pytest.mark.parametrize("fault", QUICK)
def test_a_training_survives(cluster: Cluster, namespace: str, tmp_path: Path, fault: str) -> None:
    cost = survive(cluster, namespace, tmp_path / "run", fault)
    print(f"{fault}: {cost}")


def test_a_loss_that_became_nan_is_gone_back_from(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """Whatever was saved since holds it: the script would never tell a number again."""
    turns = 'nan = state["step"] >= 12 and os.environ["ARGOSY_RESTART"] == "0" or state["sum"] != state["sum"]\n    '
    script = SCRIPT.replace(
        '    print(f"step', f'    {turns}state["sum"] += float("nan") if nan else 0\n    print(f"step'
    )
    script = script.replace("loss {1 / step:.4f}", "loss {state['sum'] / step:.4f}")
    training = new_training(cluster, namespace, tmp_path / "run", script=script, args=("40", "0.5"))
    training.submit()
    assert training.ended() == "Succeeded", training.tale()
    (failed,) = training.events("restart_ended")
    assert failed.fields["cause"] == "numerics_nan"
    assert "the loss is nan since step 12; at step 11 it was 6" in failed.fields["quote"]
    assert 1 <= training.events("restart_began")[1].fields["restored_step"] <= 11, training.tale()
    assert "loss" in training.events("step")[-1].fields  # a number again


def test_a_deleted_workflow_takes_everything_with_it(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    training = new_training(cluster, namespace, tmp_path / "run")
    training.submit()
    training.until_committed(3)
    training.kubectl("delete", "workflow", training.workflow, "--wait=false")
    training.until("everything to go", lambda: not training.leftovers() and not training.pods(role="supervisor"), 90)
    kinds = "services,secrets,networkpolicies"
    assert "argosy-channel" not in training.kubectl("get", kinds, "-o", "name")
