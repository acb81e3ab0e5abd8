"""Numbers that a script gives: whole where they count something, whichever library made them."""

from __future__ import annotations

import operator
from typing import Any

from argosy.steps.contract.errors import InputError


def whole(name: str, value: Any, least: int | None = None) -> int:
    """``value`` as Python's own number; NumPy's and torch's are taken, and True.

    Raises:
        InputError: it is none, or less than ``least``.
    """
    try:
        number = int(operator.index(value))
    except (TypeError, ValueError) as error:  # ValueError: a tensor of several numbers
        shown = " ".join(repr(value).split())
        shown = shown if len(shown) <= 80 else f"{shown[:80]}…"
        raise InputError(f"{name} = {shown}: a whole number is needed") from error
    if least is not None and number < least:
        raise InputError(f"{name} = {number}: at least {least} is needed")
    return number
