"""Flags that a parser makes of the fields of classes, and of the parameters of a function that it is given."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from argosy.workflows.script.flags import Flag, is_true
from argosy.workflows.script.source import Function, Source, argument, default_of, last_name, plain

_FLAT = {"HfArgumentParser", "TrlParser", "simple_parsing", "parse_args_into_dataclasses", "Tap", "add_arguments"}
_DOTTED = {"tyro", "draccus", "pyrallis", "add_class_arguments", "add_dataclass_arguments"}
"""They call a field of a field by both names."""
_HYDRAS = {"structured", "ConfigStore"}


def fields(source: Source) -> list[Flag]:
    """The flags of the classes that parsers are given; where none is seen to be given one, of all that are whole."""
    used = {getattr(node, "id", None) or getattr(node, "attr", None) for node in source.nodes}
    if not used & {*_FLAT, *_DOTTED, *_HYDRAS}:
        return []
    kinds = {node.name: node for node in source.nodes if isinstance(node, ast.ClassDef | Function)}
    roots = [each for each in dict.fromkeys(_roots(source, used)) if each[0] in kinds]
    if not roots and used & {*_FLAT, *_DOTTED}:
        roots = [(node.name, "--", "") for node in source.nodes
                 if isinstance(node, ast.ClassDef) and source.class_of(node) is None]  # fmt: skip

    def below(name: str, before: str, behind: str, depth: int = 5) -> Iterator[Flag]:
        node = kinds[name]
        for base in node.bases if isinstance(node, ast.ClassDef) and depth else ():
            if last_name(base) in kinds:
                yield from below(last_name(base), before, behind, depth - 1)
        for own, says, value, where in _written(node):
            named = {each.id for each in ast.walk(says) if isinstance(each, ast.Name)} if says is not None else set()
            if depth and (inside := [each for each in named & {*kinds} if any(_written(kinds[each]))]):
                longer = before if used & _FLAT else f"{before}{own}."
                yield from below(inside[0], longer, behind, depth - 1) if len(inside) == 1 else ()
                continue
            switch = says is not None and ast.unparse(says) == "bool" and not behind
            truth = "True" if switch and "tyro" not in used else ""
            yield Flag(f"{before}{own}{behind}", not switch or bool(truth), plain(value), False, source.where(where),
                       dest=own, computed=is_true(value), truth=truth)  # fmt: skip

    found = [flag for root in roots for flag in below(*root)]
    named = Counter(flag.dest for flag in found)
    return [flag if named[flag.dest] == 1 or "." not in flag.name else replace(flag, dest=flag.name.strip("-="))
            for flag in found]  # fmt: skip


def _roots(source: Source, used: set[str | None]) -> Iterator[tuple[str, str, str]]:
    """Names of classes, what stands before the names of their fields, and what behind."""
    commands = {word.value.value for node in source.nodes for each in getattr(node, "decorator_list", [])
                for word in getattr(each, "keywords", [])
                if word.arg == "config_name" and isinstance(word.value, ast.Constant)}  # fmt: skip
    for call in source.calls:
        name, words = last_name(call.func), {*ast.unparse(call.func).split(".")}
        told = [*call.args[:1], *(word.value for word in call.keywords if word.arg == "config_class")]
        names = [each.id for one in told for each in ast.walk(one) if isinstance(each, ast.Name)]
        if name in ("add_class_arguments", "add_dataclass_arguments") and names:
            below = plain(argument(call, "nested_key", 1))
            yield names[0], f"--{below}." if below else "--", ""
        elif name == "structured" and "from_cli" in used:
            yield from ((each, "", "=") for each in names)
        elif name == "store" and "ConfigStore" in used and plain(argument(call, "name")) in commands:
            kind = argument(call, "node") or call
            yield from ((each.id, "", "=") for each in ast.walk(kind) if isinstance(each, ast.Name))
        elif words & {*_FLAT, *_DOTTED} and name != "wrap":
            yield from ((each, "--", "") for each in names)
    for main in (each for each in source.nodes if isinstance(each, Function) and each.args.args):
        says = main.args.args[0].annotation  # @draccus.wrap() def main(config: Config)
        if says is not None and any(ast.unparse(each).endswith(".wrap()") for each in main.decorator_list):
            yield last_name(says), "--", ""


def _written(node: ast.ClassDef | Function) -> Iterator[tuple[str, ast.expr | None, ast.expr | None, ast.AST]]:
    """Name, annotation, default and place of each field, or parameter."""
    if not isinstance(node, ast.ClassDef):
        names = node.args.args
        defaults = [None] * (len(names) - len(node.args.defaults)) + [*node.args.defaults]
        yield from ((each.arg, each.annotation, value, each) for each, value in zip(names, defaults, strict=True))
        return
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            value = each.value
            if isinstance(value, ast.Call):
                value = argument(value, "default") or (value if default_of(value) is not value else None)
            yield each.target.id, each.annotation, value, each
