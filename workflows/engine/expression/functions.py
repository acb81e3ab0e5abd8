"""Functions an expression may call; every other name is refused."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from argosy.workflows.engine.expression.operators import as_whole, whole
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import from_json, json_text, plain_text


def _as_int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ExpressionError(f"asInt() not supported on {plain_text(value)}")
    if isinstance(value, str):
        if not re.fullmatch(r"[-+]?[0-9]+", value) or int(value) != whole(int(value)):
            raise ExpressionError(f"invalid operation: int({value})")
        return int(value)
    return as_whole(value)


_FLOAT = re.compile(r"[-+]?(?:inf(?:inity)?|nan|(?:[0-9_]+\.?[0-9_]*|\.[0-9_]+)(?:e[-+]?[0-9_]+)?)", re.IGNORECASE)


def _as_float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ExpressionError(f"asFloat() not supported on {plain_text(value)}")
    try:
        found = float(value) if not isinstance(value, str) or _FLOAT.fullmatch(value) else None
    except ValueError:
        found = None
    if found is None or (isinstance(value, str) and math.isinf(found) and value[-1].isdigit()):
        raise ExpressionError(f"invalid operation: float({value})")
    return found


def _length(value: Any) -> int:
    if not isinstance(value, str | list | Mapping):
        raise ExpressionError(f"invalid argument for len: {plain_text(value)}")
    return len(value)


def _from_json(text: str) -> Any:
    try:
        return from_json(text)
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


def _jsonpath(document: str, path: str) -> Any:
    value = _from_json(document)
    refuse_path(path)
    for match in _STEP.finditer(path):
        key: Any = match[1] or match[3] or int(match[2])
        try:
            if not isinstance(value, dict if isinstance(key, str) else list):
                raise TypeError
            value = value[key]
        except (KeyError, IndexError, TypeError):
            raise ExpressionError(f"jsonpath: {path} finds nothing") from None
    return value


def _split(text: str, by: str, most: int = -1) -> list[str]:
    if most == 0:
        raise ExpressionError("split: nothing is left")
    if by:
        return text.split(by, most - 1 if most > 0 else -1)
    return list(text) if most < 0 else [*text[: most - 1], *([text[most - 1 :]] if text[most - 1 :] else [])]


def _join(items: list[str], by: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise ExpressionError(f"join: {plain_text(items)} has more than texts")
    return by.join(items)


def _whole(value: Any) -> int:
    """As sprig makes whole numbers: cut, and 0 of what is none."""
    if isinstance(value, str):
        cut = re.fullmatch(r"([-+]?[0-9]*)(?:\.[0-9]*)?", value)
        text = cut[1] if cut and "." in value else value
        octal = re.fullmatch(r"([-+]?)0([0-7]+)", text)
        try:
            found = int(f"{octal[1]}{octal[2]}", 8) if octal else int(text, 0) if text == text.strip() else 0
        except ValueError:
            return 0
        return found if found == whole(found) else 0
    return as_whole(value) if isinstance(value, int | float) else 0


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True).decode(errors="replace")
    except ValueError:
        raise ExpressionError("sprig.b64dec: what is no base64 is not built into the local engine") from None


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "asInt": _as_int,
    "asFloat": _as_float,
    "int": _as_int,
    "float": _as_float,
    "string": plain_text,
    "toJson": json_text,
    "toJSON": lambda value: json_text(value, "\n"),
    "len": _length,
    "sprig.add": lambda *numbers: whole(sum(map(_whole, numbers))),
    "sprig.sub": lambda left, right: whole(_whole(left) - _whole(right)),
    "sprig.mul": lambda first, *numbers: whole(prod(map(_whole, (first, *numbers)))),
    "sprig.min": lambda *numbers: min(map(_whole, numbers)),
    "sprig.max": lambda *numbers: max(map(_whole, numbers)),
    "sprig.int": _whole,
}
_OF_TEXTS: dict[str, Callable[..., Any]] = {
    "fromJSON": _from_json,
    "jsonpath": _jsonpath,
    "lower": str.lower,
    "upper": str.upper,
    "trim": lambda text, marks=None: text.strip(marks),
    "split": _split,
    "join": _join,
    "replace": lambda text, old, new, most=-1: text.replace(old, new, most),
    "sprig.trim": str.strip,
    "sprig.upper": str.upper,
    "sprig.lower": str.lower,
    "sprig.b64enc": lambda text: base64.b64encode(text.encode()).decode(),
    "sprig.b64dec": _decoded,
}
"""Of texts, but for a list and a last number."""
NAMES = (*_FUNCTIONS, *_OF_TEXTS)


def call(name: str, values: list[Any]) -> Any:
    """What the function of this name makes of ``values``.

    Raises:
        ExpressionError: values that it does not take.
    """
    if name.startswith("sprig."):
        values = ["" if value is None else value for value in values]
    if name in _OF_TEXTS:
        for place, value in enumerate(values):
            wanted: type = list if (name, place) == ("join", 0) else int if (name, place) in _NUMBERS else str
            if not isinstance(value, wanted):
                raise ExpressionError(f"cannot use {plain_text(value)} as argument to call {name}")
    try:
        return (_FUNCTIONS.get(name) or _OF_TEXTS[name])(*values)
    except (TypeError, ValueError) as error:
        if isinstance(error, ExpressionError):
            raise
        raise ExpressionError(f"{name}: {error}") from None


_NUMBERS = {("split", 2), ("replace", 3)}
