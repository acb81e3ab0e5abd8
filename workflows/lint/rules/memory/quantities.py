"""Numbers that Kubernetes does not take, or takes for something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.memory.requests import extended
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.quantity import quantity

_SMALLEST: Final = 4 << 20
"""Bytes below which a container runtime refuses to start a container."""


def _held(container: Container) -> Iterator[tuple[str, Node]]:
    for each in (container.limits, container.requests):
        yield from each.entries.items()


@rule("MEM011", Level.ERROR, on=Container)
def part_of_a_device(container: Container) -> Iterator[Problem]:
    """Devices are counted in whole numbers."""
    for name, value in _held(container):
        amount = quantity(value.text)
        if extended(name) and not name.startswith("hugepages-") and amount is not None and amount != int(amount):
            yield Problem(
                value,
                f"{name}: {value.text} is no whole number, and the API refuses a part of a device",
                "ask for 1, or for a slice that the device plugin offers as a resource of its own (MIG, time-slicing)",
            )


@rule("MEM012", Level.ERROR, on=Container)
def no_quantity(container: Container) -> Iterator[Problem]:
    """``64GB``, ``16g`` and ``8 Gi`` are no quantities."""
    for name, value in _held(container):
        if value.is_scalar and not value.open and quantity(value.text) is None:
            yield _refused(name, value)
    for mount in container.mounts.values():
        volume = container.pod.volumes.get(mount["name"].text)
        size = volume.at("emptyDir.sizeLimit") if volume is not None else mount["sizeLimit"]
        if size.is_scalar and not size.open and quantity(size.text) is None:
            yield _refused("sizeLimit", size)


def _refused(name: str, value: Node) -> Problem:
    return Problem(
        value,
        f"{name}: {value.text!r} is no quantity, and the API refuses it",
        "write a number with Ki, Mi, Gi or Ti (powers of 1024), or k, M, G, T (powers of 1000)",
    )


@rule("MEM013", Level.ERROR, on=Container)
def a_few_bytes(container: Container) -> Iterator[Problem]:
    """``memory: 512`` is 512 bytes, ``64m`` are 64 thousandths of a byte."""
    limit = container.limits["memory"]
    amount = quantity(limit.text)
    if amount is not None and 0 < amount < _SMALLEST:
        unit = "thousandths of a byte" if limit.text.endswith("m") else "bytes"
        yield Problem(
            limit,
            f"a memory limit of {limit.text} is {limit.text.rstrip('m')} {unit}: the container cannot start",
            "write the unit: 64Gi, 512Mi",
        )
