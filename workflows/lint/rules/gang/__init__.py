"""GANG: all pods of a training or none: queues, pod groups, schedulers, and where the pods may go."""

from __future__ import annotations

from argosy.workflows.lint.rules.gang import counts, groups, keys, kinds, kueue, order, placement, schedulers

__all__ = ["counts", "groups", "keys", "kinds", "kueue", "order", "placement", "schedulers"]
