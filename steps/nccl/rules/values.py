"""NCCL013-NCCL017: values that NCCL cannot read, out of range, or at their default."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.steps.nccl.catalogue import Setting, settings
from argosy.steps.nccl.finding import EnvironmentFinding, Set
from argosy.steps.nccl.gone import FAST_PATHS
from argosy.steps.nccl.scene import Scene

_ALGORITHMS = {"ring", "tree", "collnet", "collnetchain", "collnetdirect", "nvls", "nvlstree", "pat"}
_PROTOCOLS = {"ll", "ll128", "simple"}
_FUNCTIONS = {"allreduce", "allgather", "reducescatter", "broadcast", "reduce", "sendrecv", "alltoall"}
_BOOLEANS = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}


def _wrapped(value: str) -> str:
    """The value without blanks and quotes around it."""
    return value.strip().strip("\"'").strip()


def quoted(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Quotes and blanks that became part of the value."""
    for name in sorted(scene.env):
        value = scene.text(name)
        if name.startswith(("NCCL_", "TORCH_", "GLOO_")) and value != _wrapped(value) and _wrapped(value):
            if name == "NCCL_DEBUG_TIMESTAMP_FORMAT":
                continue
            message = f"the value of {name} is {value!r}: the quotes or blanks are part of it"
            fix = Set(name, _wrapped(value))
            yield EnvironmentFinding("NCCL015", "warning", (name,), message, f"write {_wrapped(value)}", fix)


def _listed(value: str, allowed: set[str]) -> str | None:
    """The first word of an algorithm or protocol list that NCCL does not know."""
    for part in value.lower().split(";"):
        words = part
        if ":" in part:
            function, words = part.split(":", 1)
            if function.strip() not in _FUNCTIONS:
                return function
        for word in words.lstrip("^").split(","):
            if word.strip() not in allowed:
                return word
    return None


def _options(value: str, setting: Setting) -> tuple[str, str | None]:
    """(what is wrong, the value that was meant) of an enumeration; ("", None) when it is fine."""
    kind, _, listing = setting.kind.partition(":")
    allowed = listing.split("|")
    words = value.lstrip("^").split(",") if kind == "each" else [value]
    for word in words:
        if word in allowed or (kind != "one" and word.upper() in allowed):
            continue
        meant = word.upper() if word.upper() in allowed and len(words) == 1 else None
        case = " (upper case counts)" if meant else ""
        return f"{word!r} is none of {', '.join(allowed[:9])}{', …' if len(allowed) > 9 else ''}{case}", meant
    return "", None


def _number(value: str, setting: Setting) -> tuple[str, str | None]:
    try:
        float(value) if setting.kind == "float" else int(value, 0)
    except ValueError:
        meant = _BOOLEANS.get(value.lower()) if setting.kind == "bool" else None
        return f"{value!r} is not a number", meant
    return "", None


def unreadable(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Values that NCCL ignores, or in lists of algorithms refuses."""
    for name in sorted(scene.env.keys() & settings().keys()):
        value, setting = _wrapped(scene.text(name)), settings()[name]
        if not value:
            continue
        kind = setting.kind.partition(":")[0]
        wrong: str | None = None
        meant = None
        if kind in ("algorithms", "protocols"):
            wrong = _listed(value, _ALGORITHMS if kind == "algorithms" else _PROTOCOLS)
            wrong = wrong and f"{wrong!r} is no {kind[:-1]} of NCCL: since 2.24 initialisation fails on it"
        elif kind in ("one", "any", "each"):
            wrong, meant = _options(value, setting)
        elif kind in ("bool", "int", "float"):
            wrong, meant = _number(value, setting)
        if wrong:
            remedy = f"write {meant}" if meant else "write one of the documented values, or remove it"
            fix = Set(name, meant) if meant and name not in FAST_PATHS else None
            message = f"{name}: {wrong}" + ("" if kind in ("algorithms", "protocols") else "; NCCL takes its default")
            yield EnvironmentFinding("NCCL013", "warning", (name,), message, remedy, fix)
    for name in ("NCCL_DEBUG_FILE", "NCCL_CONF_FILE"):
        if scene.text(name).startswith("~"):
            message = f"{name}: NCCL does not expand ~ in a path"
            yield EnvironmentFinding("NCCL013", "warning", (name,), message, "write the absolute path")


def out_of_range(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Numbers beyond what NCCL accepts."""
    for name in sorted(scene.env.keys() & settings().keys()):
        setting, value = settings()[name], scene.number(name)
        bounds = "0..1" if setting.kind == "bool" else setting.kind.partition(":")[2]
        if value is None or not re.fullmatch(r"-?\d+\.\.\d*", bounds):
            continue
        low, high = bounds.split("..")
        steps = name == "NCCL_NTHREADS" and value % 32
        if value < int(low) or (high and value > int(high)) or steps:
            allowed = "64, 128, 256 or 512" if name == "NCCL_NTHREADS" else f"{low} to {high or 'any'}"
            message = f"{name}={value} is out of range: {allowed}"
            yield EnvironmentFinding("NCCL014", "warning", (name,), message, "choose a value in the range or remove it")


def sockets(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Threads times sockets of the TCP transport."""
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    threads, each = (scene.number(name) for name in names)
    if threads is not None and each is not None and threads * each > 64:
        message = f"{threads} threads with {each} sockets each are {threads * each} sockets: NCCL allows 64"
        yield EnvironmentFinding("NCCL017", "error", names, message, "4 threads with 4 sockets suit 100G networks")


SPECIAL = frozenset({"NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_DEBUG"})
"""Names whose default has a rule of its own."""


def at_default(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Values that NCCL would take anyway."""
    for name in sorted(scene.env.keys() & settings().keys()):
        if scene.is_default(name) and name not in SPECIAL:
            message = f"{name}={scene.text(name)} is NCCL's default"
            remedy = "remove it, unless it takes back what the image sets: written down, it outlives NCCL's better one"
            yield EnvironmentFinding("NCCL016", "note", (name,), message, remedy)


CHECKS = (quoted, unreadable, out_of_range, sockets, at_default)
