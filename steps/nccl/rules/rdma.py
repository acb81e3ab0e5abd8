"""NCCL028-NCCL034, NCCL053: settings of the InfiniBand and RoCE transport."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding, Level, Remove, Set
from argosy.steps.nccl.scene import Scene


def gid_index(scene: Scene) -> Iterator[EnvironmentFinding]:
    """A fixed GID index: ignored on InfiniBand, chosen better by NCCL on RoCE."""
    name = "NCCL_IB_GID_INDEX"
    if not scene.text(name) or scene.in_cloud("oci", "gcp"):
        return
    if scene.number(name) == -1:
        message = "NCCL_IB_GID_INDEX=-1 is NCCL's default"
        yield EnvironmentFinding("NCCL016", "note", (name,), message, "remove it")
    elif scene.link == "ib":
        message = f"{name} is for RoCE; on the InfiniBand that this pod requests NCCL ignores it"
        yield EnvironmentFinding("NCCL028", "warning", (name,), message, "remove it", Remove(name))
    elif scene.facts.nccl.older_than("2.21"):
        if scene.link != "roce":
            message = f"{name}={scene.text(name)} is an entry of one site's GID table, for RoCE only"
            remedy = "compare it with show_gids inside the pod, or move to NCCL 2.21, which finds it"
            yield EnvironmentFinding("NCCL028", "note", (name,), message, remedy)
    else:
        message = (
            f"{name}={scene.text(name)} pins one entry of the GID table: NCCL 2.21 and newer find the RoCE v2 one, and "
            "in a container the index may be absent ('ibv_modify_qp failed with 22 Invalid argument')"
        )
        remedy = "remove it; where it must be narrowed use NCCL_IB_ADDR_FAMILY and NCCL_IB_ADDR_RANGE"
        level: Level = "note" if scene.facts.host_network else "warning"  # the node's own table, which its site knows
        yield EnvironmentFinding("NCCL028", level, (name,), message, remedy, Remove(name))


def queue_pairs(scene: Scene) -> Iterator[EnvironmentFinding]:
    """More queue pairs help only where ECMP hashes flows."""
    name = "NCCL_IB_QPS_PER_CONNECTION"
    value = scene.number(name)
    if value is None or value <= 1 or scene.link == "roce" or scene.in_cloud("gcp", "oci"):
        return
    where = "on InfiniBand they" if scene.link == "ib" else "unless RoCE with ECMP hashes flows they"
    message = f"{value} queue pairs per connection: {where} only cost memory and latency"
    fix = Remove(name) if scene.link == "ib" else None
    level: Level = "warning" if scene.link == "ib" else "note"
    yield EnvironmentFinding("NCCL029", level, (name,), message, "remove it", fix)


def gdr_level(scene: Scene) -> Iterator[EnvironmentFinding]:
    """GPUDirect RDMA over any distance."""
    name = "NCCL_NET_GDR_LEVEL"
    value = scene.text(name).strip()
    if value not in ("SYS", "PHB", "3", "4", "5"):
        return
    if scene.in_cloud("aws", "azure", "nebius", "crusoe"):
        return
    far = "between CPU sockets" if value not in ("PHB", "3") else "through the CPU"
    message = f"{name}={value} sends GPUDirect traffic {far}: on bare metal that is slower than NCCL's choice"
    remedy = "remove it; on a virtual machine that hides the PCI tree prefer the cloud's NCCL_TOPO_FILE"
    yield EnvironmentFinding("NCCL030", "warning", (name,), message, remedy, None)


def timeout(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Minutes of silence before an error."""
    name = "NCCL_IB_TIMEOUT"
    value = scene.number(name)
    if value is None or (0 < value <= 22) or not 0 <= value <= 31:  # NCCL014: out of range
        return
    endless = value == 0
    seconds = 4.096e-6 * 2**value * (scene.number("NCCL_IB_RETRY_CNT") or 7) if not endless else 0
    waits = "waits for ever" if endless else f"waits {seconds / 60:.0f} minutes"
    message = f"{name}={value}: NCCL {waits} before it says that a link is dead"
    # Ten minutes are torch's own patience.
    level: Level = "warning" if endless or seconds >= 600 else "note"
    yield EnvironmentFinding("NCCL031", level, (name,), message, "22 (2 minutes) is enough", Set(name, "22"))


def service_level(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Traffic classes are the site's."""
    if scene.in_cloud("oci", "gcp", "coreweave") or scene.link == "roce":
        return
    for name in ("NCCL_IB_TC", "NCCL_IB_FIFO_TC", "NCCL_IB_SL"):
        value = scene.number(name)
        if not value:
            continue
        level: Level = "warning" if scene.link == "ib" and name != "NCCL_IB_SL" else "note"
        message = f"{name}={value} is a value of one site's RoCE switches; elsewhere its packets lose their class"
        remedy = "take the number from the network's operator, or remove it"
        yield EnvironmentFinding("NCCL032", level, (name,), message, remedy)


def not_disabled(scene: Scene) -> Iterator[EnvironmentFinding]:
    """IB_DISABLE=0 forces nothing."""
    name = "NCCL_IB_DISABLE"
    if scene.number(name) == 0:
        message = "NCCL_IB_DISABLE=0 is the default and forces nothing: NCCL still falls back to TCP silently"
        remedy = "remove it; NCCL_NET=IB fails instead of falling back"
        yield EnvironmentFinding("NCCL033", "note", (name,), message, remedy, Remove(name))


def disabled(scene: Scene) -> Iterator[EnvironmentFinding]:
    """RDMA devices that are requested and then turned off."""
    name = "NCCL_IB_DISABLE"
    if scene.number(name) != 1 or scene.link in ("efa", "google"):
        return
    devices = sorted(device for device in scene.rdma if not device.endswith("/efa"))
    if devices:
        message = f"NCCL_IB_DISABLE=1 turns off {devices[0]}, which the container requests: all traffic goes over TCP"
        remedy = "remove it, or do not request the device"
        yield EnvironmentFinding("NCCL034", "warning", (name,), message, remedy)
    elif scene.link in ("ib", "roce"):
        message = "NCCL_IB_DISABLE=1 turns off the RDMA network that this pod has: all traffic goes over TCP"
        yield EnvironmentFinding("NCCL034", "warning", (name,), message, "remove it")


def no_adapter(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Settings of InfiniBand in a container that gets none of its devices."""
    names = tuple(name for name in ("NCCL_IB_HCA", "NCCL_IB_GID_INDEX") if scene.text(name).strip() not in ("", "-1"))
    if (
        not names
        or scene.link != "none"
        or not scene.facts.gpus_per_pod
        or scene.facts.nodes in (0, 1)
        or scene.number("NCCL_IB_DISABLE") == 1
    ):
        return
    message = (
        f"{names[0]} is for RDMA adapters, and the container gets none (no RDMA resource or claim, no network "
        "annotation, not privileged): NCCL goes over TCP without a word"
    )
    remedy = "request the adapters' resource in limits (rdma/..., vpc.amazonaws.com/efa), or remove the settings"
    yield EnvironmentFinding("NCCL053", "warning", names, message, remedy)


CHECKS = (gid_index, queue_pairs, gdr_level, timeout, service_level, not_disabled, disabled, no_adapter)
