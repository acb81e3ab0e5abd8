"""The kinds of values that an expression shows before it is evaluated: expr-lang refuses those that do not fit.

It knows what literals, functions and names of one word are. What lies deeper (``workflow.parameters.x``) is known only
as it is evaluated, where ``'1' == 1`` is false and no mistake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lark import Tree

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.expression.predicates import refuse_call

Kind = tuple[str, ...]
"""``("list", KIND...)`` is a list of that kind; ``()`` is any."""
ANY: Kind = ()
TEXT, INT, FLOAT, BOOL, NIL, MAP = ("string",), ("int",), ("float",), ("bool",), ("nil",), ("map",)
_LITERALS = {"text": TEXT, "true": BOOL, "false": BOOL, "nil": NIL}
_FUNCTIONS = {
    **dict.fromkeys(("string", "toJson", "toJSON", "lower", "upper", "trim", "replace", "join"), TEXT),
    **dict.fromkeys(("len", "int", "count", "findIndex"), INT), "float": FLOAT, "split": ("list", *TEXT),
    **dict.fromkeys(("all", "any", "none", "one"), BOOL),
}  # fmt: skip
_DECIDING = ("filter", "all", "any", "none", "one", "count", "find", "findIndex")
_NUMBERS = (INT, FLOAT, ANY)
_TEXTS = ("matches", "contains", "startsWith", "endsWith")


def check_kinds(tree: Any, names: Mapping[str, Any]) -> Kind:
    """The kind of an expression's value; every name that it uses has to be in ``names``.

    Raises:
        ExpressionError: what expr-lang does not compile.
    """
    return _Kinds(names).of(tree)


def _needs(kind: Kind, allowed: tuple[Kind, ...], what: str) -> None:
    if kind not in allowed:
        raise ExpressionError(f"invalid operation: {what} (mismatched type {kind[0] if kind else 'unknown'})")


def _mismatch(symbol: str, left: Kind, right: Kind) -> ExpressionError:
    shown = " and ".join(each[0] if each else "unknown" for each in (left, right))
    return ExpressionError(f"invalid operation: {symbol} (mismatched types {shown})")


def _comparable(left: Kind, right: Kind) -> bool:
    return ANY in (left, right) or NIL in (left, right) or left[0] == right[0] or {left, right} <= set(_NUMBERS)


def _common(left: Kind, right: Kind) -> Kind:
    if NIL in (left, right):
        return right if left == NIL else left
    return left if left == right else ANY


class _Kinds:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._items: list[Kind] = []

    def of(self, tree: Any) -> Kind:
        if not isinstance(tree, Tree):
            return ANY
        kind = str(tree.data)
        known: Callable[..., Kind] | None = getattr(self, f"_{kind}", None)
        if known is not None:
            return known(*tree.children)
        kinds = [self.of(each) for each in tree.children]
        if kind == "list":
            return ("list", *(kinds[0] if kinds and len(set(kinds)) == 1 else ANY))
        return _LITERALS.get(kind, MAP if kind == "map" else kinds[-1] if kind == "predicate" else ANY)

    def _number(self, literal: str) -> Kind:
        return FLOAT if not literal.startswith("0x") and any(mark in literal for mark in ".eE") else INT

    def _name(self, name: str) -> Kind:
        if name not in self._names:
            raise ExpressionError(f"unknown name {name}")
        value = self._names[name]
        return TEXT if isinstance(value, str) else MAP if isinstance(value, Mapping) else ANY

    def _pointer(self, name: str) -> Kind:
        return INT if name == "#index" else self._items[-1] if self._items else ANY

    def _of_item(self, base: Kind, by: Kind) -> Kind:
        if base[:1] == ("list",) and by in (INT, ANY):
            return base[1:]
        if base in (ANY, MAP) and (base == ANY or by in (TEXT, ANY)):
            return ANY
        raise ExpressionError(f"type {base[0]} has no such field")

    def _member(self, base: Any, _: str) -> Kind:
        return self._of_item(self.of(base), TEXT)

    def _pointer_member(self, _: str) -> Kind:
        return self._of_item(self._pointer("#"), TEXT)

    def _index(self, base: Any, key: Any) -> Kind:
        return self._of_item(self.of(base), self.of(key))

    _optional_member, _optional_index = _member, _index

    def _slice(self, base: Any, *ends: Any) -> Kind:
        for each in ends:
            if each is not None:
                _needs(self.of(each), (INT, ANY), "slice")
        return self.of(base)

    def _choose(self, condition: Any, then: Any, otherwise: Any) -> Kind:
        _needs(self.of(condition), (BOOL, ANY), "?")
        return _common(self.of(then), self.of(otherwise))

    def _coalesce(self, left: Any, right: Any) -> Kind:
        return _common(self.of(left), self.of(right))

    def _both(self, left: Any, right: Any) -> Kind:
        for each in (left, right):
            _needs(self.of(each), (BOOL, ANY), "&& and ||")
        return BOOL

    _either = _both

    def _negate(self, operand: Any) -> Kind:
        _needs(self.of(operand), (BOOL, ANY), "!")
        return BOOL

    def _signed(self, symbol: str, operand: Any) -> Kind:
        kind = self.of(operand)
        _needs(kind, _NUMBERS, str(symbol))
        return kind

    def _compare(self, left: Any, symbol: str, right: Any) -> Kind:
        first, second = self.of(left), self.of(right)
        if symbol == "in":
            fits = second in (ANY, MAP) and (second == ANY or first in (TEXT, ANY))
            fits = fits or (second[:1] == ("list",) and _comparable(first, second[1:]))
        elif symbol in ("==", "!="):
            fits = _comparable(first, second)
        else:
            fits = {first, second} <= {TEXT, ANY} or (symbol not in _TEXTS and {first, second} <= set(_NUMBERS))
        if not fits:
            raise _mismatch(str(symbol), first, second)
        return BOOL

    _compare_not = _compare

    def _arithmetic(self, left: Any, symbol: str, right: Any) -> Kind:
        kinds = first, second = self.of(left), self.of(right)
        allowed = {INT, ANY} if symbol == "%" else set(_NUMBERS)
        if not set(kinds) <= allowed and not (symbol == "+" and set(kinds) <= {TEXT, ANY}):
            raise _mismatch(str(symbol), first, second)
        if symbol in ("/", "**", "^"):
            return FLOAT
        return INT if symbol == "%" else first if first == second else ANY if ANY in kinds else FLOAT

    def _call(self, name: str, *arguments: Any) -> Kind:
        refuse_call(str(name), arguments)
        kinds = [self.of(arguments[0])] if arguments else []
        if name == "map" or name in _DECIDING:
            if kinds[0] != ANY and kinds[0][0] != "list":
                raise ExpressionError(f"builtin {name} takes only array (got {kinds[0][0]})")
            self._items.append(kinds[0][1:])
            body = self.of(arguments[1])
            self._items.pop()
            if name in _DECIDING:
                _needs(body, (BOOL, ANY), f"{name}: predicate should return boolean")
            return {"filter": kinds[0], "find": kinds[0][1:], "map": ("list", *body)}.get(name) or _FUNCTIONS.get(
                name, ANY
            )
        for each in arguments[1:]:
            self.of(each)
        return _FUNCTIONS.get(str(name), ANY)
