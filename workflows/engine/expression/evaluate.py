"""Value of an expression tree in an environment of nested maps. Undefined members of a map are nil, as in Go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lark import Token, Tree

from argosy.workflows.engine.expression import patterns
from argosy.workflows.engine.expression.functions import call, refuse_path
from argosy.workflows.engine.expression.kinds import check_kinds
from argosy.workflows.engine.expression.literals import number_of, unquote
from argosy.workflows.engine.expression.operators import COMPARE, arithmetic, is_number, ordered
from argosy.workflows.engine.expression.parser import ExpressionError, parse
from argosy.workflows.engine.expression.predicates import PREDICATES, refuse_call
from argosy.workflows.engine.gotext import plain_text

_LONGEST_NAME = 2000


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of ``text``: nil is None, numbers are int or float.

    Raises:
        ExpressionError: syntax, an unsupported function, or operands of the wrong kind.
    """
    return _value(_compiled(text, names), names)


def evaluate_boolean(text: str, names: Mapping[str, Any]) -> bool:
    """Like :func:`evaluate`; anything but true or false is an error.

    Raises:
        ExpressionError: see :func:`evaluate`, or the value is no boolean.
    """
    tree = _compiled(text, names)
    try:
        result = _value(tree, names)
    except ExpressionError as error:
        raise ExpressionError(f"unable to evaluate expression '{text}': {error}") from None
    if not isinstance(result, bool):
        raise ExpressionError(f"unable to cast expression result '{plain_text(result)}' to bool")
    return result


def _compiled(text: str, names: Mapping[str, Any]) -> Any:
    tree = parse(text)
    with _not_too_deep():
        check_kinds(tree, names)
    return tree


def _value(tree: Any, names: Mapping[str, Any]) -> Any:
    with _not_too_deep():
        return _Evaluator(names).value(tree)


@contextmanager
def _not_too_deep() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ExpressionError("the expression is nested too deep") from None


def check(text: str) -> None:
    """Raise ExpressionError if ``text`` cannot be parsed or has something that is not supported."""
    for tree in parse(text).iter_subtrees():
        if tree.data == "name" and tree.children[0] == "$env":
            raise ExpressionError("$env: not supported by the local engine")
        if tree.data == "text":
            unquote(str(tree.children[0]))
        elif tree.data.startswith("compare") and tree.children[1] == "matches" and tree.children[2].data == "text":
            patterns.search(unquote(str(tree.children[2].children[0])), "")
        elif tree.data == "call":
            refuse_call(str(tree.children[0]), tree.children[1:])
            path = tree.children[2] if len(tree.children) > 2 else None
            if tree.children[0] == "jsonpath" and isinstance(path, Tree) and path.data == "text":
                refuse_path(unquote(str(path.children[0])))


def identifiers(text: str) -> list[str]:
    """Dotted names that must be there for the expression to mean something (``tasks``, ``tasks.a`` ...).

    What ``??`` or ``?.`` guards need not be there.

    Raises:
        ExpressionError: see :func:`evaluate`.
    """
    guarded: set[int] = set()
    trees: list[Tree[Any]] = []
    waiting = [(parse(text), False)]
    while waiting:
        tree, inside = waiting.pop()
        trees.append(tree)
        if inside and tree.data != "name":
            guarded.add(id(tree))
        below = [each for each in tree.children if isinstance(each, Tree)]
        waiting += [(each, inside or (tree.data == "coalesce" and each is tree.children[0])) for each in below]
        if tree.data in ("optional_member", "optional_index") and below and below[0].data != "name":
            guarded.add(id(below[0]))
    paths: dict[int, str] = {}
    for tree in reversed(trees):
        paths[id(tree)] = _path(tree, paths)
    return sorted({paths[id(tree)] for tree in trees if id(tree) not in guarded} - {""})


def _path(tree: Tree[Any], paths: Mapping[int, str]) -> str:
    """The dotted name that a tree is, by those of what is below it; none that is longer than any there can be."""
    if tree.data == "name":
        return str(tree.children[0])
    base = paths.get(id(tree.children[0]), "") if tree.children else ""
    if not base or len(base) > _LONGEST_NAME:
        return ""
    if tree.data == "member":
        return f"{base}.{tree.children[1]}"
    if tree.data == "index" and isinstance(tree.children[1], Tree) and tree.children[1].data == "text":
        return f"{base}.{unquote(str(tree.children[1].children[0]))}"
    return ""


class _Evaluator:
    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names
        self._items: list[tuple[Any, int]] = []
        """Of the predicates that are being evaluated, the innermost last: the item and its number."""

    def value(self, tree: Any) -> Any:
        if tree is None:
            return None
        return getattr(self, f"_{tree.data}")(*tree.children)

    def _boolean(self, tree: Any) -> bool:
        result = self.value(tree)
        if not isinstance(result, bool):
            raise ExpressionError(f"interface conversion: {plain_text(result)} is not a bool")
        return result

    def _choose(self, condition: Any, then: Any, otherwise: Any) -> Any:
        return self.value(then if self._boolean(condition) else otherwise)

    def _either(self, left: Any, right: Any) -> bool:
        return self._boolean(left) or self._boolean(right)

    def _both(self, left: Any, right: Any) -> bool:
        return self._boolean(left) and self._boolean(right)

    def _compare(self, left: Any, symbol: Token, right: Any) -> bool:
        first, second = self.value(left), self.value(right)
        found = COMPARE.get(str(symbol))
        return found(first, second) if found else ordered(str(symbol), first, second)

    def _compare_not(self, left: Any, symbol: Token, right: Any) -> bool:
        return not self._compare(left, symbol, right)

    def _arithmetic(self, left: Any, symbol: Token, right: Any) -> Any:
        return arithmetic(str(symbol), self.value(left), self.value(right))

    def _signed(self, symbol: Token, operand: Any) -> Any:
        found = self.value(operand)
        return -found if symbol == "-" and isinstance(found, float) else arithmetic(str(symbol), 0, found)

    def _negate(self, operand: Any) -> bool:
        return not self._boolean(operand)

    def _coalesce(self, left: Any, right: Any) -> Any:
        found = self.value(left)
        return self.value(right) if found is None else found

    def _fetch(self, base: Any, key: Any) -> Any:
        if isinstance(base, Mapping) and isinstance(key, str):
            return base.get(key)
        places = base.encode() if isinstance(base, str) else base
        if isinstance(places, list | bytes) and is_number(key) and -len(places) <= int(key) < len(places):
            return places[int(key)]
        raise ExpressionError(f"cannot fetch {plain_text(key)} from {plain_text(base)}")

    def _member(self, base: Any, key: Token) -> Any:
        return self._fetch(self.value(base), str(key))

    def _optional_member(self, base: Any, key: Token) -> Any:
        found = self.value(base)
        return None if found is None else self._fetch(found, str(key))

    def _index(self, base: Any, key: Any) -> Any:
        return self._fetch(self.value(base), self.value(key))

    def _optional_index(self, base: Any, key: Any) -> Any:
        found = self.value(base)
        return None if found is None else self._fetch(found, self.value(key))

    def _slice(self, base: Any, first: Any, last: Any) -> Any:
        found = self.value(base)
        if not isinstance(found, list | str):
            raise ExpressionError(f"cannot slice {plain_text(found)}")
        ends = [self.value(each) for each in (first, last)]
        part = slice(*(int(each) if is_number(each) else None for each in ends))
        return found.encode()[part].decode(errors="replace") if isinstance(found, str) else found[part]

    def _number(self, token: Token) -> int | float:
        return number_of(str(token))

    def _text(self, token: Token) -> str:
        return unquote(str(token))

    def _true(self) -> bool:
        return True

    def _false(self) -> bool:
        return False

    def _nil(self) -> None:
        return None

    def _name(self, token: Token) -> Any:
        return self._names[token]

    def _pointer(self, token: Token) -> Any:
        if not self._items:
            raise ExpressionError("cannot use pointer accessor outside predicate")
        return self._items[-1][token == "#index"]

    def _pointer_member(self, key: Token) -> Any:
        return self._fetch(self._pointer(Token("POINTER", "#")), str(key))

    def _predicate(self, body: Any) -> Any:
        return self.value(body)

    def _for_each(self, body: Any, items: Any) -> Iterator[Any]:
        """What ``body`` is for each of ``items``, one after the other."""
        for index, item in enumerate(items):
            self._items.append((item, index))
            try:
                yield self.value(body)
            finally:
                self._items.pop()

    def _call(self, name: Token, *arguments: Any) -> Any:
        if name in PREDICATES:
            items = self.value(arguments[0])
            if not isinstance(items, list):
                raise ExpressionError(f"{name}: cannot loop over {plain_text(items)}")
            return PREDICATES[name](items, self._for_each(arguments[1], items))
        return call(str(name), [self.value(each) for each in arguments if each is not None])

    def _list(self, *items: Any) -> list[Any]:
        return [self.value(item) for item in items if item is not None]

    def _map(self, *pairs: Any) -> dict[str, Any]:
        found = {}
        for pair in pairs:
            if pair is None:
                continue
            key, value = pair.children
            name = self.value(key) if pair.data == "computed_pair" else str(key)
            found[unquote(name) if name[:1] in "\"'`" else name] = self.value(value)
        return found
