"""Variables that an operator sets, written by hand as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, Remove
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.injected import has_master
from argosy.workflows.manifests.workload import Workload

_TORCH: Final = (
    *("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"),
)
_OWNED: Final = {
    "PyTorchJob": (*_TORCH, "PET_NNODES"),
    "XGBoostJob": ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"),
    "TFJob": ("TF_CONFIG",),
    "JAXJob": ("COORDINATOR_ADDRESS", "COORDINATOR_PORT", "NUM_PROCESSES", "PROCESS_ID"),
}
# trainer v2, pkg/runtime/framework/plugins/torch: the webhook refuses them in trainer.env.
_RESERVED: Final = ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")


@rule("REND030", Level.WARNING, on=Workload)
def set_by_the_operator(workload: Workload) -> Iterator[Problem]:
    """A variable of the operator's in ``env``."""
    kind = workload.document.kind
    owned = _RESERVED if kind == "TrainJob" else _OWNED.get(kind, ())
    if not owned:
        return
    for role in workload.roles:
        for container in role.pod.containers:
            for item in container.node["env"]:
                name = item["name"].text
                master = f"{workload.document.name}-master-0"
                same = (master, "23456", str(workload.total))  # what the operator sets
                torch = kind == "PyTorchJob"
                if name not in owned or (torch and (item["value"].text in same or not has_master(workload.document))):
                    continue
                if kind == "TrainJob":
                    message, level = f"the Trainer sets {name} and refuses a TrainJob that does so too", Level.ERROR
                else:
                    message, level = (
                        f"the operator sets {name} behind this item, and the last one wins: this is ignored",
                        None,
                    )
                yield Problem(item, message, f"take {name} away", edits=[Remove(item)], level=level)
