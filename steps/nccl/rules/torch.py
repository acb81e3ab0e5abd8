"""TORCH001-TORCH014: variables of torch.distributed, its watchdog, its flight recorder and gloo."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.catalogue import torch_names
from argosy.steps.nccl.finding import EnvironmentFinding, Level, Remove, Rename, Set
from argosy.steps.nccl.gone import RECORDER_ALIASES, TORCH_ALIASES
from argosy.steps.nccl.scene import Scene
from argosy.steps.nccl.spelling import nearest


def _any(scene: Scene, *names: str) -> str | None:
    """The first of the names that is set."""
    return next((name for name in names if scene.has(name)), None)


def _off(value: str) -> bool:
    return value.strip().lower() in ("0", "n", "f", "no", "false", "off")


def _on(value: str) -> bool:
    return value.strip().lower() in ("1", "y", "t", "yes", "true", "on")


def old_names(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Names without TORCH_, deprecated since torch 2.2."""
    if scene.facts.torch.older_than("2.2"):
        return
    for name, new in TORCH_ALIASES.items():
        if scene.has(name):
            fix = Remove(name) if scene.has(new) else Rename(name, new)
            message = f"{name} is torch's, not NCCL's, and is deprecated under this name since torch 2.2"
            yield EnvironmentFinding("TORCH001", "warning", (name,), message, f"write {new}", fix)
    for name, new in RECORDER_ALIASES.items():
        if scene.has(name) and not scene.has(new) and scene.facts.torch.at_least("2.13"):
            message = f"{name} is called {new} in this torch; the old name still works"
            yield EnvironmentFinding("TORCH001", "note", (name,), message, f"write {new}", Rename(name, new))


def no_abort(scene: Scene) -> Iterator[EnvironmentFinding]:
    """ASYNC_ERROR_HANDLING=0."""
    name = _any(scene, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING")
    if name and scene.number(name) == 0:
        message = f"{name}=0: after an error or a timeout the process hangs for ever instead of ending"
        yield EnvironmentFinding("TORCH002", "warning", (name,), message, "remove it", Remove(name))


def blocking_wait(scene: Scene) -> Iterator[EnvironmentFinding]:
    """BLOCKING_WAIT=1."""
    name = _any(scene, "TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT")
    if name and _on(scene.text(name)):
        message = f"{name}=1 makes every wait() block the Python thread: communication no longer overlaps with compute"
        yield EnvironmentFinding("TORCH003", "warning", (name,), message, "remove it", Remove(name))


def detail(scene: Scene) -> Iterator[EnvironmentFinding]:
    """TORCH_DISTRIBUTED_DEBUG."""
    name = "TORCH_DISTRIBUTED_DEBUG"
    value = scene.text(name).strip().upper()
    if value == "DETAIL":
        level: Level = "note" if scene.facts.diagnosis else "warning"
        message = f"{name}=DETAIL checks every collective over gloo first: slow, for a diagnosis only"
        yield EnvironmentFinding("TORCH004", level, (name,), message, "remove it, or INFO", Set(name, "INFO"))
    elif value and value not in ("OFF", "INFO"):
        message = f"{name}={scene.text(name)}: importing torch.distributed fails, it must be OFF, INFO or DETAIL"
        yield EnvironmentFinding("TORCH008", "error", (name,), message, "remove it", Remove(name))


def recorder(scene: Scene) -> Iterator[EnvironmentFinding]:
    """The flight recorder turned off."""
    for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
        if scene.number(name) == 0:
            message = f"{name}=0 turns the flight recorder off: a hang then leaves no record of who was missing"
            yield EnvironmentFinding("TORCH005", "warning", (name,), message, "write 2000", Set(name, "2000"))
    for name in ("TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"):
        if scene.has(name) and _off(scene.text(name)):
            message = f"{name}=0: after a timeout the flight recorder is not written to disk"
            yield EnvironmentFinding("TORCH005", "warning", (name,), message, "write 1", Set(name, "1"))


def cpp_log(scene: Scene) -> Iterator[EnvironmentFinding]:
    """TORCH_CPP_LOG_LEVEL."""
    name = "TORCH_CPP_LOG_LEVEL"
    value = scene.text(name).strip().upper()
    if value and value not in ("INFO", "WARNING", "ERROR", "FATAL", "0", "1", "2", "3"):
        message = f"{name}={scene.text(name)} is none of INFO, WARNING, ERROR, FATAL: torch ignores it"
        yield EnvironmentFinding("TORCH008", "warning", (name,), message, "write WARNING or remove it", Remove(name))


_NEVER = {"TORCH_CUDA_ALLOC_CONF": "PYTORCH_CUDA_ALLOC_CONF", "TORCH_ALLOC_CONF": "PYTORCH_ALLOC_CONF"}
"""Names under which nothing ever read the allocator's settings."""


def strangers(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Names that torch does not know."""
    families = ("TORCH_NCCL", "TORCH_FR_", "TORCH_DISTRIBUTED_", "TORCH_DIST_")
    for name in sorted(scene.env):
        if name not in _NEVER and (not name.startswith(families) or name in torch_names()):
            continue
        right = _NEVER.get(name) or nearest(name, torch_names())
        if right:
            fix = None if scene.has(right) else Rename(name, right)
            message = f"torch does not read {name}: did you mean {right}?"
            yield EnvironmentFinding("TORCH007", "warning", (name,), message, f"write {right}", fix)
        else:
            message = f"no torch that argosy knows reads {name}"
            yield EnvironmentFinding("TORCH007", "note", (name,), message, "remove it")
    if scene.has("TORCH_NCCL_AVOID_RECORD_STREAMS") and scene.facts.torch.at_least("2.8"):
        name = "TORCH_NCCL_AVOID_RECORD_STREAMS"
        message = f"{name} is the default of this torch, which no longer reads it"
        yield EnvironmentFinding("TORCH007", "note", (name,), message, "remove it", Remove(name))


def watchdog(scene: Scene) -> Iterator[EnvironmentFinding]:
    """The monitor of the watchdog turned off or put to sleep."""
    name = "TORCH_NCCL_ENABLE_MONITORING"
    if scene.has(name) and _off(scene.text(name)):
        message = f"{name}=0: a process whose watchdog is stuck in the driver then hangs for ever"
        yield EnvironmentFinding("TORCH009", "warning", (name,), message, "remove it", Remove(name))
    name = "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"
    value = scene.number(name)
    if value is not None and value > 3600:
        message = f"{name}={value}: a stuck process is noticed after {value / 3600:.1f} hours of idle GPUs"
        yield EnvironmentFinding("TORCH009", "warning", (name,), message, "600 is torch's, 1800 covers slow saves")


def gloo_interface(scene: Scene) -> Iterator[EnvironmentFinding]:
    """gloo's interface beside NCCL's, and in gloo's own syntax."""
    name, nccl = "GLOO_SOCKET_IFNAME", scene.text("NCCL_SOCKET_IFNAME").strip()
    value = scene.text(name).strip()
    if value.startswith(("^", "=")):
        message = f"{name}={value}: gloo takes exact names only; '{value[0]}' is NCCL's syntax and gloo fails to start"
        names = value.lstrip("^=")
        fix = Set(name, names) if value.startswith("=") else None
        remedy = f"write {names}" if fix else "remove it, or name one interface exactly"
        yield EnvironmentFinding("TORCH012", "warning", (name,), message, remedy, fix)
    elif nccl and not nccl.startswith("^") and not scene.has(name) and scene.many_nodes() and not scene.facts.diagnosis:
        message = "NCCL_SOCKET_IFNAME chooses the interface for NCCL alone; gloo, used beside it, guesses its own"
        yield EnvironmentFinding("TORCH011", "note", (name, "NCCL_SOCKET_IFNAME"), message, f"set {name} too")


def launch_blocking(scene: Scene) -> Iterator[EnvironmentFinding]:
    """CUDA_LAUNCH_BLOCKING=1."""
    name = "CUDA_LAUNCH_BLOCKING"
    if scene.number(name) == 1 and not scene.facts.diagnosis:
        message = f"{name}=1 runs one kernel at a time: slow, and collectives of several communicators can deadlock"
        yield EnvironmentFinding("TORCH014", "warning", (name,), message, "remove it", Remove(name))


CHECKS = (
    old_names,
    no_abort,
    blocking_wait,
    detail,
    recorder,
    cpp_log,
    strangers,
    watchdog,
    gloo_interface,
    launch_blocking,
)
