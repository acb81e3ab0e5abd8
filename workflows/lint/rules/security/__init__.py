"""SEC: what a pod may do to its node, secrets, images, and rights in the cluster."""

from __future__ import annotations

from argosy.workflows.lint.rules.security import capabilities, exposure, host, images, installs, rights, secrets, user

__all__ = ["capabilities", "exposure", "host", "images", "installs", "rights", "secrets", "user"]
