"""REND: how the ranks of a gang find each other."""

from __future__ import annotations

from argosy.workflows.lint.rules.rendezvous import (
    addresses,
    alone,
    counts,
    exposure,
    lengths,
    operators,
    ports,
    processes,
    ranks,
    services,
    sizes,
)

__all__ = [
    "addresses",
    "alone",
    "counts",
    "exposure",
    "lengths",
    "operators",
    "ports",
    "processes",
    "ranks",
    "services",
    "sizes",
]
