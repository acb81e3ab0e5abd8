"""Patterns by family, the more specific family first: on one line the first match speaks."""

from argosy.steps.verdict.families import (
    cascade,
    classes,
    cuda,
    data,
    hangs,
    kubernetes,
    launchers,
    memory,
    native,
    nccl,
    network,
    python,
    statuses,
    storage,
    tables,
)
from argosy.steps.verdict.pattern import Pattern

PATTERNS: tuple[Pattern, ...] = (
    *kubernetes.PATTERNS,
    *tables.PATTERNS,
    *nccl.PATTERNS,
    *cuda.PATTERNS,
    *memory.PATTERNS,
    *storage.PATTERNS,
    *data.PATTERNS,
    *network.PATTERNS,
    *hangs.PATTERNS,
    *native.PATTERNS,
    *statuses.PATTERNS,
    *cascade.PATTERNS,
    *classes.PATTERNS,
    *launchers.PATTERNS,
    *python.PATTERNS,
)
