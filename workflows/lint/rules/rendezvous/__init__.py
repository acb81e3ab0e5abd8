"""REND: how the ranks of a gang find each other."""

from __future__ import annotations

from argosy.workflows.lint.rules.rendezvous import services

__all__ = ["services"]
