"""Argo's decoder: every field has a known name and a value of the right kind.

``fields.json`` is written by ``scripts/argo_fields.py`` from Argo's own schema, which says what its types mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

_QUANTITY = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+|[KMGTPE]i|[mkMGTPEnu]?)")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[-+]\d\d:\d\d)")
_UNKNOWN = ": unknown field"


@cache
def _schema() -> dict[str, Any]:
    path = files("argosy.workflows.engine").joinpath("validation", "fields.json")
    return dict(json.loads(path.read_text("utf-8")))


def argo_version() -> str:
    """The release of Argo whose rules these are."""
    return str(_schema()["version"])


def fields_of(type_name: str) -> Mapping[str, str]:
    """The fields of one of Argo's types; empty for a plain one."""
    return dict(_schema()["types"].get(type_name, {}))


def undecodable(manifest: Mapping[str, Any], kind: str, name: str) -> list[str]:
    """What Argo's decoder refuses in a manifest, by path; ``name`` stands before the paths ("" for none)."""
    found: list[str] = []
    _value(manifest, kind, name, found.append)
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_quantity(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, float) or (isinstance(value, str) and bool(_QUANTITY.fullmatch(value)))


_PLAIN: dict[str, tuple[Callable[[Any], bool], str]] = {
    "str": (lambda value: isinstance(value, str), "a text"),
    "bool": (lambda value: isinstance(value, bool), "true or false"),
    "int": (lambda value: _is_whole(value) or (isinstance(value, float) and value.is_integer()), "a whole number"),
    "number": (lambda value: isinstance(value, int | float) and not isinstance(value, bool), "a number"),
    "scalar": (lambda _: True, ""),
    "whole": (lambda value: _is_whole(value) or isinstance(value, str), "a whole number or a text"),
    "quantity": (_is_quantity, "a quantity such as 500m or 2Gi"),
    "time": (lambda value: isinstance(value, str) and bool(_TIME.fullmatch(value)), "a time"),
    "any": (lambda _: True, ""),
    "map": (lambda value: isinstance(value, dict), "a map"),
}


def _value(value: Any, kind: str, path: str, refuse: Callable[[str], None]) -> None:
    if value is None:
        return
    if kind in _PLAIN:
        accepts, what = _PLAIN[kind]
        if not accepts(value):
            hint = "; put it in quotes" if kind == "str" and isinstance(value, bool | int | float) else ""
            refuse(f"{path}: {value!r} is not {what}{hint}")
    elif kind.startswith("["):
        if not isinstance(value, list):
            refuse(f"{path}: {value!r} is not a list")
            return
        for index, item in enumerate(value):
            _value(item, kind[1:-1], f"{path}[{index}]", refuse)
    elif not isinstance(value, dict):
        refuse(f"{path}: {value!r} is not a map")
    elif kind.startswith("{"):
        for key, item in value.items():
            _value(item, kind[1:-1], f"{path}.{key}", refuse)
    else:
        _fields(value, kind, path, refuse)


def _fields(value: Mapping[str, Any], kind: str, path: str, refuse: Callable[[str], None]) -> None:
    known = fields_of(kind)
    for key, item in value.items():
        below = f"{path}.{key}" if path else key
        if key in known:
            # Argo decodes steps by hand: within one, it overlooks names that it does not know.
            _value(item, known[key], below, _overlooking(refuse) if kind == "WorkflowStep" else refuse)
        else:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            refuse(f"{below}{_UNKNOWN}{hint}")


def _overlooking(refuse: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: None if _UNKNOWN in text else refuse(text)
