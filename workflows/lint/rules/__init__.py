"""The rules, a folder or file per family; ``load`` imports them all."""

from __future__ import annotations

from importlib import import_module
from typing import Final

FAMILIES: Final = ("yaml", "variables", "rendezvous")
"""Modules below this package that hold rules."""


def load() -> None:
    """Import every family, which fills :data:`argosy.workflows.lint.rule.RULES`."""
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")
