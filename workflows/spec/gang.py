"""The gang: how many nodes, what each has, who makes the pods."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.spec.fabric import check_parameters, check_volumes, filled_fabric
from argosy.workflows.spec.launcher import check_launcher
from argosy.workflows.spec.placement import check_host, check_queue
from argosy.workflows.spec.pod import Pod
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.resources import Resources
from argosy.workflows.spec.spares import MAX_SPARES, check_spares
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import (
    Bytes,
    KubeName,
    LabelValue,
    Line,
    ModuleName,
    NamedLabel,
    QueueName,
    WholeNumber,
    quantity,
)
from argosy.workflows.spec.toleration import Toleration
from argosy.workflows.spec.topology import Spot, Topology

MAX_NODES = 10_000
SERVICE_ACCOUNT = "argosy"
SHM_SIZE = "1Gi"
"""Of /dev/shm, where neither the user nor the fabric says; NCCL alone needs less."""
_NNODES_REMEDY = 'write a number (nnodes = 2) or a range (nnodes = "2:4")'


def _check_nnodes(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= MAX_NODES:
            raise Refusal(f"must be at least 1 and at most {MAX_NODES}", _NNODES_REMEDY)
        return value
    low, colon, high = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not (colon and _is_count(low) and _is_count(high)):
        raise Refusal("must be a whole number or a range min:max", _NNODES_REMEDY)
    if not 1 <= int(low) < int(high) <= MAX_NODES:
        raise Refusal(f"needs 1 <= min < max <= {MAX_NODES}", _NNODES_REMEDY)
    return f"{int(low)}:{int(high)}"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6


class Gang(Table):
    """``[gang]``: N pods, one per node, that start together and end together."""

    nnodes: Annotated[int | str, BeforeValidator(_check_nnodes)] = Field(
        default=1, description='Number of nodes (count), or "min:max" for a gang that may go on with fewer.'
    )
    nproc_per_node: Annotated[WholeNumber, Field(ge=1, le=1024)] = Field(
        default=1, description="Ranks on each node, count; with GPUs one per GPU."
    )
    spares: Annotated[WholeNumber, Field(ge=0, le=MAX_SPARES)] = Field(
        default=0,
        description="Further nodes that stand by with code and data, count: one takes a lost rank's place, or that of "
        "a node that is left out, and the ranks start again without a new gang. They hold their nodes idle "
        "(docs/gangs.md). With runtime jobset or job and a fixed nnodes.",
    )
    runtime: str = Field(
        default="jobset",
        description="Who creates the pods. jobset. job: an Indexed Job and a headless Service, which need no CRD. "
        "pytorchjob, tfjob, xgboostjob: Kubeflow's Training Operator v1. mpijob: its MPI Operator v2, without mpirun. "
        "trainjob: its Trainer v2. volcano: a Job of Volcano, with placement volcano. "
        "rayjob: KubeRay, and an image with ray on its PATH.",
    )
    placement: str = Field(
        default="none",
        description="Who makes the placement all-or-nothing. none: a gang that is not whole in time lets go. native: a "
        "PodGroup of Kubernetes 1.37 (feature gate GenericWorkload). kueue: the queue admits the gang. "
        "volcano: its scheduler binds the gang, in a PodGroup of Volcano's. coscheduling: a PodGroup of "
        "scheduler-plugins. kai: NVIDIA's scheduler. The last two were never tried with their schedulers.",
    )
    queue: QueueName = Field(
        default="",
        description="With placement kueue the namespace's LocalQueue; with kai KAI's Queue; with volcano Volcano's, "
        "default if empty.",
    )
    queue_priority: QueueName = Field(
        default="", description="With placement kueue: WorkloadPriorityClass. Empty: priority_class orders the queue."
    )
    launcher: str = Field(
        default="torchrun",
        description="What starts the ranks on a node. torchrun. plain: nothing but us, for scripts without torch "
        "(XGBoost, JAX, TensorFlow): RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT, TF_CONFIG. mpirun: Open MPI, for "
        "scripts that meet over MPI (Horovod, mpi4py); the image has it, no sshd. ray: Ray Train (TorchTrainer), whose "
        "workers Ray starts; the image has ray[train].",
    )
    preload: tuple[Annotated[ModuleName, Field(min_length=1)], ...] = Field(
        default=(),
        description='Modules of the image that ranks find imported, ["torch"] for example: each rank is then a fork of '
        "a process that waits in the pod with them, and a restart saves their import (docs/gangs.md). Empty: each "
        "rank is a Python of its own from the start. With launcher torchrun.",
    )
    fabric: Line = Field(
        default="",
        description="Network profile: what NCCL and the pods need of it, and what they must talk over. Empty: nothing "
        "is set, NCCL chooses. In a file also the path of a profile of your own, relative to it: ./my-fabric.toml.",
    )
    fabric_parameters: Annotated[dict[str, str], BeforeValidator(check_parameters)] = Field(
        default={}, description="What the profile must be told of your cluster: parameter = value."
    )
    fabric_profile: dict[str, Any] | None = Field(
        default=None, description="A profile of your own in place of fabric, in the form of docs/fabrics.md."
    )
    shm_size: Bytes | None = Field(
        default=None,
        description="Size of /dev/shm in each pod, bytes; counts towards memory. Unset: the fabric's, else 1Gi.",
    )
    transport: Literal["warn", "enforce", "off"] = Field(
        default="warn",
        description="What happens when NCCL's log shows another network than fabric is for. warn: the run's log and "
        "report say so. enforce: the run ends with nccl_network_init. off: NCCL's log is not read.",
    )
    preflight: Literal["off", "warn", "enforce"] = Field(
        default="off",
        description="Checks before the first step of a new gang: are all nodes reached, is one slower than the rest? "
        "warn: the run's log and report say so. enforce: a node that is named is left out of the next gang, and what "
        "blames no node ends the start too (docs/preflight.md).",
    )
    node_selector: dict[NamedLabel, LabelValue] = Field(
        default={}, description="Labels that the gang's nodes must have: label = value."
    )
    tolerations: tuple[Toleration, ...] = Field(
        default=(),
        description="Taints that the gang's pods accept; unreachable and not-ready nodes are left after 30 seconds.",
    )
    topology: Topology = Field(default=Topology(), description="Whether the pods are near each other.")
    spot: Spot | None = Field(
        default=None, description="Nodes that may be taken away, and when to leave them. Absent: none are asked for."
    )
    priority_class: KubeName = Field(
        default="", description="PriorityClass of the gang's pods. Empty: the cluster's default."
    )
    service_account: KubeName = Field(
        default=SERVICE_ACCOUNT,
        description="ServiceAccount of the run's pods, as `argosy install` makes it; your code gets no API token. "
        "Empty: the workflow's own, else the namespace's default.",
    )
    resources: Resources = Field(default=Resources(), description="What each pod of the gang asks of its node.")
    pod: Pod = Field(default=Pod(), description="What the gang's pods have besides, in Kubernetes' own words.")

    @property
    def min_nnodes(self) -> int:
        """Fewest nodes to go on with."""
        return int(str(self.nnodes).split(":")[0])

    @property
    def max_nnodes(self) -> int:
        """Nodes of the manifest."""
        return int(str(self.nnodes).split(":")[-1])

    @property
    def elastic(self) -> bool:
        """Whether the number of nodes may change."""
        return self.min_nnodes != self.max_nnodes

    @property
    def world_size(self) -> int:
        """Ranks with all nodes present."""
        return self.max_nnodes * self.nproc_per_node

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang and its spares, which hold theirs idle."""
        return (self.max_nnodes + self.spares) * self.resources.gpu

    def fabric_of(self, run: str) -> Fabric:
        """The fabric of the run of that name; the empty one sets nothing."""
        return filled_fabric(self.fabric, self.fabric_profile, self.fabric_parameters, run)

    def shm_of(self, fabric: Fabric) -> str:
        """Size of /dev/shm, bytes as a quantity: the user's, else the fabric's."""
        return self.shm_size or fabric.shm_size or SHM_SIZE

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_host(self.runtime, self.placement, self.launcher)
        check_queue(self.placement, self.queue, self.queue_priority)
        check_spares(self.spares, str(self.nnodes), self.runtime, self.placement)
        self.topology.check(self.placement)
        if self.spot is not None and self.spot.label in self.node_selector:
            remedy = "remove it there: gang.spot asks for it, and for the others later"
            raise Refusal("stands in node_selector too", remedy, field="spot.label", value=self.spot.label)
        fabric = self.fabric_of("run")
        if fabric.one_node and self.max_nnodes > 1:
            raise Refusal(
                f"one node's loopback cannot join nnodes = {self.nnodes}",
                'write nnodes = 1, or fabric = "tcp", or leave fabric out',
                field="fabric",
                value=fabric.name,
            )
        if self.transport == "enforce" and fabric.expect is None:
            raise Refusal(
                "has nothing to compare with: no fabric says what the ranks must talk over",
                "name the network in gang.fabric, or leave transport out",
                field="transport",
                value=self.transport,
            )
        check_launcher(self)
        gpu = self.resources.gpu
        if gpu and self.nproc_per_node > gpu:
            raise Refusal(
                f"more ranks than GPUs on a node (resources.gpu = {gpu})",
                f"write nproc_per_node = {gpu}, or ask for {self.nproc_per_node} GPUs",
                field="nproc_per_node",
                value=self.nproc_per_node,
            )
        check_volumes(fabric, self.pod)
        shm = self.shm_of(fabric)
        if quantity(shm) > quantity(self.resources.memory):
            whose = f"fabric {fabric.name} sets it, and " if fabric.shm_size and not self.shm_size else ""
            raise Refusal(
                f"{whose}/dev/shm counts towards the pod's memory (resources.memory = {self.resources.memory!r})",
                f"raise resources.memory or {'lower' if self.shm_size else 'write a smaller'} shm_size",
                field="shm_size",
                value=shm,
            )
        return self
