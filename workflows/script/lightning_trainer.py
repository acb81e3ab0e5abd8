"""How a script saves that leaves it to Lightning: its Trainer, one of flags or of Hydra's files, its command line."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Sequence
from copy import deepcopy
from pathlib import PurePath

from argosy.workflows.script.globs import UNKNOWN
from argosy.workflows.script.lines import loops_around
from argosy.workflows.script.settings import RUN_DIR, Settings
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.trainer import TrainerFacts, certain, resumes_by, started
from argosy.workflows.script.values import Values

_OF_FLAGS = "from_argparse_args"
_PARTS = frozenset({"DeepSpeedStrategy", "FSDPStrategy", "ModelParallelStrategy"})
"""Whose checkpoints may be folders."""


def lightning(source: Source, values: Values, settings: Settings) -> TrainerFacts | None:
    """What the calls that make a Trainer say; None where none is made."""
    return _made(source, values, settings) or _composed(source, settings)


def lightning_alone(source: Source, values: Values) -> tuple[str, int] | None:
    """Where a Trainer of Lightning's is told to save nothing, since the script does, and its devices."""
    kept = [value for _, value in values.bindings.attributes.get("enable_checkpointing", [])]
    for call in (each for each in source.calls if last_name(each.func) in ("Trainer", _OF_FLAGS)):
        of_flags = last_name(call.func) == _OF_FLAGS
        saves = next(iter(kept), None) if of_flags else argument(call, "enable_checkpointing")
        known = [] if saves is None else values.machine.seen.get(saves)
        told = values.machine.unpacked.get(call, {}).get("enable_checkpointing")
        if _is_false(saves) or known == [False] or told is False:
            return source.where(call), _devices(call, values) or 1
    return None


def _made(source: Source, values: Values, settings: Settings) -> TrainerFacts | None:
    trainer = _trainer_of(source, values)
    if trainer is None:
        return None
    kinds = ("ModelCheckpoint", *(name for name, known in values.bindings.classes.items() for kind in known
                                  if any(last_name(base) == "ModelCheckpoint" for base in kind.bases)))  # fmt: skip
    saver = next((call for call in source.calls if last_name(call.func) in kinds), None)
    place = None if saver is None else argument(saver, "dirpath", 0)
    by_cli, of_flags = (last_name(trainer.func) == each for each in ("LightningCLI", _OF_FLAGS))
    resumes = "variable" if by_cli else resumes_by(source.calls, "fit", "ckpt_path")
    resumes = resumes or resumes_by([trainer], "Trainer", "resume_from_checkpoint")
    folder, include = (None if place is None else certain(values, place)), ("*.ckpt",)
    before_1 = None if saver is None else argument(saver, "filepath")  # the folder and the name in one
    if before_1 is not None:
        place, folder = before_1, _folder_around(values, before_1)
    turns = resumes and _turned_through(source, trainer)
    if place is not None and folder is None and (turns or of_flags or values.flag("resume") is not None):
        # Of a run's own folder the flag names the file to go on from; of a model's own, its turn of a loop.
        first, _, below = (values.folder(place) or "*").partition("/")
        folder, include = (None, include) if "*" in first else (first, (f"{below}/*.ckpt",))
    named_by = str((settings.saver or {}).get("dirpath") or "") if place is None else ""
    if named_by and "*" not in (resolved := posixpath.normpath(settings.resolved(named_by))):
        folder = resolved
    elif place is None and resumes and not (settings.hydra and argument(trainer, "callbacks") is not None):
        # Without a dirpath they go where its logger writes; each start has a version of its own there.
        told = values.machine.unpacked.get(trainer, {})
        none = told.get("logger") in (False, []) or _is_false(_setting(trainer, "logger"))
        folder, include = ("checkpoints", include) if none else ("lightning_logs", ("version_*/checkpoints/*.ckpt",))
        if isinstance(root := told.get("default_root_dir"), str | PurePath):
            folder = posixpath.normpath(posixpath.join(values.machine.glob(str(root)), folder))
            folder = None if {"*", UNKNOWN} & {*folder} else folder
        folder = folder if isinstance(_setting(trainer, "logger"), ast.Constant | None) else None
    bare = saver is not None and _is_true(_setting(saver, "save_weights_only"))
    folder = None if bare else folder
    globs = (*include, *(f"{each}/**/*" for each in include)) if _may_be_folders(source) else include
    plugins = (each for each in source.nodes if isinstance(each, ast.ClassDef)
               and any(last_name(base).endswith("CheckpointIO") for base in each.bases))  # fmt: skip
    name_it = "name the folder with --opaque FOLDER, and what it goes on from with --resume-arg"
    own = next((f"{source.where(each)} has a CheckpointIO of its own: {name_it}" for each in plugins),
               "" if before_1 is None else name_it)  # fmt: skip
    return TrainerFacts(
        library=f"lightning.{last_name(trainer.func)}",
        where=source.where(saver or trainer),
        folder=folder,
        remedy=own or "write the lines above into it, and call argosy init again",
        lacks="saves weights only, which it cannot go on from" if bare else TrainerFacts.lacks,
        lines="" if own else _lines(source, trainer),
        include=globs,
        unit=_unit(saver) if include[0] == "*.ckpt" and before_1 is None else (),
        newest=_last(saver, include[0]),
        resume_flags=() if of_flags else ("--ckpt_path", "--ckpt-path", *_setting_of_fit(source.calls, trainer)),
        resume_args=_words_of_parser(by_cli, of_flags and not resumes),
        resumes=resumes,
        start=_start(source, trainer, saver, None if before_1 is None else repr(f"{folder}/last.ckpt")),
        args=("fit",) if by_cli and not _is_false(_setting(trainer, "run")) else (),
        devices=_devices(trainer, values),
    )


def _words_of_parser(by_cli: bool, of_flags: bool) -> tuple[str, ...]:
    """What its own parser, whose flags the script does not show, takes to go on."""
    return ("--ckpt_path", "{newest}") if by_cli else ("--resume_from_checkpoint", "{newest}") if of_flags else ()


def _devices(trainer: ast.Call, values: Values) -> int | None:
    """How many it is told of, by a flag, too."""
    said, flag = argument(trainer, "devices"), values.conditions.flag
    of_flags = flag("devices") or flag("gpus") if last_name(trainer.func) == _OF_FLAGS else None
    number = of_flags or plain(said) or flag("" if said is None else last_name(said)) or ""
    return int(number) if number.isdecimal() and number != "0" else None


def _trainer_of(source: Source, values: Values) -> ast.Call | None:
    """The call that makes the Trainer; of several one that a run comes to, beside a call of ``fit``."""
    made = [call for call in source.calls if last_name(call.func) in ("Trainer", "LightningCLI", _OF_FLAGS)]
    near = any(call in values.machine.calls or not source.file(call) for call in made)
    if (values.machine.followed or values.machine.finished) and not near:
        return None  # a module beside it has one, which nothing comes to
    fits = [source.function_of(call) for call in source.calls if last_name(call.func) == "fit"]
    made.sort(key=lambda call: (call not in values.machine.calls, source.function_of(call) not in fits))
    return next(iter(made), None)


def _start(source: Source, trainer: ast.Call, saver: ast.Call | None, last: str | None) -> str:
    """What makes it go on; ``last``: the file, for a Lightning before 1, whose fit takes none."""
    on = started(source.calls, source, "fit", "ckpt_path", "'last'")
    if last is not None:
        on = f"resume_from_checkpoint={last} if os.path.exists({last}) else None into {source.where(trainer)}"
    has = saver is not None and _is_true(_setting(saver, "save_last"))
    return on if has else f"{on}; save_last=True in its ModelCheckpoint"


def _folder_around(values: Values, path: ast.expr) -> str | None:
    """Of a file the folder, of which everything is known."""
    folder = posixpath.dirname(values.folder(path) or "")
    return None if not folder or "*" in folder else folder


def _may_be_folders(source: Source) -> bool:
    return any(last_name(call.func) in _PARTS for call in source.calls)


def _unit(saver: ast.Call | None) -> tuple[str, ...]:
    """What names each of its checkpoints, where the script gives them no name of its own."""
    if saver is None or argument(saver, "filename", 1) is not None:
        return ()
    return ("[0-9]*-*.ckpt" if _is_false(_setting(saver, "auto_insert_metric_name")) else "epoch=*.ckpt",)


def _last(saver: ast.Call | None, include: str) -> str:
    """The glob of what each save writes anew, where a copy of the best may be newer; "" where units are known."""
    if saver is None or not _is_true(_setting(saver, "save_last")) or _unit(saver):
        return ""
    return f"{include.removesuffix('*.ckpt')}last*.ckpt"


def _lines(source: Source, trainer: ast.Call) -> str:
    """What makes it save into a folder of its own and go on, around its own calls."""
    folder, newest = "'checkpoints'", "'checkpoints/last.ckpt'"
    if (one := _turned_through(source, trainer)) is not None:  # each turn trains another model
        folder, newest = f"f'checkpoints/{{{one}}}'", f"f'checkpoints/{{{one}}}/last.ckpt'"
    saver = ast.parse(f"ModelCheckpoint(dirpath={folder}, save_last=True)", mode="eval").body
    made, known = deepcopy(trainer), argument(trainer, "callbacks")
    own = [*known.elts] if isinstance(known, ast.List) else [] if known is None else [ast.Starred(known)]
    made.keywords = [word for word in made.keywords if word.arg != "callbacks"]
    made.keywords.append(ast.keyword("callbacks", ast.List([*own, saver], ast.Load())))
    base = "lightning.pytorch" if "lightning" in source.packages else "pytorch_lightning"
    told = [f"at the top: import os; from {base}.callbacks import ModelCheckpoint"]
    told.append(f"{source.where(trainer)}: {ast.unparse(made)}")
    told.append(started(source.calls, source, "fit", "ckpt_path", f"{newest} if os.path.exists({newest}) else None"))
    return "\n".join(f"    {line}" for line in told if line)


def _turned_through(source: Source, trainer: ast.Call) -> str | None:
    """What a loop around it counts, or goes through, by one name."""
    loop = next((each for each in loops_around(trainer, source) if isinstance(each, ast.For)), None)
    return loop.target.id if loop is not None and isinstance(loop.target, ast.Name) else None


def _setting_of_fit(calls: Sequence[ast.Call], trainer: ast.Call) -> list[str]:
    """``trainer.fit(model, ckpt_path=config.train.ckpt)``, ``Trainer(resume_from_checkpoint=args.ckpt)``."""
    given = [argument(call, "ckpt_path") for call in calls if last_name(call.func) == "fit"]
    given.append(argument(trainer, "resume_from_checkpoint"))
    return [each.attr for each in given if isinstance(each, ast.Attribute)]


def _composed(source: Source, settings: Settings) -> TrainerFacts | None:
    """Lightning as Hydra's files have it: ``hydra.utils.instantiate(cfg.trainer)``."""
    made = next((call for call in source.calls if last_name(call.func) == "instantiate"), None)
    saver = next((call for call in source.calls if last_name(call.func) == "ModelCheckpoint"), None)
    if made is None or (settings.saver is None and saver is None):
        return None
    folder = settings.resolved(str((settings.saver or {}).get("dirpath") or "*"))
    say = f"argosy init SCRIPT{' --opaque out --include GLOB' * (settings.saver is None)} -- {RUN_DIR}=out"
    return TrainerFacts(
        library="lightning.Trainer",
        where=source.where(made),
        folder=None if "*" in folder else folder,
        remedy=f"give all starts one, as in `{say}`, or name it with --opaque FOLDER",
        include=("*.ckpt",),
        resume_flags=("ckpt_path", "resume_from_checkpoint"),
        resumes=resumes_by(source.calls, "fit", "ckpt_path"),
    )


def _setting(call: ast.Call, name: str) -> ast.expr | None:
    """A keyword of the call, or of a dict that it is given."""
    for word in call.keywords:
        if word.arg == name:
            return word.value
        if isinstance(word.value, ast.Dict):
            for key, value in zip(word.value.keys, word.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name:
                    return value
    return None


def _is_false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True
