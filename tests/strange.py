"""Fields that a model made from a published schema does not have."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel


def strange(value: Any, kind: Any, path: str) -> Iterator[str]:
    """Fields of ``value`` that the model (made from Argo's own schema, 4.0.5) does not have."""
    if get_origin(kind) in (Union, types.UnionType):
        kinds = [each for each in get_args(kind) if each is not type(None)]
        found = [list(strange(value, each, path)) for each in kinds]
        yield from min(found, key=len)
    elif isinstance(kind, type) and issubclass(kind, BaseModel) and isinstance(value, dict):
        fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
        for key, item in value.items():
            if key not in fields:
                yield f"{path}.{key}"
            else:
                yield from strange(item, fields[key], f"{path}.{key}")
    elif isinstance(value, list) and get_args(kind):
        for index, item in enumerate(value):
            yield from strange(item, get_args(kind)[0], f"{path}[{index}]")
