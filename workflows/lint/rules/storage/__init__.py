"""STORE: volumes, claims, and where checkpoints go."""

from __future__ import annotations

from argosy.workflows.lint.rules.storage import claims, downloads, mounts, outputs, references, volumes

__all__ = ["claims", "downloads", "mounts", "outputs", "references", "volumes"]
