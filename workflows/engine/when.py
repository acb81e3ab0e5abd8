"""``when`` of a step or task, after substitution: govaluate's language with every name taken as a text."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from argosy.workflows.engine.expression import patterns
from argosy.workflows.engine.expression.operators import as_whole, power
from argosy.workflows.engine.expression.parser import ExpressionError, parse_with
from argosy.workflows.engine.gotext import plain_text
from argosy.workflows.engine.times import as_time

_SIMPLE = re.compile(r"\s*([A-Za-z][A-Za-z0-9_]*)\s*(==|!=)\s*([A-Za-z][A-Za-z0-9_]*)\s*")
_RESERVED = frozenset({"true", "false", "in", "IN"})


def should_execute(when: str) -> bool:
    """Whether a step with this condition runs; an empty condition always holds.

    Raises:
        ExpressionError: with the controller's wording: not an expression, or its value is no boolean.
    """
    if not when:
        return True
    simple = _SIMPLE.fullmatch(when)
    if simple and simple[1] not in _RESERVED and simple[3] not in _RESERVED:
        return (simple[1] == simple[3]) is (simple[2] == "==")
    try:
        tree = _parse(when)
    except ExpressionError as error:
        hint = ' (hint: try wrapping the affected expression in quotes ("))'
        raise ExpressionError(f"Invalid 'when' expression '{when}': {error}{hint}") from None
    try:
        result = _value(tree)
    except (ExpressionError, RecursionError) as error:
        raise ExpressionError(f"Failed to evaluate 'when' expresion '{when}': {error}") from None
    if not isinstance(result, bool):
        raise ExpressionError(f"Expected boolean evaluation for '{when}'. Got {plain_text(result)}")
    return result


@lru_cache(maxsize=512)
def _parse(text: str) -> Any:
    return parse_with("when", text)


def _is_number(value: Any) -> bool:
    return isinstance(value, float)


def _number(value: Any, symbol: str) -> float:
    if not _is_number(value):
        raise ExpressionError(
            f"Value '{plain_text(value)}' cannot be used with the modifier '{symbol}', it is not a number"
        )
    return float(value)


def _boolean(value: Any, symbol: str) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(
            f"Value '{plain_text(value)}' cannot be used with the logical operator '{symbol}', it is not a bool"
        )
    return value


def _equal(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


def _no_number(value: Any, symbol: str) -> ExpressionError:
    return ExpressionError(
        f"Value '{plain_text(value)}' cannot be used with the comparator '{symbol}', it is not a number"
    )


def _compare(symbol: str, left: Any, right: Any) -> bool:
    if symbol in ("==", "!="):
        return _equal(left, right) is (symbol == "==")
    if symbol in ("=~", "!~"):
        for each in (left, right):
            if not isinstance(each, str):
                raise _no_number(each, symbol)
        return patterns.search(right, left) is (symbol == "=~")
    if not (_is_number(left) and _is_number(right)) and not (isinstance(left, str) and isinstance(right, str)):
        raise _no_number(left, symbol)
    return bool({"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[symbol](left, right))


def _shift_left(value: int, places: int) -> int:
    return (value << places) & (2**64 - 1) if 0 <= places < 64 else 0


def _shift_right(value: int, places: int) -> int:
    return (value & (2**64 - 1)) >> places if 0 <= places < 64 else 0


_BITS: dict[str, Callable[[int, int], int]] = {
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": _shift_left, ">>": _shift_right,
}  # fmt: skip
"""On 64 bits, as govaluate does it: shifts without a sign."""


def _arithmetic(symbol: str, left: Any, right: Any) -> Any:
    if symbol == "+" and (isinstance(left, str) or isinstance(right, str)):
        return plain_text(left) + plain_text(right)
    first, second = _number(left, symbol), _number(right, symbol)
    if symbol in ("/", "%") and second == 0:
        return float("inf")
    if symbol == "%":
        return first - second * int(first / second)
    if symbol in _BITS:
        return float(_BITS[symbol](as_whole(first), as_whole(second)))
    found = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": power}
    return float(found[symbol](first, second))


def _literal(kind: str, text: str) -> Any:
    if kind == "number":
        try:
            return float(int(text, 16)) if text.startswith("0x") else float(text)
        except ValueError:
            raise ExpressionError(f"Unable to parse numeric value '{text}' to float64") from None
    if kind == "name":
        return text
    plain = re.sub(r"\\(.)", r"\1", text[1:-1])
    moment = as_time(plain) if re.match(r"[0-9A-Z]", plain) else None
    return plain if moment is None else moment


def _value(tree: Any) -> Any:
    kind = str(tree.data)
    if kind in ("true", "false"):
        return kind == "true"
    if kind in ("number", "text", "name"):
        return _literal(kind, str(tree.children[0]))
    if kind == "choose":
        condition = _boolean(_value(tree.children[0]), "?")
        return _value(tree.children[1 if condition else 2])
    first = _value(tree.children[0])
    if kind == "coalesce":
        return first
    if kind == "negate":
        return not _boolean(first, "!")
    if kind == "flip":
        return float(~as_whole(_number(first, "~")))
    if kind == "minus":
        return -_number(first, "-")
    if kind in ("either", "both"):
        symbol = "||" if kind == "either" else "&&"
        if _boolean(first, symbol) is (kind == "either"):
            return kind == "either"
        return _boolean(_value(tree.children[1]), symbol)
    if kind == "within":
        if len(tree.children[2].children) == 1:  # one in brackets is no list to govaluate
            raise _no_number(_value(tree.children[2].children[0]), "in")
        return any(_equal(first, _value(each)) for each in tree.children[2].children)
    second = _value(tree.children[2])
    return (_compare if kind == "compare" else _arithmetic)(str(tree.children[1]), first, second)
