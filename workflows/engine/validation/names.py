"""Names of templates, tasks, steps, parameters and artifacts: there, of the right letters, and each once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from argosy.workflows.engine.validation.refusal import STAND_IN, Refused

_FIELD = re.compile(r"[a-zA-Z0-9][-a-zA-Z0-9]*")
_VALUE = re.compile(r"[-a-zA-Z0-9_]+")
_LONGEST = 128


def check_names(holders: Sequence[Any], where: str, *, of_values: bool = False) -> None:
    """Every holder has a ``name`` of its own; ``of_values`` for parameters and artifacts, whose names may have ``_``.

    Raises:
        Refused: the first that breaks a rule.
    """
    seen: set[str] = set()
    for index, holder in enumerate(holders):
        name = str((holder or {}).get("name") or "")
        path = f"{where}[{index}].name"
        if not name:
            raise Refused(f"{path}: missing; a name is required")
        wrong = wrong_value_name(name) if of_values else wrong_field_name(name)
        if wrong:
            raise Refused(f"{path}: {name!r}: {wrong}")
        if name in seen:
            raise Refused(f"{path}: {name!r} stands twice; names are unique")
        seen.add(name)


def wrong_value_name(name: str) -> str:
    """Why no parameter or artifact may be called so; "" if one may."""
    return "" if _VALUE.fullmatch(name) else "use letters, digits, '-' and '_' only"


def wrong_field_name(name: str) -> str:
    """Why no template, step or task may be called so; "" if one may."""
    if len(name) > _LONGEST:
        return f"at most {_LONGEST} characters are allowed"
    if not _FIELD.fullmatch(name):
        return "use letters, digits and '-' only, and a letter or digit first"
    return ""


def wrong_step_name(name: str) -> str:
    """As :func:`wrong_field_name`, for a name some of whose parts are known only at run time."""
    return wrong_field_name(STAND_IN.sub("x", name))
