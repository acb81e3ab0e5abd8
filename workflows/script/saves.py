"""Where a script saves, and whether it loads that again by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import UNKNOWN, either
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Source, last_name
from argosy.workflows.script.values import OUTSIDE, Values
from argosy.workflows.script.writers import (
    BY_SAVER,
    OF_LIGHTNING,
    holds_a_state,
    in_memory,
    is_called_back,
    moves,
    passes,
    pickles_a_state,
    targets,
    temporary,
    wrappers_of,
)

DCP = "torch.distributed.checkpoint"
_OF_EACH_RANK = {
    "save_state": ("Accelerate", "random_states_{rank}.pkl"),
    "save": (DCP, "__{rank}_*.distcp"), "async_save": (DCP, "__{rank}_*.distcp"),
}  # fmt: skip
"""Of calls that write a folder: which library it is, and what it writes in each rank."""
_MAKES = re.compile(
    r"(?i)mkdir|makedir|(make|create|ensure|prepare|setup|init)\w*(dir|folder|path)|copytree|Writer|save_"
)
_LOOKS = ("exists", "isfile")
COPIES = ("copy", "copyfile", "copy2")


def saves(source: Source, values: Values) -> tuple[tuple[SavedAt, ...], tuple[tuple[str, Flag | None], ...]]:
    """The places, those with a whole state first; and where it saves to a path that only a run could tell, with the
    flag that would tell it.
    """
    found, wrappers = dict[tuple[str, str], SavedAt](), wrappers_of(source)
    unclear, written, states = [], list[str](), list[str]()
    calls = sorted(source.calls, key=lambda call: moves(call) is not None)
    for call in _come_to(calls, source, values, wrappers):
        for target, ending in targets(call, source, wrappers, values):
            known = values.guesses(target) if ending[:1] != "/" else values.folders(target)
            globs = _branches([each for each in known if each.strip("*/")])
            several = ending[:1] == "/" and not _by_one_rank(call, source)
            by_rank = _OF_EACH_RANK.get(last_name(call.func), ("", "")) if several else ("", "")
            model_only = last_name(call.func) in ("save_pretrained", "save_weights", "save")
            whole = last_name(call.func) == OF_LIGHTNING or (
                bool(ending) and (ending.endswith(BY_SAVER) or not model_only)
            )
            whole = whole or holds_a_state(call, source, values)
            needed = values.machine.needed(call)
            unless = needed[-1].name if needed else ""
            if (
                _is_of_dataset(call, source)
                or in_memory(target, values)
                or (not (whole and any("*" in each for each in globs)) and _is_cached(call, target, source, values))
                or (needed is None and _never(call, source, values))
            ):
                continue
            if (moved := moves(call)) is not None and not _is_of_a_save(moved[0], values, written):
                continue
            # What is written first and renamed then is as whole as it was.
            whole = whole or (moved is not None and any(each in states for each in values.guesses(moved[0])))
            states += globs if whole else []
            written += [*globs, *(glob + ending for glob in globs)]
            # A move into a folder of which nothing is known may move anything.
            inside = any(not glob.startswith(OUTSIDE) for glob in globs)
            elsewhere = any(each[:1] == UNKNOWN for each in values.machine.globs(target))  # as the default of another
            if moved is None and (elsewhere or not inside):
                same = (each.where for glob in globs if (each := found.get(_split(PurePosixPath(glob + ending)))))
                unclear.append((next(same, source.where(call)), values.untold(target)))
            globs = [glob for glob in globs if glob + ending != "./**/*"]  # the code lies there
            ends = {each: ending.removeprefix("*" if each[-1:] == "*" else PurePosixPath(each).suffix)
                    for each in globs}  # never two  # fmt: skip
            paths = [PurePosixPath(glob + ends[glob]) for glob in globs if not temporary(glob)]
            for path in (*paths, *(each.with_name("checkpoint") for each in paths if ending.endswith(BY_SAVER))):
                folder, pattern = _split(path)
                saved = SavedAt(folder, pattern, source.where(call), whole, unless, *by_rank, passes(call))
                if found.setdefault((folder, pattern), saved).unless and not unless:
                    found[folder, pattern] = saved
    pickled = _pickled(source, values, {each.folder for each in found.values()})
    unclear += [(each.where, values.untold(target)) for target, each in pickled if each.folder.startswith(OUTSIDE)]
    kept = [*_with_copies(source, values, found), *(each for _, each in pickled)]
    return tuple(sorted(kept, key=lambda each: not each.whole)), tuple(dict.fromkeys(unclear))


def _branches(globs: Sequence[str]) -> list[str]:
    """Files of one name, in folders whose names a branch makes longer, are one."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in globs:
        pure = PurePosixPath(each)
        near = pure.parent.name[:1] if pure.parent.name not in ("", "..") else each
        found.setdefault((f"{pure.parent.parent}/{near}", pure.name), []).append(each)
    globs = [either(each) for each in found.values()]
    wider = {each: [other for other in globs if other != each and fnmatchcase(each, other)] for each in globs}
    same = {each for each in globs for other in wider[each] if PurePosixPath(each).name == PurePosixPath(other).name}
    return [each for each in globs if each not in same]


def _come_to(calls: Sequence[ast.Call], source: Source, values: Values, wrappers: set[str]) -> list[ast.Call]:
    """Those that a run comes to, where it saves in some of them; a library may call the methods of its classes."""
    saving = [call for call in calls if next(targets(call, source, wrappers, values), None) is not None]
    needs = {call: values.machine.needed(call) for call in saving}
    sure = [call for call in saving if needs[call] == () or (values.machine.finished and needs[call] is not None)]
    if not any(
        values.guesses(each) or values.folders(each)
        for call in sure
        for each, _ in targets(call, source, wrappers, values)
    ):
        return saving
    return [call for call in saving if values.machine.needed(call) is not None or is_called_back(call, source)]


def _is_of_dataset(call: ast.Call, source: Source) -> bool:
    """Whether a dataset keeps there what it has read."""
    kind = source.class_of(call)
    return kind is not None and any(last_name(base).endswith("Dataset") for base in kind.bases)


def _is_cached(call: ast.Call, target: ast.expr, source: Source, values: Values, depth: int = 1) -> bool:
    """Whether a file is made once, where it is not there yet: ``if exists(path): ... else: torch.save(data, path)``."""
    names = {ast.unparse(each) for each in (target, *values.bindings.origins(target))}
    below: ast.AST = call
    for above in source.above(call):
        if isinstance(above, ast.If) and below is not above.test and _lacks(above.test, below in above.body, names):
            return True
        below = above
    around = source.function_of(call)
    callers = values.bindings.calls_of(around) if around is not None and depth else []
    return bool(callers) and all(
        any(_is_cached(each, one, source, values, depth - 1) for one in each.args) for each in callers
    )


def _lacks(test: ast.expr, holds: bool, names: set[str]) -> bool:
    """Whether none of the files is there where a test holds, or does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _lacks(test.operand, not holds, names)
    if isinstance(test, ast.BoolOp):
        each = (_lacks(one, holds, names) for one in test.values)
        return any(each) if isinstance(test.op, ast.And) == holds else all(each)
    looks = isinstance(test, ast.Call) and last_name(test.func) in _LOOKS
    return looks and not holds and any(ast.unparse(one) in names for one in test.args[:1])  # type: ignore[attr-defined]


def _is_of_a_save(old: ast.expr, values: Values, written: Sequence[str]) -> bool:
    """Whether what is moved was written before, as far as that can be told."""
    moved = values.guesses(old)
    alike = [fnmatchcase(each, other) or fnmatchcase(other, each) for each in moved for other in written]
    return any(alike) or not moved


def _split(path: PurePosixPath) -> tuple[str, str]:
    """Folder and glob: what is numbered and all below it belongs to the glob."""
    tree = path.parts[-2:] == ("**", "*")
    parent = path.parents[1] if tree else path.parent
    parent = parent.parent if tree and "*" in parent.name else parent
    return str(parent), path.relative_to(parent).as_posix()


def _never(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether the flags, as they are, keep the script from it, or from all calls of the function around it."""
    around = source.function_of(call)
    callers = values.bindings.calls_of(around) if around is not None else []
    skipped = [values.conditions.runs(each) is False for each in (call, *callers)]
    return skipped[0] or (len(skipped) > 1 and all(skipped[1:]))


def _by_one_rank(call: ast.Call, source: Source) -> bool:
    """Whether only the first rank comes to it: ``if is_main_process:`` around it, or ``if not ...: return`` before."""
    around = source.function_of(call)
    tests = [each.test for each in source.above(call) if isinstance(each, ast.If)]
    for each in ast.walk(around) if around is not None else ():
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Return) and each.lineno < call.lineno:
            tests.append(each.test)
    return any(word in ast.unparse(test) for test in tests for word in ("main_process", "is_master", "rank == 0"))


def _with_copies(source: Source, values: Values, found: dict[tuple[str, str], SavedAt]) -> list[SavedAt]:
    """Copies of a saved file are saved too: ``shutil.copyfile(filename, "model_best.pth.tar")``."""
    copied = []
    for call in source.calls:
        name = last_name(call.func)
        if name not in COPIES or len(call.args) != 2:
            continue
        froms = {(str(PurePosixPath(glob).parent), PurePosixPath(glob).name) for glob in values.guesses(call.args[0])}
        target = values.guess(call.args[1])
        if froms & found.keys() and target is not None:
            pure = PurePosixPath(target)
            copied.append(SavedAt(str(pure.parent), pure.name, source.where(call)))
    return [*found.values(), *(each for each in copied if (each.folder, each.pattern) not in found)]


def _pickled(source: Source, values: Values, folders: set[str]) -> list[tuple[ast.expr, SavedAt]]:
    """What is pickled with a number in its name: part of a checkpoint in a folder that is saved to, else one itself."""
    dumps = (call for call in source.calls if last_name(call.func) == "dump" and len(call.args) == 2
             and values.machine.named(call.func) in ("pickle.dump", "dill.dump", "cloudpickle.dump"))  # fmt: skip
    found = [(call, PurePosixPath(glob)) for call in dumps for glob in values.guesses(call.args[1])]
    counted = ((call, path) for call, path in found if "*" in path.name and not pickles_a_state(call, source, values)
               and not _is_cached(call, call.args[1], source, values))  # fmt: skip
    return [(call.args[1], SavedAt(str(path.parent), path.name, source.where(call))) for call, path in counted
            if not folders or str(path.parent) in folders]  # fmt: skip


def folder_lacks(source: Source, values: Values, places: Sequence[SavedAt]) -> bool:
    """Whether ``torch.save`` is called, which makes no folder, and nothing that is called reads as if it made one; what
    is known to make another, as a writer of logs does its own, makes none of these.
    """
    saved = any(source.origin(call.func) == "torch.save" for call in source.calls)
    makes = (call for call in source.calls if _MAKES.search(last_name(call.func)))
    known = ([*values.folders(call.args[0])] if call.args else [] for call in makes)
    return saved and not any(not each or any(_is_near(one, each) for one in places) for each in known)


def _is_near(place: SavedAt, folders: Sequence[str]) -> bool:
    """Whether one of the folders is that, lies in it or above it, as far as it is known."""
    known = [f"{each.partition('*')[0]}/" for each in folders]
    return any(each.startswith(("/", f"{place.folder}/")) or f"{place.folder}/".startswith(each) for each in known)
