"""Which torch and NCCL an image's tag promises."""

from __future__ import annotations

import re

from argosy.steps.nccl.facts import Span, Version, version

PINNED: tuple[tuple[str, str], ...] = (
    ("2.0", "2.14.3"),
    ("2.1", "2.18.1"),
    ("2.2", "2.19.3"),
    ("2.3", "2.20.5"),
    ("2.4", "2.20.5"),
    ("2.5", "2.21.5"),
    ("2.6", "2.21.5"),
    ("2.7", "2.26.2"),
    ("2.8", "2.27.3"),
    ("2.9", "2.27.5"),
    ("2.10", "2.27.5"),
    ("2.11", "2.28.9"),
    ("2.12", "2.29.7"),
    ("2.13", "2.29.7"),
    ("2.14", "2.30.7"),
    ("2.15", "2.30.7"),
)
"""torch's minor version -> the nvidia-nccl-cu* that its wheel's METADATA requires (resolved in November 2026)."""


def nccl_of_torch(torch: Version) -> Span:
    """The NCCL that torch's own wheel pins; unknown for a version that is not in the table."""
    for minor, nccl in PINNED:
        if torch[:2] == version(minor):
            return Span.exactly(nccl)
    return Span()


def versions_of(image: str | None) -> tuple[Span, Span]:
    """(torch, NCCL) of an image reference; what its tag does not say is unknown.

    ``pytorch/pytorch:2.4.1-cuda12.4-cudnn9-runtime`` is torch's own image, with the NCCL of its wheel; other tags
    count only where they name the library (``…-nccl2.31.2-1``, ``…-torch2.6.0``).
    """
    name, _, tag = (image or "").split("@")[0].rpartition(":")
    nccl = re.search(r"nccl[-_]?v?(2\.\d+\.\d+)", tag)
    torch = re.search(r"(?:py)?torch[-_]?v?(2\.\d+(?:\.\d+)?)", tag)
    official = re.match(r"(2\.\d+\.\d+)-cuda", tag) if name.endswith("pytorch/pytorch") else None
    said = official or torch
    number = version(said[1]) if said else ()
    found = Span(number, number) if number else Span()
    if nccl:
        return found, Span.exactly(nccl[1])
    return found, nccl_of_torch(number) if official else Span()
