"""NCCL020-NCCL023: what NCCL logs, and where to."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding, Level, Set
from argosy.steps.nccl.scene import Scene

_PER_OPERATION = ("ALL", "COLL", "P2P", "CALL", "PROXY", "ALLOC", "ALLOC_HOST", "REG")
_QUIET = "INIT,BOOTSTRAP,ENV,NET"


def _level(scene: Scene) -> str:
    return scene.text("NCCL_DEBUG").strip().upper()


def level(scene: Scene) -> Iterator[EnvironmentFinding]:
    """INFO is right for the first minutes; TRACE never is in a release build."""
    value = _level(scene)
    if value == "TRACE":
        message = "NCCL_DEBUG=TRACE logs every call of every rank"
        fix = Set("NCCL_DEBUG", "INFO")
        yield EnvironmentFinding("NCCL020", "warning", ("NCCL_DEBUG",), message, "write INFO or WARN", fix)
    elif value == "INFO" and not scene.facts.diagnosis:
        message = "NCCL_DEBUG=INFO is right to see which transport was chosen; in long runs it buries other lines"
        remedy = "keep it for the first minutes; then WARN with NCCL_WARN_ENABLE_DEBUG_INFO=1"
        yield EnvironmentFinding("NCCL020", "note", ("NCCL_DEBUG",), message, remedy)


def chatty(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Subsystems that log each operation."""
    words = [word.strip().upper() for word in scene.text("NCCL_DEBUG_SUBSYS").split(",")]
    loud = [word for word in words if word in _PER_OPERATION]
    if loud and not words[0].startswith("^") and _level(scene) not in ("WARN", "VERSION"):
        message = f"NCCL_DEBUG_SUBSYS={loud[0]} logs lines for every operation: gigabytes in a long run"
        fix = Set("NCCL_DEBUG_SUBSYS", _QUIET)
        names = ("NCCL_DEBUG_SUBSYS",)
        where: Level = "note" if scene.facts.diagnosis else "warning"
        yield EnvironmentFinding("NCCL021", where, names, message, f"write {_QUIET} (GRAPH for one preflight)", fix)


def without_level(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Settings of a log that is not written."""
    known_level = scene.env.get("NCCL_DEBUG", "")
    if known_level is None or _level(scene) in ("INFO", "TRACE", "ABORT") or scene.has("NCCL_DEBUG_LEVELS"):
        return
    if scene.number("NCCL_WARN_ENABLE_DEBUG_INFO"):
        return
    if scene.has("NCCL_DEBUG_SUBSYS"):
        message = "NCCL_DEBUG_SUBSYS filters the INFO log, which NCCL_DEBUG does not turn on"
        remedy = "add NCCL_DEBUG=INFO for a diagnosis, or remove NCCL_DEBUG_SUBSYS"
        yield EnvironmentFinding("NCCL022", "note", ("NCCL_DEBUG_SUBSYS",), message, remedy)
    if scene.has("NCCL_DEBUG_FILE") and _level(scene) in ("", "VERSION"):
        message = "NCCL_DEBUG_FILE is not opened unless NCCL_DEBUG is WARN or more"
        remedy = "add NCCL_DEBUG=WARN, or remove NCCL_DEBUG_FILE"
        yield EnvironmentFinding("NCCL022", "note", ("NCCL_DEBUG_FILE",), message, remedy)


def one_file(scene: Scene) -> Iterator[EnvironmentFinding]:
    """One log file for all processes of a host or of all hosts."""
    path = scene.text("NCCL_DEBUG_FILE")
    if not path or path.startswith("/dev/std") or "%p" in path:
        return
    if scene.facts.gpus_per_pod == 1 and ("%h" in path or scene.facts.nodes == 1):
        return
    message = f"NCCL_DEBUG_FILE={path}: every process opens the same file, truncates it and overwrites the others"
    stem = path.replace(".%h", "").replace("%h", "")
    fix = Set("NCCL_DEBUG_FILE", f"{stem}.%h.%p")
    yield EnvironmentFinding("NCCL023", "warning", ("NCCL_DEBUG_FILE",), message, f"write {stem}.%h.%p", fix)


CHECKS = (level, chatty, without_level, one_file)
