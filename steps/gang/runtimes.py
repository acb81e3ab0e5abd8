"""Who makes the pods of a gang: one row for each runtime, which says where its manifest keeps the pods.

A runtime's own restarts are always off; what else its controller makes (services, keys, variables) is its affair.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.steps.cluster.kinds import (
    JOB,
    JOB_SET,
    MPI_JOB,
    PYTORCH_JOB,
    RAY_JOB,
    TF_JOB,
    TRAIN_JOB,
    TRAINING_RUNTIME,
    VOLCANO_JOB,
    XGBOOST_JOB,
    Kind,
)
from argosy.steps.contract.errors import InputError

REPLICA_INDEX = "training.kubeflow.org/replica-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""How launch learns its index: Kubernetes sets it in the pods of indexed Jobs, which JobSet's jobs are."""
FIRST_INDEX = "argosy.dev/first-index"
"""Label of ours: what is added to the index of a pod whose part of the gang its controller counts from 0."""
Path = tuple[str | int, ...]


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Pods of one template: ``at`` leads to what holds the ``template`` and, in ``counts``, how many there are (no
    counts: one).

    ``host`` is a pod's host name, of ``{gang}``, ``{role}`` (the name in the list on the path) and ``{index}``, which
    is counted among these pods.
    """

    at: Path
    host: str
    counts: tuple[str, ...] = ("replicas",)


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """Each of ``replicas`` is one pod, and the last all others, if any; ``index`` is the label that numbers them, ""
    where nobody does: then their names say who comes first.

    ``suspend`` leads to what says whether the pods are held back.
    """

    name: str
    kind: Kind
    replicas: tuple[Replicas, ...]
    index: str = COMPLETION_INDEX
    from_zero: bool = False
    """Whether each of the replicas is counted from 0, and not the pods of all of them in a row."""
    suspend: Path = ("spec",)
    holder: Kind | None = None
    """The kind beside the workload that holds the replicas in its place."""
    total: Path = ()
    """Where the workload says besides how many pods there are."""
    least: Path = ()
    """Where it says how many of them are placed together, or none."""

    def pods_in(self, documents: Sequence[Mapping[str, Any]]) -> Any:
        """The document of a gang that holds the replicas.

        Raises:
            KeyError: it is not there.
        """
        if self.holder is None:
            return documents[-1]
        for each in documents:
            if each.get("kind") == self.holder.kind:
                return each
        raise KeyError(self.holder.kind)

    def suspended(self, workload: Mapping[str, Any]) -> bool:
        """Whether its pods are held back, by a queue for example."""
        try:
            return bool(_follow(workload, self.suspend).get("suspend"))
        except KeyError:
            return False

    def parts(self, document: Mapping[str, Any]) -> list[tuple[Replicas, dict[str, Any]]]:
        """Those of the replicas that are there, with what holds their template.

        Raises:
            KeyError, IndexError, TypeError: none is there.
        """
        found = [(self.replicas[0], _follow(document, self.replicas[0].at))]
        for each in self.replicas[1:]:
            with contextlib.suppress(KeyError, IndexError):
                found.append((each, _follow(document, each.at)))
        return found

    def templates(self, document: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The pod templates."""
        return [holder["template"] for _, holder in self.parts(document)]

    def template(self, document: Mapping[str, Any], index: int) -> dict[str, Any]:
        """The template of the pod with this index."""
        found = self.templates(document)
        return found[min(index, len(found) - 1)]

    def nodes(self, document: Mapping[str, Any]) -> int:
        """Pods, one per node.

        Raises:
            ValueError: counts that contradict each other, or none.
        """
        return sum(_count(replicas, holder) for replicas, holder in self.parts(document))

    def set_nodes(self, documents: Sequence[Mapping[str, Any]], nnodes: int) -> None:
        """Make a gang ``nnodes`` pods."""
        pods = self.pods_in(documents)
        for number, (replicas, holder) in enumerate(self.parts(pods)):
            own = nnodes - number if replicas is self.replicas[-1] else 1
            if not own:  # no operator takes a part of no pods
                del _follow(pods, replicas.at[:-1])[replicas.at[-1]]
            for count in replicas.counts:
                holder[count] = own
        if self.total:
            _follow(documents[-1], self.total[:-1])[self.total[-1]] = nnodes
        if self.least:
            place, last = _follow(documents[-1], self.least[:-1]), self.least[-1]
            place[last] = min(int(place.get(last, nnodes)), nnodes)

    def hostname(self, document: Mapping[str, Any], gang: str, index: int) -> str:
        """Host name of a pod of the gang; on Kubernetes the pod's own name may have a random ending besides."""
        parts = [replicas for replicas, _ in self.parts(document)]
        first = min(index, len(parts) - 1)
        replicas = parts[first]
        return replicas.host.format(gang=gang, role=_role(document, replicas.at), index=index - first)


RUNTIMES = (
    Runtime(
        name="jobset",
        kind=JOB_SET,
        replicas=(
            Replicas(
                at=("spec", "replicatedJobs", 0, "template", "spec"),
                host="{gang}-{role}-0-{index}",
                counts=("parallelism", "completions"),
            ),
        ),
    ),
    Runtime(
        name="job",
        kind=JOB,
        replicas=(Replicas(at=("spec",), host="{gang}-{index}", counts=("parallelism", "completions")),),
    ),
    Runtime(
        name="pytorchjob",
        kind=PYTORCH_JOB,
        replicas=(Replicas(at=("spec", "pytorchReplicaSpecs", "Worker"), host="{gang}-worker-{index}"),),
        index=REPLICA_INDEX,
        suspend=("spec", "runPolicy"),
    ),
    Runtime(
        name="tfjob",
        kind=TF_JOB,
        replicas=(Replicas(at=("spec", "tfReplicaSpecs", "Worker"), host="{gang}-worker-{index}"),),
        index=REPLICA_INDEX,
        suspend=("spec", "runPolicy"),
    ),
    Runtime(
        name="xgboostjob",
        kind=XGBOOST_JOB,
        replicas=(
            Replicas(at=("spec", "xgbReplicaSpecs", "Master"), host="{gang}-master-0"),
            Replicas(at=("spec", "xgbReplicaSpecs", "Worker"), host="{gang}-worker-{index}"),
        ),
        index=REPLICA_INDEX,
        from_zero=True,
        suspend=("spec", "runPolicy"),
    ),
    Runtime(
        name="mpijob",
        kind=MPI_JOB,
        replicas=(
            Replicas(at=("spec", "mpiReplicaSpecs", "Launcher"), host="{gang}-launcher"),
            Replicas(at=("spec", "mpiReplicaSpecs", "Worker"), host="{gang}-worker-{index}"),
        ),
        index=REPLICA_INDEX,
        suspend=("spec", "runPolicy"),
    ),
    Runtime(
        name="trainjob",
        kind=TRAIN_JOB,
        replicas=(
            Replicas(
                at=("spec", "template", "spec", "replicatedJobs", 0, "template", "spec"),
                host="{gang}-{role}-0-{index}",
                counts=("parallelism", "completions"),
            ),
        ),
        holder=TRAINING_RUNTIME,
        total=("spec", "trainer", "numNodes"),
    ),
    Runtime(
        name="volcano",
        kind=VOLCANO_JOB,
        replicas=(Replicas(at=("spec", "tasks", 0), host="{gang}-{role}-{index}"),),
        index="volcano.sh/task-index",
        least=("spec", "minAvailable"),
    ),
    Runtime(
        name="rayjob",
        kind=RAY_JOB,
        replicas=(
            Replicas(at=("spec", "rayClusterSpec", "headGroupSpec"), host="{gang}-head", counts=()),
            Replicas(
                at=("spec", "rayClusterSpec", "workerGroupSpecs", 0),
                host="{gang}-worker-{index}",
                counts=("replicas", "minReplicas", "maxReplicas"),
            ),
        ),
        index="",
        from_zero=True,
    ),
)


def find_runtime(document: Mapping[str, Any]) -> Runtime | None:
    """Whose workload the document is; None: of nobody that is known."""
    kinds = [each for each in RUNTIMES if each.kind.kind == document.get("kind")]
    group = str(document.get("apiVersion", "")).partition("/")[0]
    return next((each for each in kinds if each.kind.api_version.startswith(f"{group}/")), next(iter(kinds), None))


def runtime_of(document: Mapping[str, Any]) -> Runtime:
    """Whose workload, or holder of replicas, the document is.

    Raises:
        InputError: of nobody that is known.
    """
    holders = (each for each in RUNTIMES if each.holder is not None and each.holder.kind == document.get("kind"))
    found = find_runtime(document) or next(holders, None)
    if found is None:
        known = ", ".join(each.kind.kind for each in RUNTIMES)
        raise InputError(f"gang: kind is {document.get('kind')!r}; who makes pods is one of {known}")
    return found


def pod_count(workload: Mapping[str, Any]) -> int:
    """Pods of a workload, over all of its Jobs."""
    runtime = runtime_of(workload)
    if runtime.kind in (JOB, JOB_SET):  # a user's own may have several
        return sum(replicas * int(job.get("parallelism", 1)) for replicas, job in job_specs(workload))
    return int(_follow(workload, runtime.total)) if runtime.total else runtime.nodes(workload)


def job_specs(workload: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """(replicas, ``spec``) of every batch Job: the workload itself, or those inside the JobSet."""
    jobs = workload["spec"].get("replicatedJobs")
    if jobs is None:
        return [(1, workload["spec"])]
    return [(int(each.get("replicas", 1)), each["template"]["spec"]) for each in jobs]


def _count(replicas: Replicas, holder: Mapping[str, Any]) -> int:
    if not replicas.counts:
        return 1
    first, *others = replicas.counts
    found = int(holder[first])
    if found < 1 or any(int(holder.get(other, found)) != found for other in others):
        told = ", ".join(f"{name} {holder.get(name)}" for name in replicas.counts)
        raise ValueError(f"{told}: all pods of a gang run at once, so write the same number, 1 or more")
    return found


def _role(document: Mapping[str, Any], at: Path) -> str:
    number = next((place for place, step in enumerate(at) if isinstance(step, int)), None)
    return "" if number is None else str(_follow(document, at[: number + 1]).get("name", ""))


def _follow(root: Any, path: Path) -> Any:
    for step in path:
        root = root[step]
    return root
