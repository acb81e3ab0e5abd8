"""The workload that is imported, whatever kind describes it."""

from __future__ import annotations

from dataclasses import dataclass, field

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.workload import Role, Workload

FAMILIES = ("pytorch", "tensorflow", "xgboost", "mpi", "trainer", "jobset", "job", "volcano", "ray")


@dataclass(slots=True)
class Source:
    """What a reader of a kind found.

    Args:
        workload: the object.
        training: roles whose pods train; all run the same, the first one's template is taken.
        nodes: pods that train; ``(min, max)`` for an elastic gang.
        ranks_per_node: where the kind says it (nprocPerNode, slotsPerWorker); None: the launcher's options do.
        starts: the role whose command starts the ranks: MPI's launcher, Ray's head; else the first training role.
        entrypoint: a command line in the object's own spec (Ray).
    """

    workload: Workload
    training: list[Role]
    nodes: tuple[int, int]
    ranks_per_node: int | None = None
    starts: Role | None = None
    entrypoint: Node | None = None
    hints: list[str] = field(default_factory=list)


def find_workload(bundle: Bundle, name: str | None) -> Workload:
    """The one training among the documents.

    Args:
        bundle: all documents.
        name: which, where there are several.

    Raises:
        InputError: there is none, or there are several and none is named.
    """
    found = [each for each in bundle.workloads if each.family in FAMILIES and each.document.host is None]
    found = [each for each in found if each.document.kind not in ("TrainingRuntime", "ClusterTrainingRuntime")]
    named = [each for each in found if name is None or each.document.name == name]
    kinds = ", ".join(f"{each.document.kind} {each.document.name!r}" for each in found)
    if not found:
        others = sorted({each.kind for each in bundle.documents})
        held = f" (it holds {', '.join(others)})" if others else ""
        raise InputError(
            f"no training in it{held}; name a file with a PyTorchJob, TFJob, XGBoostJob, MPIJob, TrainJob, JobSet, "
            "Job, Volcano Job or RayJob"
        )
    if not named:
        raise InputError(f"--workload {name}: there is no such object; there are {kinds}")
    if len(named) > 1:
        raise InputError(f"several trainings in it: {kinds}; choose one with --workload NAME")
    return named[0]


def count(role: Role, account: Account) -> int:
    """A role's replicas; what is filled in later is one, and said to be."""
    account.kept(role.replicas_node, "gang.nnodes")
    if role.replicas is None:
        account.by_hand(role.replicas_node, "the number is filled in later: write gang.nnodes yourself")
        return 1
    return role.replicas
