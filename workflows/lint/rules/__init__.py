"""The rules, a module or package per family; ``load`` imports them all."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages


def load() -> None:
    """Import every module of rules, which fills :data:`argosy.workflows.lint.rule.RULES`."""
    for module in walk_packages(__path__, f"{__name__}."):
        import_module(module.name)
