"""The rules, a module or package per family; ``load`` imports them all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules


def load() -> None:
    """Import every family, which fills :data:`argosy.workflows.lint.rule.RULES`."""
    for family in iter_modules(__path__):
        import_module(f"{__name__}.{family.name}")
