"""What is said about a wrong value: the field, the value, the rule, the remedy; never a traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic import BaseModel, ValidationError

from argosy.steps.contract.errors import InputError

_UNSET: Final = object()
_SHOWN = 80
_RULES: dict[str, str] = {
    "missing": "is required",
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "string_type": 'must be text in quotes ("...")',
    "literal_error": "must be {expected}",
    "tuple_type": "must be a list",
    "dict_type": "must be a table of key = value",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "too_short": "must have at least {min_length} entries",
}


class Refusal(ValueError):
    """Raised by a rule of a field or of a table; becomes an :class:`InputError` at construction.

    ``field`` is relative to the model that raises it; ``value`` is shown unless it is left out.
    """

    def __init__(self, rule: str, remedy: str, *, field: str = "", value: object = _UNSET) -> None:
        super().__init__(f"{rule}; {remedy}" if remedy else rule)
        self.field = field
        self.value = value


def as_input_error(error: ValidationError, model: type[BaseModel], source: str = "") -> InputError:
    """The first wrong value in full and the names of the others, on one line."""
    found = error.errors(include_url=False)
    text = _sentence(found[0], model)
    others = list(dict.fromkeys(name for name in (_field(each) for each in found[1:]) if name))
    more = f" (also wrong: {', '.join(others)})" if others and others != [_field(found[0])] else ""
    return InputError(f"{source}: {text}{more}" if source else f"{text}{more}")


def sentences(error: ValidationError, model: type[BaseModel]) -> list[tuple[str, str]]:
    """(field, sentence) of every wrong value."""
    return [(_field(each), _sentence(each, model)) for each in error.errors(include_url=False)]


def shown(value: object) -> str:
    """A value as it is quoted in a message: one line, cut when long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def quoted(value: object) -> str:
    """A value as text of TOML."""
    return f'"{str(value).lower() if isinstance(value, bool) else value}"'


def _field(error: Mapping[str, Any]) -> str:
    parts = [str(part) or '""' for part in error["loc"] if part != "[key]"]  # an empty key, as TOML writes it
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, Refusal) and cause.field:
        parts.append(cause.field)
    return ".".join(parts)


def _sentence(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    field, kind, context = _field(error), error["type"], error.get("ctx", {})
    cause = context.get("error")
    if kind == "extra_forbidden":
        return f"{field}: there is no such field; {_nearest(error['loc'], model)}"
    if isinstance(cause, Refusal):
        value = _leaf(error["input"]) if cause.value is _UNSET else cause.value
        head = field if value is _UNSET else f"{field} = {shown(value)}"
        return f"{head}: {cause}"
    empty = kind in ("too_short", "string_too_short") and error["input"] == ""
    # pydantic's own words come with the values in them, and a value may hold braces.
    known = _RULES[kind].format_map(_Given(context)) if kind in _RULES else error["msg"].removeprefix("Value error, ")
    rule = "must not be empty" if empty else known
    remedy = f"see argosy explain-config {field}"
    if kind == "missing":
        return f"{field}: {rule}; add it ({remedy})"
    value = _leaf(error["input"])
    if kind == "string_type" and isinstance(value, int | float):
        remedy = f"write {quoted(value)}"
    return f"{field}: {rule}; {remedy}" if value is _UNSET else f"{field} = {shown(value)}: {rule}; {remedy}"


def _leaf(value: object) -> object:
    """Tables are not quoted: they may hold values of ``env``."""
    return _UNSET if isinstance(value, Mapping | BaseModel) else value


class _Given(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return f"<{key}>"


def _nearest(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    owner: type[BaseModel] | None = model
    for part in loc[:-1]:
        if isinstance(part, str) and owner is not None and part in owner.model_fields:
            owner = table_model(owner.model_fields[part].annotation)
    names = list(owner.model_fields) if owner is not None else []
    return suggestion(str(loc[-1]), names)


def suggestion(wrong: str, names: Sequence[str], what: str = "fields") -> str:
    """``did you mean 'x'?``, or all names when none is near."""
    near = get_close_matches(wrong, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"the {what} are {', '.join(names)}"


def table_model(annotation: object) -> type[BaseModel] | None:
    """The model behind a field's type (also in ``X | None`` and ``tuple[X, ...]``), or None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in get_args(annotation):
        if (found := table_model(inner)) is not None:
            return found
    return None
