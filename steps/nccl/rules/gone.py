"""NCCL001-NCCL005: names that NCCL never read, reads no more, or reads under another name."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.steps.nccl.finding import EnvironmentFinding, Fix, Remove, Rename
from argosy.steps.nccl.gone import DEPRECATED, MISNAMED, REMOVED
from argosy.steps.nccl.scene import Scene


def never_existed(scene: Scene) -> Iterator[EnvironmentFinding]:
    """NCCL_TIMEOUT, the belief of many guides."""
    if scene.has("NCCL_TIMEOUT"):
        yield EnvironmentFinding(
            "NCCL001",
            "error",
            ("NCCL_TIMEOUT",),
            "no NCCL and no torch ever read NCCL_TIMEOUT: the collective timeout stays at torch's 10 minutes",
            "remove it and pass dist.init_process_group(timeout=timedelta(seconds=…)) in the training code",
            Remove("NCCL_TIMEOUT"),
        )


def removed(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Variables of old releases."""
    for name, (since, instead) in REMOVED.items():
        if scene.has(name) and not scene.facts.nccl.older_than(since):
            also = ""
            if name == "NCCL_TREE_THRESHOLD" and "tree" in scene.text("NCCL_ALGO").lower():
                also = "; where it was read, 0 meant never tree, while NCCL_ALGO here asks for Tree"
            yield EnvironmentFinding(
                "NCCL002",
                "error",
                (name, "NCCL_ALGO") if also else (name,),
                f"NCCL {since} and newer do not read {name}: it does nothing{also}",
                f"remove it: {instead}",
                Remove(name),
            )


def misnamed(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Names that were renamed long ago, or that guides invented."""
    for name, right in MISNAMED.items():
        if not scene.has(name):
            continue
        idle = name == "NCCL_IB_CUDA_SUPPORT" or scene.text(name).upper() in ("SYS", "PHB", "3", "4", "5")
        fix: Fix = Remove(name) if idle or scene.has(right) else Rename(name, right)
        yield EnvironmentFinding(
            "NCCL003",
            "error",
            (name, right) if scene.has(right) else (name,),
            f"NCCL does not read {name}; the setting is called {right}",
            f"remove it; {right} is only needed where NCCL's own choice is wrong"
            if isinstance(fix, Remove)
            else f"rename it to {right}, or remove it and let NCCL choose",
            fix,
        )


def _deprecated_fix(scene: Scene, name: str, new: str) -> Fix:
    value = scene.number(name)
    below_default = name.startswith("NCCL_MIN") and value is not None and value <= 16
    return Remove(name) if below_default or scene.has(new) else Rename(name, new)


def deprecated(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Old names that are still read."""
    if not scene.facts.nccl.older_than("2.17"):
        for name, new in DEPRECATED.items():
            if not scene.has(name) or name in scene.demanded():
                continue
            fix = _deprecated_fix(scene, name, new)
            why = " and asks for fewer channels than NCCL takes by itself" if isinstance(fix, Remove) else ""
            if scene.has(new):
                why = f", and {new} is set as well"
            remedy = "remove it" if isinstance(fix, Remove) else f"rename it to {new}"
            message = f"{name} is deprecated since NCCL 2.17{why}"
            yield EnvironmentFinding("NCCL004", "warning", (name,), message, remedy, fix)
    if scene.text("NCCL_LAUNCH_MODE").upper() == "GROUP":
        message = "NCCL_LAUNCH_MODE=GROUP is deprecated since NCCL 2.9 and matters only to processes with several GPUs"
        fix = Remove("NCCL_LAUNCH_MODE")
        yield EnvironmentFinding("NCCL004", "warning", ("NCCL_LAUNCH_MODE",), message, "remove it", fix)
    if (
        scene.has("NCCL_CHECK_POINTERS")
        and "NCCL_CHECK_POINTERS" not in scene.demanded()
        and not scene.facts.nccl.older_than("2.29.7")
    ):
        message = "NCCL_CHECK_POINTERS is deprecated since NCCL 2.29.7 and costs latency in every collective"
        remedy = "remove it; to look for a bug set NCCL_CHECK_MODE=DEBUG_LOCAL for one run"
        yield EnvironmentFinding("NCCL004", "warning", ("NCCL_CHECK_POINTERS",), message, remedy)


PAIRS = (
    ("NCCL_MIN_NRINGS", "NCCL_MIN_NCHANNELS", "is ignored"),
    ("NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS", "is ignored"),
    ("NCCL_IB_PKEY", "NCCL_IB_PKEY_VALUE", "is ignored"),
)


def both_names(scene: Scene) -> Iterator[EnvironmentFinding]:
    """Two spellings of one setting."""
    for old, new, effect in PAIRS:
        if scene.has(old) and scene.has(new):
            message = f"{old} {effect} because {new} is set too"
            yield EnvironmentFinding("NCCL005", "warning", (old, new), message, f"keep {new} alone", Remove(old))


CHECKS = (never_existed, removed, misnamed, deprecated, both_names)
