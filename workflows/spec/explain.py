"""Text for ``argosy explain-config FIELD``."""

from __future__ import annotations

import json
import types
import typing
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from argosy.steps.contract.errors import InputError
from argosy.workflows.fabric.catalogue import known_profile, profile_names
from argosy.workflows.fabric.description import profile_list, profile_text
from argosy.workflows.spec.placeholders import placeholder_list
from argosy.workflows.spec.refusal import suggestion, table_model
from argosy.workflows.spec.run import TrainingRun

_WORDS = {Any: "anything", str: "text", int: "whole number", float: "number", bool: "true or false"}


def explain_field(path: str = "") -> str:
    """What a field is, its type, unit and default; for a table its fields; for ``""`` all there is.

    ``fabric`` lists the fabric profiles, ``fabric.NAME`` shows one with its sources.

    Raises:
        InputError: no such field, with the nearest name.
    """
    path = path.strip("[]")
    if not path:
        return _table("run.toml", TrainingRun, "")
    if path.partition(".")[0] == "fabric":
        return _fabric(path)
    model: type[BaseModel] = TrainingRun
    parts = [part for part in path.split(".") if not part.isdigit()] or [path]  # args.1 is of args
    for depth, part in enumerate(parts):
        if part not in model.model_fields:
            where = f" in [{'.'.join(parts[:depth])}]" if depth else ""
            raise InputError(f"{path}: there is no field {part!r}{where}; {suggestion(part, [*model.model_fields])}")
        info = model.model_fields[part]
        inner = table_model(info.annotation)
        if depth == len(parts) - 1 or get_origin(info.annotation) is dict:  # env.NAME is of env
            path = ".".join(parts[: depth + 1])
            text = _table(path, inner, info.description or "") if inner else _field(path, info)
            return "\n".join([text, *_besides(path)])
        if inner is None:
            raise InputError(f"{path}: {'.'.join(parts[: depth + 1])} has no fields of its own; ask for it alone")
        model = inner
    raise AssertionError("a path has at least one part")


def _besides(path: str) -> list[str]:
    if path == "gang.fabric":
        return [profile_list()]
    if path in ("args", "env", "evaluation.args"):
        return [placeholder_list(evaluation=path == "evaluation.args")]
    return []


def _fabric(path: str) -> str:
    _, _, name = path.partition(".")
    if not name:
        return profile_list()
    if name not in profile_names():
        raise InputError(f"{path}: there is no such fabric; {suggestion(name, [*profile_names()], 'profiles')}")
    return profile_text(known_profile(name))


def field_paths(model: type[BaseModel] = TrainingRun, prefix: str = "") -> list[str]:
    """Dotted paths of every field that is not a table, in the order of the documentation."""
    found: list[str] = []
    for name, info in model.model_fields.items():
        inner = table_model(info.annotation)
        found += field_paths(inner, f"{prefix}{name}.") if inner else [f"{prefix}{name}"]
    return found


def _field(path: str, info: FieldInfo) -> str:
    return f"{path}\n  {info.description}\n  type: {type_words(info)}\n  default: {default_words(info)}"


def _table(path: str, model: type[BaseModel], text: str) -> str:
    lines = [f"{path}: {text}".rstrip(": ") if text else path]
    lines.append(f"  {(model.__doc__ or '').strip().splitlines()[0].replace('``', '')}")
    width = max(map(len, model.model_fields))
    for name, info in model.model_fields.items():
        kind = f"{type_words(info)}, default {default_words(info)}"
        if table_model(info.annotation):
            kind = "list of tables" if get_origin(info.annotation) is tuple else "table"
        lines.append(f"  {name:<{width}}  {kind}: {info.description}")
    return "\n".join(lines)


def default_words(info: FieldInfo) -> str:
    """The default as a person writes it."""
    if info.is_required():
        return "none: required"
    value: Any = info.get_default()
    if value is None:
        return "unset"
    if isinstance(value, BaseModel):
        return "its fields' defaults"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return json.dumps(value)
    return f'"{value}"' if isinstance(value, str) else str(value)


def type_words(info: FieldInfo) -> str:
    """``whole number >= 1``."""
    limits = [
        f"{sign} {bound:.10g}"
        for entry in info.metadata
        for name, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))
        if (bound := getattr(entry, name, None)) is not None
    ]
    return " ".join([_words(info.annotation), ", ".join(limits)]).strip()


def _words(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _words(inner[0])
    if origin is Literal:
        return " | ".join(f'"{value}"' for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_words(each) for each in inner if each is not types.NoneType)
    if origin is tuple:
        return f"list of {_words(inner[0])}"
    if origin is dict:
        return f"table of {_words(inner[0])} = {_words(inner[1])}"
    return _WORDS.get(annotation, typing.cast(str, getattr(annotation, "__name__", str(annotation))))
