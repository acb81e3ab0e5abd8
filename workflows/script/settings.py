"""Settings that a script reads from a YAML file beside it, as Hydra does."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import yaml

from argosy.workflows.script.source import Function, Source


def settings_of(source: Source, folder: Path) -> dict[str, str]:
    """Leaf name -> value of the file that ``@hydra.main(config_path=..., config_name=...)`` names; {} for none."""
    for node in source.nodes:
        for each in node.decorator_list if isinstance(node, Function) else ():
            named = {word.arg: word.value.value for word in getattr(each, "keywords", []) if _constant(word.value)}
            if "config_name" in named and ast.unparse(each).startswith("hydra.main"):
                path = folder / str(named.get("config_path") or ".") / str(named["config_name"])
                return _leaves(path if path.suffix in (".yaml", ".yml") else path.with_name(f"{path.name}.yaml"))
    return {}


def _constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _leaves(path: Path) -> dict[str, str]:
    try:
        waiting: list[Any] = [yaml.safe_load(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return {}
    found: dict[str, str] = {}
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            for key, value in each.items():
                if isinstance(value, str | int) and not isinstance(value, bool):
                    found.setdefault(str(key), str(value))
                else:
                    waiting.append(value)
    return found
