"""RAY: clusters of Ray, and the jobs that bring one with them."""

from __future__ import annotations

from argosy.workflows.lint.rules.ray import groups, versions

__all__ = ["groups", "versions"]
