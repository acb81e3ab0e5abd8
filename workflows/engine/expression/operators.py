"""What the operators of expressions do with two values, as Go computes: whole numbers have 64 bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from argosy.workflows.engine.expression import patterns
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import plain_text


def is_number(value: Any) -> bool:
    """Whether a value is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: int) -> int:
    """What is left of a whole number in 64 bits."""
    return (value + 2**63) % 2**64 - 2**63


def as_whole(value: float) -> int:
    """A number without its fraction; what has no 64 bits is the least number there is, as on Go's machines."""
    return int(value) if -(2**63) <= value < 2**63 else -(2**63)


def equal(left: Any, right: Any) -> bool:
    """``==``."""
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return bool(left == right)


def refused(symbol: str, left: Any, right: Any) -> ExpressionError:
    """The error of an operator that has no meaning for two values."""
    return ExpressionError(f"invalid operation: {plain_text(left)} {symbol} {plain_text(right)}")


def ordered(symbol: str, left: Any, right: Any) -> bool:
    """``<`` and its like, of two numbers or two texts.

    Raises:
        ExpressionError: other values.
    """
    if not (is_number(left) and is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        raise refused(symbol, left, right)
    return bool({"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[symbol](left, right))


def _within(item: Any, container: Any) -> bool:
    if container is None:
        return False
    if isinstance(container, Mapping) and (item is None or isinstance(item, str)):
        return (item or "") in container  # nil is the key of no letters
    if isinstance(container, list):
        return any(equal(item, each) for each in container)
    raise ExpressionError(f"operator 'in' not defined on {plain_text(container)}")


def _of_texts(symbol: str, ask: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    def asked(left: Any, right: Any) -> bool:
        if left is None or right is None:
            return False
        if not (isinstance(left, str) and isinstance(right, str)):
            raise refused(symbol, left, right)
        return ask(left, right)

    return asked


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "in": _within,
    "matches": _of_texts("matches", lambda text, pattern: patterns.search(pattern, text)),
    "contains": _of_texts("contains", lambda text, part: part in text),
    "startsWith": _of_texts("startsWith", str.startswith),
    "endsWith": _of_texts("endsWith", str.endswith),
}


def arithmetic(symbol: str, left: Any, right: Any) -> Any:
    """``+`` and its like.

    Raises:
        ExpressionError: the operator has no meaning for these values.
    """
    if symbol == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if not (is_number(left) and is_number(right)) or (symbol == "%" and float in (type(left), type(right))):
        raise refused(symbol, left, right)
    if symbol == "%":
        if right == 0:
            raise ExpressionError("integer divide by zero")
        return (abs(left) % abs(right)) * (-1 if left < 0 else 1)
    if symbol == "/":
        return quotient(float(left), float(right))
    if symbol in ("**", "^"):
        return power(float(left), float(right))
    found = {"+": operator.add, "-": operator.sub, "*": operator.mul}[symbol](left, right)
    return whole(found) if isinstance(found, int) else found


def quotient(left: float, right: float) -> float:
    """``left / right``, also by nothing."""
    if right:
        return left / right
    return math.copysign(math.inf, left) * math.copysign(1, right) if left else math.nan


def power(left: float, right: float) -> float:
    """``left ** right``, also where it is too big or no number."""
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        return math.nan if left else math.inf
