"""The fields of Kubernetes' and the operators' kinds and their types, from the projects' own OpenAPI.

``fields.json`` is written by ``scripts/fields.py``. A type is ``str``, ``int``, ``bool``, ``quantity``, ``any``,
``=A|B`` (one of these words), a name of the table, ``[T]`` (a list) or ``{T}`` (a mapping of names to T); ``T!``
must be there. A table with the key ``...`` is not complete (nothing unknown is reported), one with ``~`` nearly (only
near misses are).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

Fields = Mapping[str, str]


@cache
def _table() -> dict[str, dict[str, dict[str, str]]]:
    """The file: ``kinds`` and ``types``."""
    text = files("argosy.workflows.lint").joinpath("schema", "fields.json").read_text("utf-8")
    return dict(json.loads(text))


def type_of_kind(api_version: str, kind: str) -> str:
    """The name of a kind's type; ``""`` for a kind whose fields are not known."""
    return str(_table()["kinds"].get(f"{api_version} {kind}", ""))


def fields_of(type_name: str) -> Fields:
    """The fields of a type; empty for a plain one (``str``, ``any``, a list)."""
    return _table()["types"].get(type_name, {})


def inner(type_name: str) -> str:
    """What a list or a mapping holds, a type without its ``!``."""
    name = type_name.rstrip("!")
    return name[1:-1] if name[:1] in ("[", "{") else name


@cache
def path_to(type_name: str, field: str, depth: int) -> str:
    """The shortest dotted path from a type to a field below it (``template.spec.volumes``); ``""`` when none is near.

    Args:
        depth: types to go through at most.
    """
    level = [("", type_name)]
    for _ in range(depth):
        following = []
        for path, name in level:
            for key, below in fields_of(name).items():
                if key in ("status", "metadata", "templateDefaults") or not fields_of(inner(below)):
                    continue
                to = f"{path}{key}{'[]' if below.startswith('[') else ''}."
                if field in fields_of(inner(below)):
                    return to + field
                following.append((to, inner(below)))
        level = following
    return ""
