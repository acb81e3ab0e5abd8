"""Patterns by family, the more specific family first: on one line the first match speaks."""

from argosy.steps.verdict.families import (
    cascade,
    cuda,
    data,
    kubernetes,
    memory,
    native,
    nccl,
    network,
    python,
    storage,
)
from argosy.steps.verdict.pattern import Pattern

PATTERNS: tuple[Pattern, ...] = (
    *kubernetes.PATTERNS,
    *nccl.PATTERNS,
    *cuda.PATTERNS,
    *memory.PATTERNS,
    *data.PATTERNS,
    *storage.PATTERNS,
    *network.PATTERNS,
    *native.PATTERNS,
    *cascade.PATTERNS,
    *python.PATTERNS,
)
