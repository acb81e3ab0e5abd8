"""How a script saves that leaves it to a library: Hugging Face's Trainer, Lightning, DeepSpeed, Ray Train."""

from __future__ import annotations

import ast
import posixpath
from dataclasses import replace
from pathlib import PurePath

from argosy.workflows.script.domain import Table
from argosy.workflows.script.globs import UNKNOWN
from argosy.workflows.script.hugging_face import PARSERS, transformers
from argosy.workflows.script.lightning_trainer import lightning, lightning_alone
from argosy.workflows.script.ray_train import ray_train
from argosy.workflows.script.resuming import folders_of_deepspeed
from argosy.workflows.script.settings import Settings
from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.trainer import TrainerFacts, certain
from argosy.workflows.script.values import Values

_ZERO = "zero_optimization"
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
        return lightning(source, values, settings)
    settings_of_hf = {last_name(call.func) for call in source.calls} & {*PARSERS, "TrainingArguments"}
    if settings_of_hf and "transformers" in imported and (found := transformers(source, values)) is not None:
        return found
    if "deepspeed" in imported and not own and (found := _deepspeed(source, values, settings)) is not None:
        return found
    if not own and (found := _by_a_setting(source, values)) is not None:
        return found
    return transformers(source, values) if "transformers" in imported or "trl" in imported else None


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
