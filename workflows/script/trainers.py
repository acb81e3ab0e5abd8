"""How a script saves that leaves it to a library: Hugging Face's Trainer, Lightning, DeepSpeed, Ray Train."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import PurePath

from argosy.workflows.script.domain import Table
from argosy.workflows.script.globs import UNKNOWN
from argosy.workflows.script.hugging_face import PARSERS, transformers
from argosy.workflows.script.lines import loops_around
from argosy.workflows.script.ray_train import ray_train
from argosy.workflows.script.resuming import folders_of_deepspeed
from argosy.workflows.script.settings import RUN_DIR, Settings
from argosy.workflows.script.source import Source, argument, last_name, plain
from argosy.workflows.script.trainer import TrainerFacts, certain, resumes_by, started
from argosy.workflows.script.values import Values

_ZERO = "zero_optimization"
_OF_FLAGS = "from_argparse_args"
_PARTS = frozenset({"DeepSpeedStrategy", "FSDPStrategy", "ModelParallelStrategy"})
"""Whose checkpoints may be folders."""


_SOME = TrainerFacts("", "", None, resumes="variable")
_BY_A_SETTING = (
    (("mmengine", "mmcv"), "fromfile", "work_dir", "*", "CONFIG --work-dir out",
     replace(_SOME, include=("*.pth", "last_checkpoint"), newest="[ei][pt]*_*.pth")),
    (("detectron2",), "default_argument_parser", "OUTPUT_DIR", "output", "OUTPUT_DIR out",
     replace(_SOME, include=("*.pth", "last_checkpoint"), resume_args=("--resume",))),
    (("fairseq",), "get_training_parser", "save_dir", "checkpoints", "DATA --save-dir out",
     replace(_SOME, include=("checkpoint*.pt",), resumes="itself")),
    (("speechbrain",), "load_hyperpyyaml", "save_folder", "*", "hparams/train.yaml --output_folder out",
     replace(_SOME, unit=("CKPT+*",), resumes="itself")),
    (("megatron",), "pretrain", "save", "*", "--save out --load out",
     replace(_SOME, include=("iter_*/**/*", "latest_checkpointed_iteration.txt"), unit=("iter_*",),
             expect=("__{rank}_*.distcp",), resume_args=("--load", "{path}"), resumes="itself")),
)  # fmt: skip
"""How a library is imported, what a training calls, the setting, its default, how to say it, what it writes."""


def trainer_facts(source: Source, values: Values, settings: Settings, own: bool) -> TrainerFacts | None:
    """What the script's calls say; None where no library saves. ``own``: the script saves whole states itself."""
    imported = source.packages
    if (found := ray_train(source, values)) is not None:
        return found
    if imported & {"lightning", "pytorch_lightning"} and lightning_alone(source, values) is None:
        return _lightning(source, values, settings) or _composed(source, settings)
    settings_of_hf = {last_name(call.func) for call in source.calls} & {*PARSERS, "TrainingArguments"}
    if settings_of_hf and "transformers" in imported and (found := transformers(source, values)) is not None:
        return found
    if "deepspeed" in imported and not own and (found := _deepspeed(source, values, settings)) is not None:
        return found
    if not own and (found := _by_a_setting(source, values)) is not None:
        return found
    return transformers(source, values) if "transformers" in imported or "trl" in imported else None


def lightning_alone(source: Source, values: Values) -> tuple[str, int] | None:
    """Where a Trainer of Lightning's is told to save nothing, since the script does, and its devices."""
    kept = [value for _, value in values.bindings.attributes.get("enable_checkpointing", [])]
    for call in (each for each in source.calls if last_name(each.func) in ("Trainer", _OF_FLAGS)):
        of_flags = last_name(call.func) == _OF_FLAGS
        saves = next(iter(kept), None) if of_flags else argument(call, "enable_checkpointing")
        devices: ast.expr | None = ast.Name(id="devices") if of_flags else argument(call, "devices")
        known = [] if saves is None else values.machine.seen.get(saves)
        told = values.machine.unpacked.get(call, {}).get("enable_checkpointing")
        if _is_false(saves) or known == [False] or told is False:
            number = plain(devices) or values.conditions.flag("" if devices is None else last_name(devices)) or ""
            return source.where(call), int(number) if number.isdecimal() and number != "0" else 1
    return None


def _by_a_setting(source: Source, values: Values) -> TrainerFacts | None:
    """Of a library that saves where a setting of its own says, in code that the script does not show."""
    for roots, name, setting, default, say, facts in _BY_A_SETTING:
        call = next((call for call in source.calls if last_name(call.func) == name), None)
        if call is not None and source.packages & {*roots} and _names(source, setting):
            folder = posixpath.normpath(values.conditions.flag(setting) or _made_known(values, setting) or default)
            remedy = f"say where, as in `argosy init SCRIPT -- {say}`, or name the folder with --opaque FOLDER"
            known = None if "*" in folder else folder
            return replace(facts, library=roots[0], where=source.where(call), folder=known, remedy=remedy)
    return None


def _made_known(values: Values, setting: str) -> str:
    """What the settings that the script hands on have by that name; "" for what only a run could tell."""
    tables = (each for known in values.machine.seen.values() for each in known if isinstance(each, Table))
    found = {values.machine.glob(values.machine.text(each[setting])) for each in tables
             if isinstance(each.get(setting), str | PurePath)}  # fmt: skip
    return found.pop().replace(UNKNOWN, "*") if len(found) == 1 else ""


def _names(source: Source, setting: str) -> bool:
    """Whether the script knows of a setting: its library may read its files only."""
    told = {setting, setting.replace("_", "-"), f"--{setting}", f"--{setting.replace('_', '-')}"}
    if setting != "work_dir" or not any(last_name(call.func).startswith("save") for call in source.calls):
        return True
    return any(getattr(node, "attr", getattr(node, "value", None)) in told for node in source.nodes
               if isinstance(node, ast.Attribute | ast.Constant))  # fmt: skip


def _lightning(source: Source, values: Values, settings: Settings) -> TrainerFacts | None:
    made = [call for call in source.calls if last_name(call.func) in ("Trainer", "LightningCLI")]
    near = any(call in values.machine.calls or not source.file(call) for call in made)
    trainer = next(iter(made), None)
    if trainer is None or ((values.machine.followed or values.machine.finished) and not near):
        return None  # a module beside it has one, which nothing comes to
    kinds = ("ModelCheckpoint", *(name for name, known in values.bindings.classes.items() for kind in known
                                  if any(last_name(base) == "ModelCheckpoint" for base in kind.bases)))  # fmt: skip
    saver = next((call for call in source.calls if last_name(call.func) in kinds), None)
    place = None if saver is None else argument(saver, "dirpath", 0)
    devices = argument(trainer, "devices")
    by_cli = last_name(trainer.func) == "LightningCLI"
    resumes = "variable" if by_cli else resumes_by(source.calls, "fit", "ckpt_path")
    resumes = resumes or resumes_by([trainer], "Trainer", "resume_from_checkpoint")
    folder, include = (None if place is None else certain(values, place)), ("*.ckpt",)
    before_1 = None if saver is None else argument(saver, "filepath")  # the folder and the name in one
    if before_1 is not None:
        place, folder = before_1, _folder_around(values, before_1)
    turns = resumes and _turned_through(source, trainer)
    if place is not None and folder is None and (turns or values.flag("resume") is not None):
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
        lacks="saves weights only, which it cannot go on from" if bare else _SOME.lacks,
        lines="" if own else _lines(source, trainer),
        include=globs,
        unit=_unit(saver) if include[0] == "*.ckpt" and before_1 is None else (),
        newest=_last(saver, include[0]),
        resume_flags=("--ckpt_path", "--ckpt-path", *_setting_of_fit(source.calls, trainer)),
        resume_args=("--ckpt_path", "{newest}") if by_cli else (),
        resumes=resumes,
        start=_start(source, trainer, saver, None if before_1 is None else repr(f"{folder}/last.ckpt")),
        args=("fit",) if by_cli and not _is_false(_setting(trainer, "run")) else (),
        devices=devices.value if isinstance(devices, ast.Constant) and isinstance(devices.value, int) else None,
    )


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


def _deepspeed(source: Source, values: Values, settings: Settings) -> TrainerFacts | None:
    saver = next(
        (call for call in source.calls if isinstance(call.func, ast.Attribute) and not source.origin(call.func)
         and call.func.attr == "save_checkpoint" and call.args + call.keywords), None
    )  # fmt: skip
    if saver is None or (values.machine.followed and saver not in values.machine.calls):
        return None
    place = argument(saver, "save_dir", 0)
    zero = any(isinstance(node, ast.Constant) and node.value == _ZERO for node in source.nodes) or settings.has(_ZERO)
    loads = [call for call in source.calls if last_name(call.func) == "load_checkpoint"]
    told = [flag for place in folders_of_deepspeed(source) if (flag := values.untold(place)) is not None]
    itself = any(not any(isinstance(each, ast.If) for each in source.above(call)) for call in loads)
    return TrainerFacts(
        library="DeepSpeed",
        where=source.where(saver),
        folder=None if place is None else certain(values, place),
        remedy="name the folder with --opaque FOLDER (relative, as the script writes it)"
        + "".join(f", and --resume-arg={flag.name} --resume-arg=FOLDER, which goes on from it" for flag in told[:1]),
        resume_flags=tuple(flag.name for flag in told[:1]),
        expect=("*zero_pp_rank_{rank}_*optim_states.pt",) if zero else (),
        marker="latest",
        resumes="itself" if itself else "variable" if loads else "",
    )
