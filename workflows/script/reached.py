"""Which calls a script can come to: what a module beside it defines and nobody uses saves nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from argosy.workflows.script.source import Function, Source

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def reached_calls(source: Source) -> list[ast.Call]:
    """The calls in what can be reached, in the order of the source; the script's own functions all can."""
    names = _Names(source)
    waiting, found = [node for node in source.nodes if names.at_import(node)], set[ast.AST]()
    entered = set[ast.AST]()
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.add(node)
        for definition in names.meant(node):
            if definition not in entered:
                entered.add(definition)
                waiting += ast.walk(definition)
    return [call for call in source.calls if call in found]


def only_defined(source: Source) -> str | None:
    """The last function of a script that calls none, as the entry of an installed command does; None of any other."""
    tree = next(each for each in source.nodes if isinstance(each, ast.Module) and not source.file(each))
    calls = any(isinstance(each, ast.Call) or getattr(each, "decorator_list", ()) for node in tree.body
                for each in ([node] if isinstance(node, Definition) else ast.walk(node)))  # fmt: skip
    return None if calls else next((node.name for node in reversed(tree.body) if isinstance(node, Function)), None)


class _Names:
    """What a name or an attribute may stand for, of all that the modules define."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._defined: dict[str, list[Definition]] = {}
        for node in source.nodes:
            if isinstance(node, Definition):
                self._defined.setdefault(node.name, []).append(node)

    def at_import(self, node: ast.AST) -> bool:
        """Whether a node is run without being called: what is in no function, or in the script itself."""
        if not self._source.file(node):
            return True
        inside = [node, *self._source.above(node)]
        return not any(isinstance(each, Function) or _is_main(each) for each in inside)

    def meant(self, node: ast.AST) -> Iterator[Definition]:
        """The functions and classes that a node may stand for."""
        if isinstance(node, ast.Name):
            file = self._source.file(node)
            imported = self._source.imports.get((file, node.id), "").rpartition(".")[2]
            star = (file, "*") in self._source.imports
            for each in self._defined.get(imported or node.id, []):
                if imported or star or self._source.file(each) == file:
                    yield each
        elif isinstance(node, ast.Attribute):
            module = bool(self._source.origin(node.value))
            found = self._defined.get(node.attr, [])
            methods = [each for each in found if self._source.class_of(each) is not None]
            yield from found if module or self._source.file(node) == "" else methods


def _is_main(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)
