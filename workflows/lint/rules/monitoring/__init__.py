"""MON: what Prometheus is told to read, and does not find."""

from __future__ import annotations

from argosy.workflows.lint.rules.monitoring import monitors, pods, ports, scraping

__all__ = ["monitors", "pods", "ports", "scraping"]
