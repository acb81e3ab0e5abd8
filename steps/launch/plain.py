"""No launcher but ours: each rank is started as it is, for scripts that know nothing of torch.

What they find is torchrun's, with which XGBoost's tracker and the like meet at rank 0's address, whose port nobody
holds but the script; TF_CONFIG for TensorFlow; WORKER_ADDRS and WORKER_PORT, by which an XGBoostJob's LightGBM meets.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from argosy.steps.child_python import die_with_parent
from argosy.steps.cluster.connecting import in_pod
from argosy.steps.contract.channel import Assignment
from argosy.steps.launch.agent import Agent, shim


class Plain(Agent):
    """Ranks without a torchrun above them."""

    name = "plain"

    def __init__(self, nproc_per_node: int) -> None:
        super().__init__(nproc_per_node)
        self._shims: list[subprocess.Popen[bytes]] = []
        self._told = False

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Each in a session of its own; an operator's TF_CONFIG would be of the gang's pods, and not of the ranks."""
        # JAX asks the API server which rank a pod is, whatever a script says, and fails in a pod that may not ask.
        # https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/k8s_cluster.py
        foreign = {"TF_CONFIG", *(() if in_pod() else ("KUBERNETES_SERVICE_HOST",))}
        kept = {name: value for name, value in environ.items() if name not in foreign}
        workers = _workers(assignment.peers[1:] if self._nproc == 1 else [], environ)
        for local_rank in range(self._nproc):
            self._shims.append(
                subprocess.Popen(
                    shim(command),
                    env={**kept, **variables(assignment, self._nproc, local_rank), **workers},
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    start_new_session=True,
                    preexec_fn=die_with_parent(),
                )
            )

    def poll(self) -> int | None:
        """1 when a rank failed; the others are ended then."""
        codes = [each.poll() for each in self._shims]
        if any(codes) and not self._told:
            self.terminate()
        return None if None in codes else int(any(codes))

    def terminate(self) -> None:
        """The shims pass it on."""
        self._told = True
        for each in self._shims:
            if each.poll() is None:
                each.send_signal(signal.SIGTERM)

    def reap(self) -> None:
        """Every shim."""
        for each in self._shims:
            each.wait()


def variables(assignment: Assignment, nproc_per_node: int, local_rank: int) -> dict[str, str]:
    """What one rank finds; TF_CONFIG where a node has one rank, as TensorFlow expects it."""
    rank = assignment.node_rank * nproc_per_node + local_rank
    found = {
        "RANK": rank,
        "LOCAL_RANK": local_rank,
        "WORLD_SIZE": assignment.nnodes * nproc_per_node,
        "LOCAL_WORLD_SIZE": nproc_per_node,
        "GROUP_RANK": assignment.node_rank,
        "GROUP_WORLD_SIZE": assignment.nnodes,
        "MASTER_ADDR": assignment.master_addr,
        "MASTER_PORT": assignment.master_port,
    }
    told = {name: str(value) for name, value in found.items()}
    if assignment.peers and nproc_per_node == 1:
        task = {"type": "worker", "index": rank}
        told["TF_CONFIG"] = json.dumps({"cluster": {"worker": assignment.peers}, "task": task})
    return told


def _workers(peers: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The nodes but the first as the Training Operator tells an XGBoostJob's pods of them, and one port for all.

    Not the operator's port, which a connection of the restart before may hold yet, but one that is free on the first of
    them. A run that has one of the two variables, and not the other, means something else by it.
    """
    if not peers or ("WORKER_ADDRS" in environ) != ("WORKER_PORT" in environ):
        return {}
    places = [peer.rpartition(":") for peer in peers]
    return {"WORKER_ADDRS": ",".join(host.strip("[]") for host, _, _ in places), "WORKER_PORT": places[0][2]}
