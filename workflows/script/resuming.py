"""How a script is told to go on: by a flag, by a path, or by itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import key_of
from argosy.workflows.script.places import SavedAt
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.values import Values

_KNOWN = ("resume", "resume_from_checkpoint", "resume_from", "resume_checkpoint", "resume_from_step", "auto_resume")
_NEVER = re.compile(
    r"(^|_)(no|not|dont|reset|lr|optimizer|optim|strict|only|id|run_id|wandb|weights|pretrain|pretrained)(_|$)"
)
_LOADED = re.compile(r"(^|_)(checkpoint|ckpt|restart|restore|snapshot|load|from|continue)(_|$)")
_AGAIN = re.compile(r"(continue|restore|restart)(_|$)")
NUMBERED = re.compile(r"^(resume|restore|restart|continue|load)_(from_)?(step|iter|iteration|epoch)s?$")
"""So is a flag called that names a checkpoint by its number."""
GOES_ON = re.compile(r"(?i)opt(\w*)?(\[\w+\])?\.load_state_dict|load_state_dict\([^)]*optim")
_READS = re.compile(r"^(?!DataLoader)\w*(load(?!er)|restore|resume)|^from_(pretrained|checkpoint)")
_MODELS = re.compile(r"(?i)model|net|module|ema|encoder|decoder|generator|discriminator|critic|actor|policy")
_PARTS = re.compile(r"\[f?['\"]\w*(opt|epoch|step|iter)\w*['\"]\](?!\s*=)|(loadtxt)\(")
"""What is taken of a state that was saved."""
STATE = "an optimizer's state"
LOADS = ("load", "load_weights", "load_file", "load_checkpoint", "load_model")
_NEWEST = "latest_checkpoint"
"""TensorFlow's, of a folder: all that was saved is restored of it."""
OF_MODEL = re.compile(
    r"(^|_)(checkpoint|ckpt|restore|load|weights|pretrained|pretrain|model|net\w*|resume|state_dict)(_|$)"
)
OTHERS = re.compile(r"teacher|vocab|encoder|eval|test|data|vgg|backbone|config")
COUNTS = re.compile(r"epoch|iter|step|session|^check")
_STARTS = re.compile(r"parts|pretrain|weights|init|finetune|teacher|vocab|encoder|eval|test")

_LOOKS_ON = re.compile(
    r"(?i)(^|_)(eval|test|valid|infer|predict|sampl|generat|demo|play|render|visual|plot|export|bench|finetun|pretrain)"
)
"""So is a switch called with which a script does something else than go on."""


def resume_flag(flags: Sequence[Flag], more: Sequence[str] = ()) -> Flag | None:
    """The flag that makes the script go on from its checkpoint; ``more``: what the library's users call it."""
    usable = [flag for flag in flags if not flag.name.startswith("--no")]
    # Its parameter may be called otherwise than it is: click.option("--resume", "go_on").
    named = {flag.name.lstrip("-").replace("-", "_"): flag for flag in usable}
    named |= {flag.attribute: flag for flag in usable}
    known = [*_KNOWN, *(name.lstrip("-").replace("-", "_") for name in more)]
    exact = next((named[name] for name in known if name in named), None)
    like = (flag for name, flag in named.items() if "resume" in name and not _NEVER.search(name))
    again = (flag for name, flag in named.items() if _AGAIN.match(name) and not flag.takes_value)
    numbered = (flag for name, flag in named.items() if NUMBERED.search(name) and flag.takes_value)
    return exact or next(like, None) or next(again, None) or next(numbered, None)


_NEWEST_WORDS = ("auto", "latest", "last")


def words_for_newest(source: Source) -> dict[str, str]:
    """Of each flag the word that makes the script look for its newest checkpoint: ``args.resume == "latest"``."""
    found = dict[str, str]()
    for node in source.nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            word = plain(node.comparators[0])
            if word in _NEWEST_WORDS:
                found.setdefault(last_name(node.left), word)
    return found


def goes_on(source: Source) -> bool:
    """Whether the script loads its optimizer's state."""
    return any(GOES_ON.search(ast.unparse(each)) for each in source.nodes if isinstance(each, ast.Module))


def not_loaded(source: Source, values: Values) -> str:
    """What a script does not load that trains with torch's optimizers, and gives no state to anything but models, as
    far as it is seen: what it reads is read by its own functions, and no library is asked to; "" where it may.
    """
    own = {*values.bindings.functions, "loadtxt", "loadAnns", "loadImgs", "loadCats", "loadRes"}  # pycocotools'
    text = "".join(ast.unparse(each) for each in source.nodes if isinstance(each, ast.Module))
    for call in source.calls:
        name = last_name(call.func)
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        first = owner.partition(".")[0]  # each of a table that may hold an optimizer, too, for module in all.values()
        turned = not _MODELS.search(first.replace("module", "")) and any(
            isinstance(each, ast.For) and first in _names(each.target) for each in source.above(call)
        )
        if _READS.search(name) and name not in own and (turned or not (
            (name in ("load", "load_file") and "opt" not in owner)
            or (name == "load_state_dict" and (_MODELS.search(owner) or f"{owner}.parameters()" in text
                                              or (owner == "self" and _is_of_a_model(call, source))))
        )):  # fmt: skip
            return ""
    parts = {each for found in _PARTS.findall(text) for each in found}
    pickled = (node.targets[0] for node in source.nodes if isinstance(node, ast.Assign)
               and isinstance(node.value, ast.Call) and last_name(node.value.func) == "load")  # fmt: skip
    if "torch.optim" not in text or "opt" in parts or any("optim" in name for each in pickled for name in _names(each)):
        return ""
    return STATE if parts else f"{STATE} or a step"


def _names(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_of_a_model(call: ast.Call, source: Source) -> bool:
    kind = source.class_of(call)
    return kind is not None and any(last_name(base) == "Module" for base in kind.bases)


def model_flag(source: Source, values: Values, whole: bool) -> tuple[Flag, str] | None:
    """The flag with the path of what is loaded, where a script loads nothing but its model; and the place.

    ``whole``: it loads its optimizer's state, too (:func:`goes_on`).
    """
    for call in () if whole else source.calls:
        of_saver = values.machine.named(call.func).endswith(".Saver().restore")
        if (last_name(call.func) in LOADS or of_saver) and call.args:
            flag, needed = values.untold(call.args[-1 if of_saver else 0]), values.machine.needed(call)
            if needed is None or not {*needed} <= {flag}:
                continue  # it is not come to in a training
            if flag is not None and OF_MODEL.search(flag.attribute) and not OTHERS.search(flag.attribute):
                return flag, source.where(call)
    return None


def folder_flags(source: Source, values: Values) -> frozenset[str]:
    """The flags that name the folder of what is loaded: ``torch.load(Path(args.load_path) / "net.pt")``."""
    loads = [call for call in source.calls if last_name(call.func) in (*LOADS, _NEWEST) and call.args]
    paths = [each.args[0] for each in loads if last_name(each.func) == _NEWEST
             or any(map(_is_below, (each.args[0], *values.bindings.origins(each.args[0]))))]  # fmt: skip
    named = [values.untold(path) for path in (*paths, *folders_of_deepspeed(source))]
    known = frozenset(flag.attribute for flag in named if flag is not None) - {*endings(source, values)}
    below = (values.flag(key_of(_first_of(each))) for each in source.nodes if isinstance(each, ast.expr)
             and _is_below(each))  # fmt: skip
    return known | (frozenset(flag.attribute for flag in below if flag is not None) - file_flags(source, values))


def endings(source: Source, values: Values) -> dict[str, str]:
    """The flags of which the name of a file is made, in a folder that is known, and what is put behind them, or else
    that folder, as "out/": ``torch.load(os.path.join(folder, args.resume + ".pth"))``.
    """
    loads = [call for call in source.calls if last_name(call.func) in LOADS and call.args]
    found = {flag.attribute: ending for call in loads for flag, ending in values.endings(call.args[0])}
    for call in loads:
        # Of a flag that is empty nothing stands between the folder and the ending.
        for folder, _, name in (each.rpartition("/") for each in values.machine.globs(call.args[0])):
            shown = [ast.unparse(each) for each in (call.args[0], *values.bindings.origins(call.args[0]))]
            for flag in (each for each in values.machine.needed(call) or () if each.takes_value and not each.default):
                if folder and name[:1] in ("", ".") and any(flag.attribute in each for each in shown):
                    found.setdefault(flag.attribute, name or f"{folder}/")
    alone = file_flags(source, values)
    return {name: ending for name, ending in found.items() if name not in alone}


def file_flags(source: Source, values: Values) -> frozenset[str]:
    """The flags that name a file: what they are given is loaded, or asked for, as it is."""
    named = set[str]()
    for call in source.calls:
        name = last_name(call.func)
        if name in LOADS or name in ("isfile", "is_file"):
            asked = call.args[:1] or ([call.func.value] if isinstance(call.func, ast.Attribute) else [])
            named |= {flag.attribute for each in asked for flag in values.flags_alone(each)}
    return frozenset(named)


def feeds_an_optimizer(call: ast.Call, source: Source) -> bool:
    """Whether what is loaded gets a name that an optimizer is given: ``optimizer.load_state_dict(loaded["optim"])``."""
    made = next(source.above(call), None)
    name = made.targets[0].id if isinstance(made, ast.Assign) and isinstance(made.targets[0], ast.Name) else ""
    around = source.function_of(call)
    return bool(name) and any(
        last_name(each.func) == "load_state_dict"
        and "optim" in ast.unparse(each.func).lower()
        and each.args
        and name in {node.id for node in ast.walk(each.args[0]) if isinstance(node, ast.Name)}
        and source.function_of(each) is around
        for each in source.calls
    )


def _is_below(path: ast.expr) -> bool:
    """Whether it is a file whose name is written down, in a folder."""
    if isinstance(path, ast.JoinedStr):
        first, behind = [*path.values, None, None][:2]
        return isinstance(first, ast.FormattedValue) and (plain(behind) or "")[:1] == "/"
    if isinstance(path, ast.BinOp):
        name = plain(path.right) or ""
        return isinstance(path.op, ast.Div) or (isinstance(path.op, ast.Add) and name[:1] == "/")
    if not (isinstance(path, ast.Call) and last_name(path.func) == "join" and path.args):
        return False
    return plain(path.args[-1]) is not None or ".pt" in ast.unparse(path.args[-1])


def _first_of(path: ast.expr) -> ast.expr:
    """What a path begins with: ``args.folder`` of ``Path(args.folder) / "net.pt"``."""
    first = path.values[0] if isinstance(path, ast.JoinedStr) and path.values else path
    if isinstance(first, ast.FormattedValue):
        return first.value
    if isinstance(path, ast.BinOp):
        return _first_of(path.left)
    inner = isinstance(path, ast.Call) and last_name(path.func) in ("join", "Path", "str") and path.args
    return _first_of(path.args[0]) if inner and isinstance(path, ast.Call) else path


def _flags_of(path: ast.expr, values: Values) -> list[Flag]:
    return [*values.machine.flags_in(path), *values.flags_alone(path)] or [*filter(None, [values.untold(path)])]


def loading_flag(source: Source, values: Values, whole: bool, itself: bool) -> Flag | None:
    """The flag with the path of what is loaded, where ``whole``: its optimizer's state, too; ``itself``: not told."""
    calls = (call for call in source.calls if call.args)
    known = [call for call in calls if last_name(call.func) == _NEWEST
             or (whole and last_name(call.func) == "load" and "torch" in ast.unparse(call.func))
             or values.machine.named(call.func).endswith("keras.models.load_model")]  # fmt: skip
    switch = resume_flag([*values.flags])
    for call in sorted(known, key=lambda call: not feeds_an_optimizer(call, source)):
        under = switch is not None and not switch.takes_value and _is_under(call, switch, source, values)
        own = under or (not itself and feeds_an_optimizer(call, source))
        for flag in _flags_of(call.args[0], values) or (_own_flags(call.args[0], values) if own else ()):
            likely = under or (_LOADED.search(flag.attribute) and not _STARTS.search(flag.attribute))
            told = not (flag.default or "").isdecimal() or COUNTS.search(flag.attribute)  # no seed, nor how many layers
            if flag.takes_value and (likely or (told and feeds_an_optimizer(call, source))):
                return flag
    return None


def switch_of_load(source: Source, values: Values, places: Sequence[SavedAt]) -> Flag | None:
    """The switch without which what was saved, with an optimizer's state, is not loaded, whatever it is called."""
    saved = [PurePosixPath(each.folder, each.pattern) for each in places]
    for call in (each for each in source.calls if last_name(each.func) in LOADS and each.args):
        needed = values.machine.needed(call) or ()
        own = any(PurePosixPath(glob) in saved for glob in values.guesses(call.args[0]))
        switch = len(needed) == 1 and (not needed[0].takes_value or needed[0].truth)
        if switch and own and feeds_an_optimizer(call, source) and not _ends_there(call, needed[0], source):
            return needed[0]
    return None


def _ends_there(call: ast.Call, switch: Flag, source: Source) -> bool:
    """Whether what is loaded is only looked at, as by ``--evaluate``: a restart would train no more, and end well."""
    around = next((each for each in source.above(call) if isinstance(each, ast.If)), None)
    inside = [one for each in (around.body if around is not None else ()) for one in ast.walk(each)]
    exits = [last_name(each.func) for each in inside if isinstance(each, ast.Call)]
    left = any(isinstance(each, ast.Return) for each in inside) or not {"exit", "_exit"}.isdisjoint(exits)
    return left or _LOOKS_ON.search(switch.attribute) is not None


def _is_under(call: ast.Call, switch: Flag, source: Source, values: Values) -> bool:
    """Whether the switch has to be given for it."""
    tests = (one for each in source.above(call) if isinstance(each, ast.If) for one in ast.walk(each.test))
    asked = any(getattr(one, "attr", "") == switch.attribute for one in tests)
    return (asked and switch.attribute in values.conditions.given) or switch in (values.machine.needed(call) or ())


def _own_flags(path: ast.expr, values: Values) -> list[Flag]:
    """The flag that a path is, whatever it says now: a file of somebody's choice, and none that was saved here."""
    known = (values.flag(key_of(each)) for each in (path, *values.bindings.origins(path)))
    return [each for each in known if each is not None and each.takes_value]


def folders_of_deepspeed(source: Source) -> list[ast.expr]:
    """What its ``load_checkpoint`` is given: a folder, of which it takes the newest."""
    loads = (
        call for call in source.calls if last_name(call.func) == "load_checkpoint" and "deepspeed" in source.packages
    )
    return [place for call in loads if (place := argument(call, "load_dir", 0)) is not None]
