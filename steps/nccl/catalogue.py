"""What NCCL reads: names by version (``names.txt``, from the wheels) and what a value may be (``settings.txt``).

``names.txt`` is written by ``scripts/nccl_names.py``; ``settings.txt`` by hand from NVIDIA's guide.
Source of both: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html and the libraries themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from argosy.steps.nccl.facts import Version, version

_FOLDER = Path(__file__).parent  # importlib.resources would be half of what this room costs to import


@dataclass(frozen=True)
class Variable:
    """One name: ``first`` and ``last`` are the oldest and newest release that holds it, () where none is known."""

    name: str
    first: Version
    last: Version
    drawer: str
    """``system``, ``debugging`` or ``undocumented``: where NVIDIA's guide files it."""


@dataclass(frozen=True)
class Setting:
    """What a value may be; ``default`` is None where it depends on the machine."""

    default: str | None
    kind: str


def _rows(name: str) -> Iterator[list[str]]:
    for line in (_FOLDER / name).read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line.split()


@cache
def variables() -> dict[str, Variable]:
    """Every NCCL_* name that a looked-at libnccl.so.2 reads."""
    return {
        name: Variable(name, () if first == "-" else version(first), () if last == "-" else version(last), drawer)
        for name, first, last, drawer in _rows("names.txt")
    }


@cache
def settings() -> dict[str, Setting]:
    """Names whose values are known."""
    return {name: Setting(None if default == "-" else default, kind) for name, default, kind in _rows("settings.txt")}


@cache
def torch_names() -> frozenset[str]:
    """Every TORCH_NCCL_*, TORCH_FR_*, TORCH_DIST* name that torch reads."""
    return frozenset(name for (name,) in _rows("torch_names.txt"))


@cache
def demanded_names(cloud: str) -> frozenset[str]:
    """Names of the Debugging drawer that this cloud's own documents demand (``demanded.txt``)."""
    return frozenset(name for owner, *names in _rows("demanded.txt") if owner == cloud for name in names)


@cache
def names_read() -> frozenset[str]:
    """Every name of any release, and those that NVIDIA's guide has ahead of the wheels (NCCL_PSK)."""
    return frozenset(variables()) | frozenset(settings()) | {"NCCL_PSK"}
