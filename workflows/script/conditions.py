"""Which branches a script takes, as its flags are now."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from itertools import pairwise

from argosy.workflows.script.bindings import Bindings
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.machine import RANKS
from argosy.workflows.script.source import Function, Source, last_name


class Conditions:
    """The values of flags, and what is true of them."""

    def __init__(
        self, source: Source, flags: Mapping[str, Flag], given: Mapping[str, str | None], bindings: Bindings
    ) -> None:
        """``flags`` by attribute; ``given``: those on the command line, and settings of the script's own file."""
        self._source = source
        self._flags = flags
        self.given = given
        self._bindings = bindings

    def flag(self, name: str) -> str | None:
        """What a flag has now: as given, else its default."""
        given = self.given.get(name)
        return self._flags[name].default if given is None and name in self._flags else given

    def holds(self, test: ast.expr, depth: int = 4) -> bool | None:
        """Whether a test is true as the flags are now; None: only a run could tell."""
        if isinstance(test, ast.Constant):
            return bool(test.value)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = self.holds(test.operand, depth)
            return None if inner is None else not inner
        if isinstance(test, ast.BoolOp) and depth:
            each = {self.holds(part, depth - 1) for part in test.values}
            decides = isinstance(test.op, ast.Or)  # one True decides an or, one False an and
            return decides if decides in each else None if None in each else not decides
        if isinstance(test, ast.Name) and depth:
            said = {self.holds(each, depth - 1) for each in (*self._bindings.bound(test), *self._bindings.passed(test))}
            return said.pop() if len(said) == 1 else None
        if isinstance(test, ast.Attribute):
            return self._is_set(test)
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.comparators[0], ast.Constant):
            return None
        other, how = test.comparators[0].value, test.ops[0]
        if other is True and isinstance(how, ast.Is | ast.Eq):
            return self.holds(test.left, depth)
        if other is None and isinstance(test.left, ast.Attribute):
            here = self._is_set(test.left)
            return None if here is None else here != isinstance(how, ast.Is | ast.Eq)
        if isinstance(test.left, ast.Name) and test.left.id == "__name__":
            return isinstance(test.ops[0], ast.Eq)  # of a module that is imported nothing there is reached
        value = self.flag(last_name(test.left))
        counts = type(other) is int and isinstance(test.left, ast.Attribute) and self._is_set(test.left) is not None
        if not value or not (isinstance(other, str) or counts) or not isinstance(how, ast.Eq | ast.NotEq):
            return None
        if counts and not value.isdecimal():
            return None
        return (value == str(other)) == isinstance(how, ast.Eq)

    def _is_set(self, node: ast.Attribute) -> bool | None:
        """Whether a flag has a value that counts as true; None: not known, or another place sets it."""
        name, flag = node.attr, self._flags.get(node.attr)
        # What an object keeps of it under the same name (``self.resume = resume``) does not set it.
        setters = {owner for owner, _ in self._bindings.attributes.get(name, [])} - {"self"}
        if flag is None and not setters and name in self.given:
            # A library declares it: with nothing but another flag behind it, it is a switch.
            return True if (self.given[name] or "--").startswith("--") else None
        if flag is None or flag.computed or setters or last_name(node.value) == "self" or RANKS.search(name):
            return None
        return name in self.given or (flag.default or "0") != "0"

    def runs(self, node: ast.AST) -> bool | None:
        """Whether what stands in a branch is run as the flags are now; None: only a run could tell."""
        sure: bool | None = True
        for below, above in pairwise([node, *self._source.above(node)]):
            if isinstance(above, Function):
                break
            if isinstance(above, ast.If | ast.IfExp) and below is not above.test:
                holds = self.holds(above.test)
                inside = below in above.body if isinstance(above, ast.If) else below is above.body
                if holds is not None and holds != inside:
                    return False
                sure = sure if holds is not None else None
        return sure
