"""Whether what a restart asks of a checkpoint is in what the script saves: from the loading call to the saving ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Source, last_name, plain
from argosy.workflows.script.values import Values

_KEEPS = re.compile(r"(?i)save|dump|copy|print|len|write|log|keys|items")
_OF_MANY = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def not_saved(source: Source, values: Values, places: Sequence[SavedAt], flag: Flag | None) -> str:
    """Where a key is asked of what ``flag`` names that no save puts in it; "" where that is not certain."""
    at = {each.where for each in places}
    saving = [
        call for call in source.calls if source.where(call) in at and call.args and last_name(call.func) != "load"
    ]
    contents = [_keys(call.args[0], source, values) for call in saving]
    if flag is None or not contents or None in contents:
        return ""
    known = {key for each in contents for key in each or ()}
    for node in _asked(source, values, flag):
        key = plain(node.slice)
        if key is not None and key not in known:
            return f"{source.where(node)} asks for {key!r} in it, which {source.where(saving[0])} does not save"
    return ""


def _keys(node: ast.expr, source: Source, values: Values, depth: int = 3) -> frozenset[str] | None:
    """The keys of a dict that is written out, also by several callers; a model's state has none. None: not known."""
    if isinstance(node, ast.Dict):
        names = [plain(key) for key in node.keys]
        return None if None in names else frozenset(each for each in names if each)
    if isinstance(node, ast.Call) and last_name(node.func) == "state_dict":
        return frozenset()
    if isinstance(node, ast.Call) and last_name(node.func) == "dict" and not node.args:
        told = [word.arg for word in node.keywords]
        return None if None in told else frozenset(each for each in told if each)
    if isinstance(node, ast.IfExp):
        parts = [_keys(each, source, values, depth) for each in (node.body, node.orelse)]
    elif isinstance(node, ast.Name) and depth:
        changed = _gets_more(node, source)
        parts = [] if changed else [_keys(each, source, values, depth - 1) for each in values.bindings.origins(node)]
    else:
        return None
    return None if not parts or None in parts else frozenset(key for each in parts for key in each or ())


def _gets_more(name: ast.Name, source: Source) -> bool:
    """Whether something is put into it after it was made, perhaps by a function that it is given to."""
    around = source.function_of(name)
    for node in source.nodes:
        if source.function_of(node) is not around:
            continue
        if isinstance(node, ast.Subscript | ast.Attribute) and ast.unparse(node.value) == name.id:
            if isinstance(node.ctx, ast.Store) or getattr(node, "attr", "") in ("update", "setdefault"):
                return True
        elif isinstance(node, ast.Call) and not _KEEPS.search(last_name(node.func)):
            told = [*node.args, *(word.value for word in node.keywords)]
            if any(isinstance(each, ast.Name) and each.id == name.id and each is not name for each in told):
                return True
    return False


def _asked(source: Source, values: Values, flag: Flag) -> Iterator[ast.Subscript]:
    """``checkpoint["iter"]`` of ``checkpoint = torch.load(args.resume)``, where nothing asks whether it is there."""
    for call in source.calls:
        made = next(source.above(call), None)
        if last_name(call.func) != "load" or not isinstance(made, ast.Assign) or not _is_given(flag, call, values):
            continue
        names, around = {*map(ast.unparse, made.targets)}, source.function_of(call)
        for node in source.nodes:
            if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and ast.unparse(node.value) in names
                    and source.function_of(node) is around and source.file(node) == source.file(call)
                    and not _may_miss(node, names, source)):  # fmt: skip
                yield node


def _is_given(flag: Flag, call: ast.Call, values: Values) -> bool:
    return bool(call.args) and flag in values.flags_alone(call.args[0])


def _may_miss(node: ast.Subscript, names: set[str], source: Source) -> bool:
    """Whether it stands under a test of what is there, also of another key, or where an error is caught."""
    key = ast.unparse(node.slice)
    for each in source.above(node):
        if isinstance(each, ast.Try):
            return True
        if isinstance(each, ast.If | ast.IfExp) and node not in ast.walk(each.test):
            asked = (one for test in ast.walk(each.test) if isinstance(test, ast.Compare) for one in test.comparators)
            if key in ast.unparse(each.test) or any(ast.unparse(one).removesuffix(".keys()") in names for one in asked):
                return True
    return False


def given_early(source: Source) -> str:
    """Where a name gets a state before it is made, at which a restart fails; "" for nowhere."""
    for call in source.calls:
        owner = (
            call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict" else None
        )
        around = source.function_of(call)
        if not isinstance(owner, ast.Name) or around is None or owner.id in {each.arg for each in ast.walk(around.args)
                                                                            if isinstance(each, ast.arg)}:  # fmt: skip
            continue
        own = [each for each in ast.walk(around) if source.function_of(each) is around]
        made = [each.lineno for each in own if isinstance(each, ast.Name) and each.id == owner.id
                and isinstance(each.ctx, ast.Store)]  # fmt: skip
        made += [each.lineno for each in own if isinstance(each, ast.Import | ast.ImportFrom)
                 and owner.id in {name.asname or name.name for name in each.names}]  # fmt: skip
        shared = any(isinstance(each, ast.Global | ast.Nonlocal) for each in own)
        looped = any(isinstance(each, ast.For | ast.While | _OF_MANY) for each in source.above(call))
        if made and min(made) > call.lineno and not shared and not looped:
            return f"{source.where(call)} gives {owner.id} its state before line {min(made)} makes it"
    return ""
