"""Where the names of a script get their values: assignments, parameters, loops, attributes, calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from argosy.workflows.script.source import Function, Scope, Source, argument, default_of, last_name, written_out


class Bindings:
    """All of a source, by name."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._assigned: dict[tuple[Scope, str], list[ast.expr]] = {}
        self._counted: set[tuple[Scope, str]] = set()
        self._calls: dict[str, list[ast.Call]] = {}
        self._made: dict[str, set[str]] = {}  # name -> the classes that make what it stands for
        self.attributes: dict[str, list[tuple[str, ast.expr]]] = {}
        """Attribute -> (the name before it, what it is set to), in the order of the source."""
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self.functions: dict[str, list[Function]] = {}
        self.globals: dict[str, list[ast.expr]] = {}
        """Names of all modules."""
        for node in source.nodes:
            self._learn(node)
        for (scope, name), values in self._assigned.items():
            if isinstance(scope, ast.Module):
                self.globals.setdefault(name, []).extend(values)

    def _learn(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._bind(target, node.value)
                if isinstance(node.value, ast.Call) and isinstance(target, ast.Name | ast.Attribute):
                    kind = self._source.origin(node.value.func).rpartition(".")[2] or last_name(node.value.func)
                    self._made.setdefault(last_name(target), set()).add(kind)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, node.value)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            call = node.context_expr
            if (
                isinstance(call, ast.Call)
                and ("open" in last_name(call.func) or last_name(call.func).endswith("File"))
                and call.args
            ):
                self._bind(node.optional_vars, call.args[0])
        elif isinstance(node, ast.NamedExpr):
            self._bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For):
            self._count(node)
        elif isinstance(node, ast.ClassDef):
            self.classes.setdefault(node.name, []).append(node)
        elif isinstance(node, Function):
            self.functions.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Call):
            self._calls.setdefault(last_name(node.func), []).append(node)

    def _count(self, node: ast.AugAssign | ast.For) -> None:
        """A name that changes in a loop stands for nothing certain."""
        numbers = isinstance(node, ast.AugAssign) and isinstance(node.value, ast.Constant)
        for each in ast.walk(node.target) if numbers or isinstance(node, ast.For) else ():
            if isinstance(each, ast.Name):
                self._counted.add((next(self._source.scopes(node)), each.id))

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for each, part in zip(target.elts, value.elts, strict=True):
                self._bind(each, part)
        elif isinstance(target, ast.Tuple):
            for place, each in enumerate(target.elts):
                part = ast.copy_location(ast.Subscript(value, ast.Constant(place), ast.Load()), value)
                self._bind(each, self._source.adopt(part, value))
        elif isinstance(target, ast.Name):
            scope = next(self._source.scopes(target))
            self._assigned.setdefault((scope, target.id), []).append(value)
        elif isinstance(target, ast.Attribute):
            self.attributes.setdefault(target.attr, []).append((last_name(target.value), value))

    def bound(self, node: ast.Name) -> Iterator[ast.expr]:
        """What the name was assigned, the nearest above first; a module's names may come from any module."""
        for place, scope in enumerate(self._source.scopes(node)):
            if (scope, node.id) in self._counted:
                return
            values = self._assigned.get((scope, node.id), [])
            # In the node's own scope what stands above it; of an outer one all has run before it is called.
            yield from reversed([each for each in values if place or each.lineno < node.lineno])
        yield from self.globals.get(node.id, [])

    def passed(self, node: ast.Name) -> Iterator[ast.expr]:
        """What the function that the name is a parameter of is called with, then its default."""
        for scope in self._source.scopes(node):
            if isinstance(scope, Function) and (scope, node.id) not in self._assigned:
                yield from self._arguments(scope, node.id)

    def _arguments(self, function: Function, name: str) -> Iterator[ast.expr]:
        names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        known = [*names, *(each.arg for each in function.args.kwonlyargs)]
        if name not in known:
            return
        place = names.index(name) - (names[:1] in (["self"], ["cls"])) if name in names else -1
        calls = self.calls_of(function)
        found = [argument(call, name, place) or self._unpacked(call, name) for call in calls]
        yield from (each for each in found if each is not None)
        if (found and None not in found) or any(_gives_more(call) for call in calls):
            return
        defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
        defaults |= {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d}
        if name in defaults:
            yield default_of(defaults[name])

    def _unpacked(self, call: ast.Call, name: str) -> ast.expr | None:
        """What ``f(**options)`` gives a parameter, where the options are written out."""
        for word in call.keywords:
            shown = next(self.bound(word.value), None) if isinstance(word.value, ast.Name) else word.value
            if word.arg is None and shown is not None and (options := written_out(shown)):
                return dict(options).get(name)
        return None

    def calls_of(self, function: Function) -> list[ast.Call]:
        """The calls of a function by its name, or by its class's where it makes one."""
        owner = self._source.class_of(function)
        name = owner.name if owner is not None and function.name == "__init__" else function.name
        names = [each for each, kinds in self._made.items() if owner is not None and owner.name in kinds]
        names = names if function.name == "__call__" else [name]
        found = (
            call
            for each in names
            for call in self._calls.get(each, [])
            if self._means(call, function) and not _of_torch(call)
        )
        return [call for call in found if function not in self._source.above(call)]

    def object_of(self, call: ast.Call) -> list[Function]:
        """What is run where an object of a class of the script is called: ``scaler(loss, optimizer)``."""
        kinds = [kind for name in self._made.get(last_name(call.func), ()) for kind in self.classes.get(name, [])]
        return [each for kind in kinds for each in kind.body if isinstance(each, Function) and each.name == "__call__"]

    def _means(self, call: ast.Call, function: Function) -> bool:
        """Whether it may be that function: of an object it is one only where no class has a method of the name."""
        if not isinstance(call.func, ast.Attribute) or function.name == "__init__":
            return True
        if self._source.class_of(function) is not None:  # ``np.load`` is no method
            owner = self._source.origin(call.func.value)
            return not owner or owner.rpartition(".")[2] in self.classes
        methods = (each for each in self.functions[function.name] if self._source.class_of(each) is not None)
        return bool(self._source.origin(call.func)) or next(methods, None) is None

    def origins(self, node: ast.expr) -> list[ast.expr]:
        """The expressions that a name may stand for, one step back and those of its callers."""
        if not isinstance(node, ast.Name):
            return []
        near = [*self.bound(node), *self.passed(node)]
        return [*near, *(each for one in near if isinstance(one, ast.Name) for each in self.bound(one))]


def _of_torch(call: ast.Call) -> bool:
    """``torch.load`` is no function of the script that bears the name."""
    return isinstance(call.func, ast.Attribute) and last_name(call.func.value) == "torch"


def _gives_more(call: ast.Call) -> bool:
    """``f(*rest)`` and ``f(**options)`` may give any parameter."""
    return any(isinstance(each, ast.Starred) for each in call.args) or any(word.arg is None for word in call.keywords)
