"""NCCL035-NCCL037: which network and plugin NCCL is told to take."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding
from argosy.steps.nccl.scene import Scene


def _net(scene: Scene) -> str:
    return scene.text("NCCL_NET").strip().lower()


def forbidden(scene: Scene) -> Iterator[EnvironmentFinding]:
    """The network that is demanded is turned off."""
    if _net(scene) == "ib" and scene.number("NCCL_IB_DISABLE") == 1:
        names = ("NCCL_NET", "NCCL_IB_DISABLE")
        message = "NCCL_NET=IB demands the network that NCCL_IB_DISABLE=1 turns off: initialisation fails"
        yield EnvironmentFinding("NCCL035", "error", names, message, "keep one of the two")
    if _net(scene) in ("libfabric", "aws libfabric", "gib", "fastrak") and _plugin(scene) == "none":
        names = ("NCCL_NET", "NCCL_NET_PLUGIN")
        message = f"NCCL_NET={scene.text('NCCL_NET')} demands a plugin that NCCL_NET_PLUGIN=none keeps out"
        yield EnvironmentFinding("NCCL035", "error", names, message, "remove NCCL_NET_PLUGIN")


def _plugin(scene: Scene) -> str:
    return scene.text("NCCL_NET_PLUGIN").strip().lower()


def no_device(scene: Scene) -> Iterator[EnvironmentFinding]:
    """The network that is demanded has no device in the pod, or a better one lies idle."""
    net, names = _net(scene), ("NCCL_NET",)
    remedy = "request the device, or remove NCCL_NET"
    if net == "ib" and scene.link == "none" and scene.number("NCCL_IB_DISABLE") != 1:
        message = "NCCL_NET=IB allows no other network, and the container requests no RDMA device: it will not start"
        yield EnvironmentFinding("NCCL036", "warning", names, message, remedy)
    elif net == "ib" and scene.link == "efa":
        message = "NCCL_NET=IB keeps the aws-ofi-nccl plugin out: EFA is not reached by NCCL's own verbs transport"
        yield EnvironmentFinding("NCCL036", "warning", names, message, "remove it, or write Libfabric")
    elif net == "socket" and (scene.rdma or scene.link in ("ib", "roce", "efa")):
        message = "NCCL_NET=Socket sends everything over TCP beside the RDMA devices that the pod requests"
        yield EnvironmentFinding("NCCL036", "warning", names, message, "remove it, or do not request the devices")
    elif net in ("libfabric", "aws libfabric", "ofi") and scene.link in ("none", "ib"):
        message = f"NCCL_NET={scene.text('NCCL_NET')} needs EFA, and the container requests no vpc.amazonaws.com/efa"
        yield EnvironmentFinding("NCCL036", "warning", names, message, remedy)


def plugin_off(scene: Scene) -> Iterator[EnvironmentFinding]:
    """NET_PLUGIN=none where the network is a plugin."""
    if _plugin(scene) != "none":
        return
    if scene.link == "efa":
        message = "NCCL_NET_PLUGIN=none keeps aws-ofi-nccl out: the EFA devices lie idle and traffic goes over TCP"
        names: tuple[str, ...] = ("NCCL_NET_PLUGIN",)
        yield EnvironmentFinding("NCCL037", "warning", names, message, "remove it")
    elif scene.link == "google":
        message = "NCCL_NET_PLUGIN=none keeps Google's plugin out: the RDMA or TCPX network is not used"
        yield EnvironmentFinding("NCCL037", "warning", ("NCCL_NET_PLUGIN",), message, "remove it")
    if scene.number("NCCL_COLLNET_ENABLE") == 1:
        message = "NCCL_COLLNET_ENABLE=1 needs the SHARP plugin that NCCL_NET_PLUGIN=none keeps out"
        names = ("NCCL_NET_PLUGIN", "NCCL_COLLNET_ENABLE")
        yield EnvironmentFinding("NCCL037", "warning", names, message, "remove one of the two")


CHECKS = (forbidden, no_device, plugin_off)
