"""NCCL038-NCCL044: buffers, algorithms, channels and NVLink SHARP."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.catalogue import demanded_names
from argosy.steps.nccl.finding import EnvironmentFinding, Level, Remove
from argosy.steps.nccl.scene import Scene


def buffer_size(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Larger buffers: memory per channel and peer."""
    name = "NCCL_BUFFSIZE"
    value = scene.number(name)
    if value is None or scene.in_cloud("gcp") or (scene.in_cloud("oci") and scene.generation == "blackwell"):
        return
    if value == 4194304:
        message = "NCCL_BUFFSIZE=4194304 is NCCL's default"
        yield EnvironmentFinding("NCCL016", "note", (name,), message, "remove it")
        return
    why = "; over EFA it also overrides what the plugin tunes" if scene.link == "efa" else ""
    message = f"NCCL_BUFFSIZE={value} changes the memory of every channel and peer, without a known gain{why}"
    yield EnvironmentFinding("NCCL038", "warning", (name,), message, "remove it", Remove(name))


def algorithms(scene: Scene) -> Iterator[EnvironmentFinding]:
    """A list of algorithms turns all others off."""
    name = "NCCL_ALGO"
    value = scene.text(name).strip().lower()
    if not value or value.startswith("^") or scene.in_cloud("gcp"):
        return
    scoped = ":" in value.split(";")[0]
    words = set(value.replace(";", ",").split(","))
    if scoped:
        message = (
            f"NCCL_ALGO={scene.text(name)} names collectives; NCCL 2.31 and newer turn off those that are not named"
        )
        level: Level = "warning" if scene.facts.nccl.at_least("2.31") else "note"
    elif "ring" not in words:  # only Ring broadcasts, as DDP and FSDP do first of all
        message = f"NCCL_ALGO={scene.text(name)} without Ring: since NCCL 2.24 each broadcast fails"
        level = "note" if scene.facts.diagnosis or scene.facts.nccl.older_than("2.24") else "warning"
    elif "nvls" in words:
        message, level = f"NCCL_ALGO={scene.text(name)} turns off every algorithm that it does not name", "note"
    else:
        gpus = f"on {scene.generation} " if scene.nvlink_sharp() else "on Hopper and newer "
        message = (
            f"NCCL_ALGO={scene.text(name)} turns off NVLS, NVLSTree, CollNet and PAT: {gpus}that loses NVLink SHARP; "
            "since NCCL 2.24 a collective without a listed algorithm fails"
        )
        level = "warning" if scene.nvlink_sharp() and not scene.facts.diagnosis else "note"
    yield EnvironmentFinding("NCCL040", level, (name,), message, "remove it: NCCL's tuner chooses by size and topology")


def protocols(scene: Scene) -> Iterator[EnvironmentFinding]:
    """A forced protocol."""
    name = "NCCL_PROTO"
    value = scene.text(name).strip().lower()
    if not value or scene.in_cloud("gcp"):
        return
    level: Level = "note"
    if value.startswith("^"):
        message = f"NCCL_PROTO={scene.text(name)} excludes a protocol; NVIDIA allows it as a workaround"
    elif "ll128" in value:
        message = "NCCL_PROTO forces LL128: on platforms that cannot do it data is corrupted, without an error"
        level = "warning"
    else:  # vendors' pages ask for it: EFA's did, and TCPX's do
        message = f"NCCL_PROTO={scene.text(name)} takes the faster protocols away from NCCL"
    yield EnvironmentFinding("NCCL041", level, (name,), message, "remove it")


def channels(scene: Scene) -> Iterator[EnvironmentFinding]:
    """More channels at least than at most."""
    for low, high in (("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"), ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS")):
        least, most = scene.number(low), scene.number(high)
        if least is not None and most is not None and least > most:
            message = f"{low}={least} is more than {high}={most}"
            yield EnvironmentFinding("NCCL042", "warning", (low, high), message, "remove both, or put them in order")


def nvls(scene: Scene) -> Iterator[EnvironmentFinding]:
    """NVLink SHARP asked for and prevented, impossible, or thrown away."""
    name = "NCCL_NVLS_ENABLE"
    value = scene.number(name)
    algorithm = scene.text("NCCL_ALGO").lower()
    if value == 1 and algorithm and "nvls" not in algorithm:
        message = "NCCL_NVLS_ENABLE=1 asks for NVLink SHARP, and NCCL_ALGO leaves it out"
        yield EnvironmentFinding("NCCL043", "warning", (name, "NCCL_ALGO"), message, "remove NCCL_ALGO")
    elif value == 1 and scene.number("NCCL_CUMEM_ENABLE") == 0:
        message = "NCCL_NVLS_ENABLE=1 asks for NVLink SHARP, which needs the cuMem that NCCL_CUMEM_ENABLE=0 turns off"
        names = (name, "NCCL_CUMEM_ENABLE")
        yield EnvironmentFinding("NCCL043", "warning", names, message, "remove NCCL_CUMEM_ENABLE")
    elif value == 1 and scene.generation not in (None, "hopper", "blackwell"):
        message = f"NCCL_NVLS_ENABLE=1: {scene.facts.gpu} has no NVLink SHARP (Hopper and newer have)"
        yield EnvironmentFinding("NCCL043", "warning", (name,), message, "remove it", Remove(name))
    elif (
        value == 0
        and name not in demanded_names(scene.cloud or "")
        and scene.generation in (None, "hopper", "blackwell")
    ):
        gpus = scene.facts.gpu if scene.nvlink_sharp() else "Hopper and newer GPUs"
        message = f"NCCL_NVLS_ENABLE=0 gives up NVLink SHARP, the fastest all-reduce of {gpus}, to save memory"
        remedy = "remove it, unless multicast is broken on the node or the memory is needed"
        level: Level = "warning" if scene.nvlink_sharp() else "note"
        yield EnvironmentFinding("NCCL043", level, (name,), message, remedy)


def multi_node_nvlink(scene: Scene) -> Iterator[EnvironmentFinding]:
    """MNNVL needs cuMem and GB200-like machines."""
    name = "NCCL_MNNVL_ENABLE"
    if scene.number(name) != 1:
        return
    if scene.number("NCCL_CUMEM_ENABLE") == 0:
        names = (name, "NCCL_CUMEM_ENABLE")
        message = "NCCL_MNNVL_ENABLE=1 needs the cuMem that NCCL_CUMEM_ENABLE=0 turns off"
        yield EnvironmentFinding("NCCL044", "warning", names, message, "remove NCCL_CUMEM_ENABLE")
    elif scene.generation not in (None, "blackwell", "hopper"):
        message = f"NCCL_MNNVL_ENABLE=1 fails without an IMEX domain, and {scene.facts.gpu} is in none"
        yield EnvironmentFinding("NCCL044", "warning", (name,), message, "remove it", Remove(name))


CHECKS = (buffer_size, algorithms, protocols, channels, nvls, multi_node_nvlink)
