"""What a script does with the files that it lists, where it does not go on from them."""

from __future__ import annotations

import ast
import re

from argosy.workflows.script.source import Source, last_name

READS = re.compile(r"(?i)load|restore|resume|read|open$|^YOLO$")
_REMOVES = frozenset({"remove", "unlink", "rmtree"})


def leads_nowhere(call: ast.Call, source: Source) -> bool:
    """Whether what it finds is only removed, counted, told, or ends the script."""
    ways = (_clears_up, _stops, _is_counted, _is_only_told)
    return any(way(call, source) for way in ways)


def _is_counted(call: ast.Call, source: Source) -> bool:
    """Whether it is only asked how many there are, as for the number of the next run's folder."""
    around = [*source.above(call)]
    if not (isinstance(around[0], ast.Call) and last_name(around[0].func) == "len"):
        return _names_the_next(call, source)
    holder = next(each for each in around if isinstance(each, ast.stmt))
    names = {ast.unparse(each) for each in getattr(holder, "targets", [])}
    asks = [each.test for each in source.nodes if isinstance(each, ast.If | ast.While | ast.IfExp)]
    asks += [each for each in source.calls if last_name(each.func) == "load"]
    near = (one for one in asks if source.file(one) == source.file(call)
            and source.function_of(one) is source.function_of(call))  # fmt: skip
    return not any(each is call or ast.unparse(each) in names for one in near for each in ast.walk(one)
                   if isinstance(each, ast.expr))  # fmt: skip


def _names_the_next(call: ast.Call, source: Source) -> bool:
    """Whether what is there only gives the next its name, ``max(map(number_of, found)) + 1``, and nothing reads it."""
    around = source.function_of(call)
    if around is None:
        return False
    names, counted_on = set[str](), False

    def holds(node: ast.AST) -> bool:
        return any(each is call or (isinstance(each, ast.Name | ast.Attribute) and ast.unparse(each) in names)
                   for each in ast.walk(node))  # fmt: skip

    for node in sorted(ast.walk(around), key=lambda each: getattr(each, "lineno", 0)):
        next_one = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add) and holds(each.left)
                       and isinstance(each.right, ast.Constant) and each.right.value == 1
                       for each in ast.walk(node))  # fmt: skip
        if isinstance(node, ast.Assign) and holds(node.value):
            counted_on = counted_on or next_one
            names |= set() if next_one else {ast.unparse(each) for each in node.targets}
        elif (
            isinstance(node, ast.While) and isinstance(node.test, ast.Compare) and isinstance(node.test.ops[0], ast.In)
        ):
            counted_on = counted_on or any(map(holds, node.test.comparators))  # another, as long as it is taken
        elif isinstance(node, ast.Return) and node.value is not None and holds(node.value):
            counted_on = counted_on or next_one
            if not next_one:
                return False
        elif isinstance(node, ast.Call) and READS.search(last_name(node.func)) and any(map(holds, node.args)):
            return False
    return counted_on


def _is_only_told(call: ast.Call, source: Source) -> bool:
    """Whether all that is done where something is found is to say so."""
    asks = next((each for each in source.above(call) if isinstance(each, ast.If)), None)
    if asks is None or call not in ast.walk(asks.test):
        return False
    says = ("print", "warn", "warning", "info")
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and last_name(each.value.func) in says
               for each in asks.body)  # fmt: skip


def _clears_up(call: ast.Call, source: Source) -> bool:
    """Whether the files are listed to remove the old ones."""
    around = source.function_of(call)
    names = {last_name(each.func) for each in ast.walk(around or call) if isinstance(each, ast.Call)}
    return bool(names & _REMOVES) and not any(READS.search(name) for name in names)


def _stops(call: ast.Call, source: Source) -> bool:
    """Whether the script refuses to go on where something is found."""
    tests = (each for each in source.above(call) if isinstance(each, ast.If) and call in ast.walk(each.test))
    return any(isinstance(each.body[-1], ast.Raise) for each in tests)
