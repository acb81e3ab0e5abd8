"""The files that a script opens: what its restart reads beside its checkpoints has to come back with them."""

from __future__ import annotations

import ast
import re

from argosy.workflows.script.account import LOADERS
from argosy.workflows.script.learned import means
from argosy.workflows.script.saves import COPIES
from argosy.workflows.script.source import Function, Source, argument, last_name, plain
from argosy.workflows.script.values import Values
from argosy.workflows.script.writers import temporary

_GIVES_BACK = re.compile(r"(?i)^_*(re)?(load|restore|resume|from_)")
"""So is a function called that is handed what to read."""
_LOOKS = re.compile(r"\b(exists|isdir|is_dir|rmtree|listdir)\(")
_ASKS = re.compile(rf"(?i){_LOOKS.pattern}|resum|restor|load|contin|ckpt|checkpoint|start")
_GUARDS = (ast.Try, ast.For, ast.While, ast.With, ast.IfExp, ast.BoolOp)


def opened(source: Source, values: Values) -> tuple[dict[str, str], frozenset[str]]:
    """Path -> where it is read, and the paths that are written, of the calls that a run comes to."""
    reads, writes = dict[str, str](), set[str]()
    for call in (each for each in source.calls if values.machine.needed(each) == ()):
        nodes, writing = _opened(call, source)
        for path in (one for each in nodes for one in values.guesses(each) if not temporary(one)):
            if writing:
                writes.add(path)
            else:
                reads.setdefault(path, source.where(call))
    return reads, frozenset(writes)


def _opened(call: ast.Call, source: Source) -> tuple[list[ast.expr], bool]:
    """What may be the path of a file that it opens, and whether it writes it anew."""
    name, owner = last_name(call.func), [call.func.value] if isinstance(call.func, ast.Attribute) else []
    if name in ("write_text", "read_text", "write_bytes", "read_bytes"):
        return owner, name.startswith("write")
    if name in ("savetxt", "loadtxt"):  # numpy's
        return call.args[:1], name == "savetxt"
    if name in COPIES:
        return call.args[1:2], True
    if name == "merge_from_file":  # yacs'
        return call.args[:1], False
    if name == "open":
        method = bool(owner) and not source.origin(owner[0])  # of a path; ``gzip.open`` is none
        mode, path = plain(argument(call, "mode", 0 if method else 1)) or "r", argument(call, "file", 0)
        nodes = owner if method else [] if path is None else [path]
        return (nodes if mode[:1] in ("r", "w") else []), "w" in mode
    first = 1 if source.origin(call.func).partition(".")[0] in LOADERS else None
    given = [*call.args[:first], *(each.value for each in call.keywords)]
    return (given if _GIVES_BACK.search(name) else []), False


def made_once(source: Source, values: Values) -> tuple[str, str] | None:
    """Where each start makes a folder that only the first may, as the next finds it there; and the folder."""
    for call in values.machine.sure if values.machine.followed else ():
        whole, path = source.origin(call.func), argument(call, "name", 0)
        if last_name(call.func) not in ("mkdir", "makedirs") or argument(call, "exist_ok", 2) is not None:
            continue
        if whole not in ("os.mkdir", "os.makedirs"):  # a path's own; a function of the script's is gone into
            path = call.func.value if isinstance(call.func, ast.Attribute) and not whole else None
        known = [] if path is None or not _is_bare(call, source, values) else values.folders(path)
        if len(known) == 1 and known[0] != "." and "*" not in known[0]:
            return source.where(call), known[0]
    return None


def asks_someone(source: Source, sure: frozenset[str]) -> str:
    """Where it waits for what somebody types, whatever the flags are; "" for nowhere."""
    around = (ast.If, ast.Try, ast.IfExp, ast.BoolOp)
    asked = (call for call in source.calls if ast.unparse(call.func) == "input" and source.where(call) in sure
             and not any(isinstance(each, around) for each in source.above(call)))  # fmt: skip
    return next(map(source.where, asked), "")


def _is_bare(call: ast.expr, source: Source, values: Values, depth: int = 4) -> bool:
    """Whether nothing around it, or around what calls its function, asks first, or takes an error for none."""
    above, around = [*source.above(call)], source.function_of(call)
    before = (each for each in next(source.scopes(call)).body if each.lineno <= call.lineno)
    own = [around] if around is not None else [each for each in before if not isinstance(each, Function)]
    asks = any(_LOOKS.search(ast.unparse(each)) for each in own)
    asks = asks or any(_ASKS.search(ast.unparse(each.test)) for each in above if isinstance(each, ast.If))
    if asks or any(isinstance(each, _GUARDS) for each in above):
        return False
    known = [] if around is None else values.bindings.calls_of(around)  # none: a library calls it
    callers = [each for each in known if around is None or source.class_of(around) is not None
               or means(each, around, source, values.bindings)]  # fmt: skip
    return depth > 0 and all(_is_bare(each, source, values, depth - 1) for each in callers)
