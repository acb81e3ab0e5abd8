"""Functions an expression may call; every other name is refused."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import float_text, json_text, plain_text


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ExpressionError(f"asInt() not supported on {plain_text(value)}")
    if isinstance(value, str):
        if not re.fullmatch(r"[-+]?[0-9]+", value):
            raise ExpressionError(f'asInt: parsing "{value}": invalid syntax')
        return int(value)
    return int(value)


def _as_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ExpressionError(f"asFloat() not supported on {plain_text(value)}")
    try:
        return float(value)
    except ValueError:
        raise ExpressionError(f'asFloat: parsing "{value}": invalid syntax') from None


def _string(value: Any) -> str:
    return float_text(value) if isinstance(value, float) else plain_text(value)


def _length(value: Any) -> int:
    if not isinstance(value, str | list | Mapping):
        raise ExpressionError(f"invalid argument for len: {plain_text(value)}")
    return len(value)


def _from_json(text: Any) -> Any:
    try:
        return json.loads(str(text))
    except ValueError as error:
        raise ExpressionError(f"fromJSON: {error}") from None


_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(-?[0-9]+)\]|\[['\"]([^'\"]+)['\"]\]")


_PATH = re.compile(rf"\$(?:{_STEP.pattern})*")


def refuse_path(path: str) -> None:
    """Raise ExpressionError unless ``path`` is made of names and numbers alone (no filter, no wildcard)."""
    if not _PATH.fullmatch(path):
        raise ExpressionError(
            f"jsonpath: only $.name, ['name'] and [number] are supported by the local engine, not {path!r}",
            unsupported=True,
        )


def _jsonpath(document: Any, path: Any) -> Any:
    value = _from_json(document)
    text = str(path)
    refuse_path(text)
    for match in _STEP.finditer(text):
        name = match[1] or match[3]
        try:
            value = value[name] if name is not None else value[int(match[2])]
        except (KeyError, IndexError, TypeError):
            raise ExpressionError(f"jsonpath: {text} finds nothing") from None
    return value


def _whole(value: Any) -> int:
    """As sprig makes whole numbers: cut, and 0 of what is none."""
    try:
        return int(value, 0) if isinstance(value, str) else int(value)
    except (TypeError, ValueError):
        return 0


def _decoded(text: Any) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode(errors="replace")
    except ValueError as error:
        return str(error)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "asInt": _as_int,
    "asFloat": _as_float,
    "int": _as_int,
    "float": _as_float,
    "string": _string,
    "toJson": json_text,
    "toJSON": json_text,
    "fromJSON": _from_json,
    "jsonpath": _jsonpath,
    "len": _length,
    "lower": lambda text: str(text).lower(),
    "upper": lambda text: str(text).upper(),
    "trim": lambda text: str(text).strip(),
    "split": lambda text, by: str(text).split(by),
    "join": lambda items, by="": by.join(str(item) for item in items),
    "replace": lambda text, old, new: str(text).replace(old, new),
    "sprig.add": lambda *numbers: sum(map(_whole, numbers)),
    "sprig.sub": lambda left, right: _whole(left) - _whole(right),
    "sprig.mul": lambda *numbers: prod(map(_whole, numbers)),
    "sprig.min": lambda *numbers: min(map(_whole, numbers)),
    "sprig.max": lambda *numbers: max(map(_whole, numbers)),
    "sprig.int": _whole,
    "sprig.trim": lambda text: str(text).strip(),
    "sprig.upper": lambda text: str(text).upper(),
    "sprig.lower": lambda text: str(text).lower(),
    "sprig.b64enc": lambda text: base64.b64encode(str(text).encode()).decode(),
    "sprig.b64dec": _decoded,
}
