"""Whether a script looks for what it saved, and loads it, by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from argosy.workflows.script.domain import Absent
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.lines import loops_around
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.values import Values

_SEARCHES = ("glob", "iglob", "rglob", "listdir", "scandir", "iterdir", "ls")
_READS = re.compile(r"(?i)load|restore|resume|read|open$|^YOLO$")
_LOOKS = ("exists", "isfile", "is_file", "isdir", "is_dir")
_TRIES = ("open", "load", "load_state", "read_bytes", "read_text")
_ASKS_TO_GO_ON = re.compile(r"(?i)resum|restor|load|contin|ckpt|checkpoint|start|init")
_NEWEST = "latest_checkpoint"
_RESTORES = (
    "restore_checkpoint",
    "restore_or_initialize",
    "latest_step",
    "BackupAndRestore",
    "Estimator",
    "TPUEstimator",
    "resume_or_load",
)
_LIBRARIES = frozenset({"flax", "orbax", "keras", "tensorflow", "fvcore", "detectron2"})


def loaded(source: Source, values: Values, places: Sequence[SavedAt]) -> str:
    """Where the script loads what it saves without being told to, if it is there; "" for nowhere."""
    late, wholes = _late(source, values, places), _wholes(values, places)
    for call in (call for call in source.calls if call not in late and not _is_asked_for(call, source, values)):
        name = last_name(call.func)
        if places and _asks_its_library(call, source, values):
            return source.where(call)
        if name in (*_SEARCHES, _NEWEST) and _is_searched(call, values, wholes) and not _leads_nowhere(call, source):
            return source.where(call)
        looks = name in _LOOKS and _is_read_then(call, source)
        if (looks or (name in _TRIES and _may_miss(call, source, values))) and _names_one(call, values, wholes):
            return source.where(call)
    return ""


def skipped(source: Source, values: Values, places: Sequence[SavedAt]) -> str:
    """Where each turn of a loop, as a fold, is left out whose file is there already; "" for nowhere."""
    wholes = _wholes(values, places)
    for node in (each for each in source.nodes if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Continue)):
        looks = [one for one in _parts(node.test) for call in _found_if(one)
                 if values.machine.needed(call) == () and _names_one(call, values, wholes)]  # fmt: skip
        if looks and all(one in looks or values.conditions.holds(one) is True for one in _parts(node.test)):
            return source.where(node)
    return ""


def _names_one(call: ast.Call, values: Values, wholes: Sequence[PurePosixPath]) -> bool:
    """Whether what it is asked of is a file that is saved."""
    known = [PurePosixPath(glob).parts for each in _path_words(call) for glob in values.guesses(each)]
    return any(len(parts) == len(whole.parts) and all(map(fnmatchcase, parts, whole.parts))
               for parts in known for whole in wholes)  # fmt: skip


def barred(source: Source, values: Values, places: Sequence[SavedAt]) -> tuple[str, str] | None:
    """Where the script ends if a folder that it saves into is there already, as it is in a restart; and the test."""
    ends = (node for node in source.nodes if isinstance(node, ast.If) and _ends(node.body[-1]))
    for node in ends:
        tests = [one for each in source.above(node) if isinstance(each, ast.If) for one in _parts(each.test)]
        looks = [one for one in _parts(node.test) for call in _found_if(one)
                 if call in values.machine.calls and _is_there(call, values, places)]  # fmt: skip
        others = [one for one in (*tests, *_parts(node.test)) if one not in looks]
        if looks and not any(_ASKS_TO_GO_ON.search(ast.unparse(one)) or values.conditions.holds(one) is False
                             for one in others):  # fmt: skip
            return source.where(node), ast.unparse(node.test)
    return None


def asked_beside(source: Source, values: Values) -> dict[str, tuple[str, Flag]]:
    """Of each flag where the script ends if another is not given with it, and the other: ``if args.model and not
    args.memory: raise``.
    """
    found = dict[str, tuple[str, Flag]]()
    for node in (each for each in source.nodes if isinstance(each, ast.If) and _ends(each.body[-1])):
        around = (each for each in source.above(node) if isinstance(each, ast.If) and node in _inside(each.body))
        parts = [part for each in (node, *around) for part in _parts(each.test)]
        lacks = [
            flag for each in parts if values.conditions.holds(each) is True and (flag := _asked(each, values, False))
        ]
        named = [
            flag for each in parts if values.conditions.holds(each) is False and (flag := _asked(each, values, True))
        ]
        for flag in named if len(lacks) == 1 else ():
            found.setdefault(flag.attribute, (source.where(node), lacks[0]))
    return found


def _asked(test: ast.expr, values: Values, given: bool) -> Flag | None:
    """The flag of which a test asks whether it is given; or, not ``given``, whether it is not."""
    node: ast.expr | None = test if given else test.operand if isinstance(test, ast.UnaryOp) else None
    if isinstance(test, ast.Compare):
        node = test.left if isinstance(test.ops[0], ast.IsNot if given else ast.Is) else None
    flag = values.flag(node.attr) if isinstance(node, ast.Attribute) else None
    return flag if flag is not None and flag.takes_value else None


def _ends(last: ast.stmt) -> bool:
    call = last.value if isinstance(last, ast.Expr) else None
    return isinstance(last, ast.Raise) or (isinstance(call, ast.Call) and last_name(call.func) in ("exit", "_exit"))


def _found_if(test: ast.expr) -> list[ast.Call]:
    """What has to be found for it to be true: ``exists(out)``, ``len(os.listdir(out)) > 0``."""
    if isinstance(test, ast.Compare):
        more = isinstance(test.ops[0], ast.Gt | ast.NotEq) and ast.unparse(test.comparators[0]) in ("0", "[]")
        test = test.left if more else test.comparators[0]
    if isinstance(test, ast.Call) and last_name(test.func) in ("len", "any") and test.args:
        test = test.args[0]
    return [test] if isinstance(test, ast.Call) and last_name(test.func) in (*_LOOKS, "listdir") else []


def _is_there(call: ast.Call, values: Values, places: Sequence[SavedAt]) -> bool:
    folders = [one for each in _path_words(call) for one in values.folders(each) if one not in (".", "*")]
    return any(f"{each.folder}/".startswith(f"{one}/") for one in folders for each in places)


def removed(source: Source, values: Values, places: Sequence[SavedAt]) -> tuple[str, str] | None:
    """Where the script removes, at each start, a folder that it saves into or one above; and the folder."""
    late, at = _late(source, values, places), {each.where for each in places}
    saves = [call for call in source.calls if source.where(call) in at]
    for call in values.machine.sure if values.machine.followed else ():
        if last_name(call.func) != "rmtree" or not call.args or call in late or any(loops_around(call, source)):
            continue
        if _is_for_failures(call, source):
            continue
        around = source.function_of(call)
        near = any(source.function_of(each) is around and not any(loops_around(each, source)) for each in saves)
        asked = any(_READS.search(ast.unparse(each.test)) for each in source.above(call) if isinstance(each, ast.If))
        for folder in () if near or asked else values.folders(call.args[0]):
            if folder not in (".", "*") and any(f"{each.folder}/".startswith(f"{folder}/") for each in places):
                return source.where(call), folder
    return None


def _is_for_failures(call: ast.Call, source: Source) -> bool:
    """Whether it is made only where something failed, other than to make a folder that is there already."""
    above = [*source.above(call)]
    handled = (each for each in above if isinstance(each, ast.Try) and any(one in above for one in each.handlers))
    return any(not any(isinstance(one, ast.Call) and last_name(one.func) in ("mkdir", "makedirs")
                       for tried in each.body for one in ast.walk(tried)) for each in handled)  # fmt: skip


def _late(source: Source, values: Values, places: Sequence[SavedAt]) -> set[ast.Call]:
    """The calls that are first come to after a save: what they look for, this start has written."""
    at, come_to = {each.where for each in places}, [*values.machine.calls]
    saves = (
        place
        for place, call in enumerate(come_to)
        if source.where(call) in at
        and last_name(call.func)[:1].islower()
        and not values.machine.calls[call][0]
        and not any(isinstance(each, ast.Call) and source.where(each) in at for each in source.above(call))
    )  # no callback that is only made, and not what makes its path
    first = next(saves, len(come_to))
    return {*come_to[first + 1 :]}


def _is_asked_for(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether it is made only when somebody says so: ``if resume: found = sorted(folder.glob("*.pt"))``."""
    if values.conditions.runs(call) is False or values.machine.needed(call):
        return True
    tests = [above.test for above in source.above(call) if isinstance(above, ast.If)]
    tests = [each for each in tests if not any(getattr(one, "attr", "") in values.conditions.given
                                               for one in ast.walk(each))]  # fmt: skip
    parts = (part for each in tests for part in _parts(each))
    return any("resume" in ast.unparse(each) and not _holds(each, values) for each in parts)


def _holds(test: ast.expr, values: Values) -> bool:
    """Whether it is true as the flags and the files of settings are now."""
    found = values.machine.seen.get(test, [])
    return values.conditions.holds(test) is True or (bool(found) and all(each is True for each in found))


def _parts(test: ast.expr) -> list[ast.expr]:
    """What all has to hold: a setting that says so, and a file that is there."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for each in test.values for part in _parts(each)]
    return [test]


def _wholes(values: Values, places: Sequence[SavedAt]) -> list[PurePosixPath]:
    """The files that another start may find: in a folder that each start makes anew nothing old is found."""
    wholes = (PurePosixPath(each.folder, each.pattern.removesuffix("/**/*")) for each in places
              if "**" not in each.pattern.removesuffix("/**/*"))  # fmt: skip
    return [each for each in wholes if not (values.named_anew and "*" in str(each.parent))]


def _is_searched(call: ast.Call, values: Values, wholes: Sequence[PurePosixPath]) -> bool:
    """Whether the call lists files of a folder that is saved to."""
    found = [PurePosixPath(text) for each in _path_words(call) for text in values.folders(each)]
    # A folder of which nothing is known, as that of a dataset, is any.
    found = [each for each in found if each.parts[:1] != ("*",)]
    return any(_alike(path, whole) or _alike(path, whole.parent) for whole in wholes for path in found)


def _path_words(call: ast.Call) -> list[ast.expr]:
    """What may name the path: ``exists(path)``, ``path.exists()``."""
    return [*call.args[:1], *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]


def _asks_its_library(call: ast.Call, source: Source, values: Values) -> bool:
    """``manager.latest_step()``, ``checkpoint.restore(manager.latest_checkpoint)``, a callback that goes on."""
    name = last_name(call.func)
    shown = [*call.args, *(one for each in call.args for one in values.bindings.origins(each))]
    if any(last_name(each.func if isinstance(each, ast.Call) else each) == _NEWEST for each in shown):
        return name.startswith(("restore", "load"))
    told = values.machine.seen.get(argument(call, "resume", 1) or call, [])  # of resume_or_load
    asked = any(each is False or isinstance(each, Absent) for each in told)
    return not asked and name in _RESTORES and bool(source.packages & _LIBRARIES)


def _is_read_then(call: ast.Call, source: Source) -> bool:
    """Whether what is there is loaded: where it is asked for, or else in the same function."""
    above = [call, *source.above(call)]
    asked = next((each for each in above if isinstance(each, ast.If | ast.IfExp) and call in ast.walk(each.test)), None)
    if isinstance(asked, ast.If) and isinstance(asked.body[-1], ast.Return):
        asked = None  # it goes no further where nothing is, and reads below
    elif isinstance(asked, ast.If) and not any(isinstance(each, ast.Call) for each in _inside(asked.body)):
        asked = None  # what is found gets a name, which is read below
    around = asked or source.function_of(call) or above[-1]
    names = {last_name(each.func) for each in ast.walk(around) if isinstance(each, ast.Call)}
    return any(_READS.search(name) for name in names)


def _leads_nowhere(call: ast.Call, source: Source) -> bool:
    """Whether what it lists is only counted, removed or told of, or ends the script."""
    above = [*source.above(call)]
    around = source.function_of(call)
    asks = [each for each in ast.walk(around or above[-1]) if isinstance(each, ast.If | ast.IfExp | ast.While)]
    if any(call in ast.walk(each.test) for each in asks):
        return not _is_read_then(call, source)
    holder = next(each for each in above if isinstance(each, ast.stmt))
    names = {ast.unparse(each) for each in getattr(holder, "targets", [])}
    if isinstance(above[0], ast.Call) and last_name(above[0].func) == "len":
        return not any(ast.unparse(one) in names for each in asks for one in ast.walk(each.test))
    kept = any("." in name for name in names) or any(
        isinstance(each, ast.Return | ast.Yield) and each.value is not None for each in ast.walk(around or above[-1])
    )  # and read by whoever calls it
    return not kept and not _is_read_then(call, source)


def _alike(one: PurePosixPath, other: PurePosixPath) -> bool:
    """Whether both may be the same path, folder by folder."""
    ones, others = ([re.sub(r"[*?]+", "*", part) for part in each.parts] for each in (one, other))
    pairs = zip(ones, others, strict=False)
    return len(ones) == len(others) and all(fnmatchcase(a, b) or fnmatchcase(b, a) for a, b in pairs)


def _may_miss(call: ast.Call, source: Source, values: Values, depth: int = 2) -> bool:
    """Whether a file that is not there is no error, here or where the function around it is called."""
    tries = (above for above in source.above(call) if isinstance(above, ast.Try) and call in _inside(above.body))
    if any(not isinstance(each.body[-1], ast.Raise) and _catches_all(each) for one in tries for each in one.handlers):
        return True
    around = source.function_of(call)
    callers = values.bindings.calls_of(around) if around is not None and depth else []
    return any(_may_miss(each, source, values, depth - 1) for each in callers)


def _inside(body: Sequence[ast.stmt]) -> set[ast.AST]:
    return {node for each in body for node in ast.walk(each)}


def _catches_all(handler: ast.ExceptHandler) -> bool:
    """Whether it takes a file that is missing for nothing."""
    named = "" if handler.type is None else ast.unparse(handler.type)
    return not named or any(name in named for name in ("FileNotFoundError", "OSError", "IOError", "Exception"))
