"""Numbers that a script gives: whole where they count something, whichever library made them."""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

from argosy.steps.contract.errors import InputError


def whole(name: str, value: Any, least: int | None = None, *, floats: bool = False) -> int:
    """``value`` as Python's own number; NumPy's and torch's are taken, and True; with ``floats`` 1.0 and 1e9, too.

    Raises:
        InputError: it is none, or less than ``least``.
    """
    if floats and _is_whole_float(value):
        value = int(value)
    try:
        number = int(operator.index(value))
    except (TypeError, ValueError) as error:  # ValueError: a tensor of several numbers
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
        raise InputError(f"{name} = {shown}: a whole number is needed") from error
    if least is not None and number < least:
        raise InputError(f"{name} = {number}: at least {least} is needed")
    return number


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, Real) and not hasattr(value, "__index__") and float(value).is_integer()
