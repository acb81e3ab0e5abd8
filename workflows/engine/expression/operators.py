"""What the operators of expressions do with two values."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import plain_text


def is_number(value: Any) -> bool:
    """Whether a value is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def equal(left: Any, right: Any) -> bool:
    """``==``."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def ordered(symbol: str, left: Any, right: Any) -> bool:
    """``<`` and its like, of two numbers or two texts.

    Raises:
        ExpressionError: other values.
    """
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        raise ExpressionError(f"invalid operation: {plain_text(left)} {symbol} {plain_text(right)}")
    return bool({"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[symbol](left, right))


def _matches(text: Any, pattern: Any) -> bool:
    try:
        return re.search(str(pattern), str(text)) is not None
    except re.error as error:
        raise ExpressionError(f"error parsing regexp {pattern!r}: {error}") from None


def _within(item: Any, container: Any) -> bool:
    if container is None:
        return False
    if isinstance(container, Mapping):
        return item in container
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    raise ExpressionError(f"operator 'in' not defined on {plain_text(container)}")


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "in": _within,
    "matches": _matches,
    "contains": lambda text, part: str(part) in str(text),
    "startsWith": lambda text, part: str(text).startswith(str(part)),
    "endsWith": lambda text, part: str(text).endswith(str(part)),
}


def arithmetic(symbol: str, left: Any, right: Any) -> Any:
    """``+`` and its like.

    Raises:
        ExpressionError: the operator has no meaning for these values.
    """
    if symbol == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if not (is_number(left) and is_number(right)):
        raise ExpressionError(f"invalid operation: {plain_text(left)} {symbol} {plain_text(right)}")
    if symbol in "/%" and right == 0:
        raise ExpressionError("integer divide by zero")
    if symbol == "/":
        return float(left) / float(right)
    if symbol == "%":
        return left - right * int(left / right)
    if symbol in ("**", "^"):
        return float(left) ** float(right)
    return {"+": operator.add, "-": operator.sub, "*": operator.mul}[symbol](left, right)
