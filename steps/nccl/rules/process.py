"""NCCL047-NCCL052: the process and pod that get the variables."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding, Level
from argosy.steps.nccl.scene import Scene


def _names(scene: Scene) -> tuple[str, ...]:
    return tuple(sorted(name for name in scene.env if name.startswith("NCCL_")))


def ras_address(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Two jobs on one host share the port of the RAS subsystem."""
    facts = scene.facts
    if not facts.host_network or scene.has("NCCL_RAS_ADDR") or scene.number("NCCL_RAS_ENABLE") == 0:
        return
    if facts.gpus_per_pod is None or facts.gpus_per_pod >= 4 or facts.nccl.older_than("2.24") or not _names(scene):
        return
    message = "with hostNetwork every NCCL job of the node wants port 28028 for RAS, and this pod leaves GPUs to others"
    remedy = "set NCCL_RAS_ADDR=localhost:<a port of this job>, or drop hostNetwork"
    yield EnvironmentFinding("NCCL047", "note", ("NCCL_RAS_ADDR",), message, remedy)


def wrong_process(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Variables that the ranks never see."""
    names = _names(scene)
    if not names or scene.facts.process == "ranks":
        return
    if scene.facts.process == "mpi-launcher":
        message = f"{names[0]} is set for mpirun; the ranks start on the workers through ssh and do not get it"
        remedy = "pass it on with mpirun -x NAME, or set it in the workers' image"
        yield EnvironmentFinding("NCCL048", "warning", names, message, remedy)
    else:
        kind = "an init container" if scene.facts.process == "init" else "a sidecar"
        message = f"{names[0]} is set for {kind}, which runs no collective"
        yield EnvironmentFinding("NCCL048", "note", names, message, "set it for the container that trains")


def no_nccl(scene: Scene) -> Iterator[EnvironmentFinding]:
    """NCCL is not used at all."""
    names = tuple(name for name in _names(scene) if name not in ("NCCL_VERSION", "NCCL_HOME"))
    if not names or scene.facts.process != "ranks":
        return
    if (scene.facts.backend or "nccl").lower() not in ("nccl", "nccl-legacy", "cuda:nccl", "cpu:gloo,cuda:nccl"):
        message = f"{names[0]} does nothing: the backend is {scene.facts.backend}"
    elif scene.facts.gpus_per_pod == 0 or _no_gpu(scene):
        message = f"{names[0]} does nothing: the container gets no GPU, so NCCL is not used"
    else:
        return
    yield EnvironmentFinding("NCCL049", "note", names, message, "remove it, or request nvidia.com/gpu")


def _no_gpu(scene: Scene) -> bool:
    """The container says what it needs, and no accelerator is among it (a claim of DRA would not show)."""
    asked = scene.facts.resources
    if not asked or scene.facts.gpus_per_pod is not None:
        return False
    return asked <= {"cpu", "memory", "ephemeral-storage"}


def one_node(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Network settings of a single pod."""
    marks = ("NCCL_IB_", "NCCL_NET", "NCCL_CROSS_NIC", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS", "NCCL_COLLNET")
    names = tuple(name for name in _names(scene) if name.startswith(marks))
    if scene.facts.nodes == 1 and names and not scene.facts.diagnosis:
        message = f"{names[0]} is for the network between nodes, and this job has one"
        yield EnvironmentFinding("NCCL050", "note", names, message, "remove it")


def locked_memory(scene: Scene) -> Iterator[EnvironmentFinding]:
    """IPC_LOCK without root."""
    facts = scene.facts
    if facts.non_root and "IPC_LOCK" in (facts.capabilities or ()) and not facts.privileged:
        message = (
            "the capability IPC_LOCK has no effect on a non-root process: memlock stays at the runtime's limit, "
            "and registering RDMA memory fails ('Cannot allocate memory')"
        )
        remedy = "LimitMEMLOCK=infinity for the node's container runtime, or run as root"
        level: Level = "warning" if scene.rdma else "note"
        yield EnvironmentFinding("NCCL051", level, (), message, remedy)


def topology_file(scene: Scene) -> Iterator[EnvironmentFinding]:
    """A topology file that no mount brings."""
    name = "NCCL_TOPO_FILE"
    path = scene.text(name).strip()
    if path.startswith("/") and scene.facts.mounts and not any(path.startswith(mount) for mount in scene.facts.mounts):
        message = f"{name}={path}: no mount of the container brings it; without it NCCL pairs GPUs and NICs wrongly"
        remedy = "mount it (hostPath or ConfigMap), or make sure that the image has it"
        yield EnvironmentFinding("NCCL052", "note", (name,), message, remedy)


CHECKS = (ras_address, wrong_process, no_nccl, one_node, locked_memory, topology_file)
