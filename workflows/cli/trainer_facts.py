"""How a script saves that leaves it to a library: Hugging Face's Trainer, Lightning, DeepSpeed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from argosy.workflows.cli.path_guess import Names, guess

_PARSER = "HfArgumentParser"
_ZERO = "zero_optimization"


@dataclass(frozen=True)
class TrainerFacts:
    """``folder`` None: where it saves cannot be read, and ``remedy`` says what to do; ``line`` is the script's.

    ``include``, ``expect`` and ``marker`` are those of ``[checkpoint]``; ``expect`` holds for several ranks only.
    ``resume_args``: what makes it go on, where the script itself declares no flag for that; ``resumes`` False: the
    script never asks the library to go on.
    """

    library: str
    line: int
    folder: str | None
    remedy: str = ""
    include: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    marker: str = ""
    resume_flags: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    resumes: str = ""
    devices: int | None = None


def trainer_facts(nodes: Sequence[ast.AST], names: Names) -> TrainerFacts | None:
    """What the script's calls say; None where no library saves."""
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    if imported & {"lightning", "pytorch_lightning"}:
        return _lightning(calls, names)
    if "deepspeed" in imported and (found := _deepspeed(nodes, calls, names)) is not None:
        return found
    return _transformers(calls, names) if "transformers" in imported or "trl" in imported else None


def _transformers(calls: Sequence[ast.Call], names: Names) -> TrainerFacts | None:
    trainer = next((call for call in calls if _name(call).endswith("Trainer")), None)
    settings = next((call for call in calls if _name(call).endswith(("TrainingArguments", "SFTConfig"))), None)
    parser = next((call for call in calls if _name(call) == _PARSER), None)
    if trainer is None or (settings is None and parser is None):
        return None
    place = _argument(settings, 0, "output_dir") if settings is not None else None
    folder = guess(place, names) if place is not None else names.flags.get("output_dir") if parser else None
    resumes = _resumes(calls, "train", "resume_from_checkpoint")
    declared = settings is None and parser is not None and resumes == "variable"
    return TrainerFacts(
        library=f"transformers.{_name(trainer)}",
        line=(settings or trainer).lineno,
        folder=folder,
        remedy="say where, as in `argosy init SCRIPT -- --output_dir out`, or name the folder with --opaque FOLDER",
        include=("checkpoint-*/**/*",),
        expect=("rng_state_{rank}.pth",),
        marker="trainer_state.json",
        resume_args=("--resume_from_checkpoint", "{newest}") if declared else (),
        resumes=resumes,
    )


def _lightning(calls: Sequence[ast.Call], names: Names) -> TrainerFacts | None:
    trainer = next((call for call in calls if _name(call) == "Trainer"), None)
    if trainer is None:
        return None
    saver = next((call for call in calls if _name(call) == "ModelCheckpoint"), None)
    place = _argument(saver, 0, "dirpath") if saver is not None else None
    devices = _argument(trainer, -1, "devices")
    return TrainerFacts(
        library="lightning.Trainer",
        line=(saver or trainer).lineno,
        folder=None if place is None else guess(place, names),
        remedy="give it a fixed folder, as in ModelCheckpoint(dirpath='checkpoints')",
        include=("*.ckpt",),
        resume_flags=("--ckpt_path", "--ckpt-path"),
        resumes=_resumes(calls, "fit", "ckpt_path"),
        devices=devices.value if isinstance(devices, ast.Constant) and isinstance(devices.value, int) else None,
    )


def _deepspeed(nodes: Sequence[ast.AST], calls: Sequence[ast.Call], names: Names) -> TrainerFacts | None:
    saver = next((call for call in calls if _name(call) == "save_checkpoint" and call.args + call.keywords), None)
    if saver is None or not isinstance(saver.func, ast.Attribute):
        return None
    place = _argument(saver, 0, "save_dir")
    zero = any(isinstance(node, ast.Constant) and node.value == _ZERO for node in nodes)
    return TrainerFacts(
        library="DeepSpeed",
        line=saver.lineno,
        folder=None if place is None else guess(place, names),
        remedy="name the folder with --opaque FOLDER (relative, as the script writes it)",
        expect=("*zero_pp_rank_{rank}_*optim_states.pt",) if zero else (),
        marker="latest",
        resumes="variable" if any(_name(call) == "load_checkpoint" for call in calls) else "",
    )


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _argument(call: ast.Call, position: int, keyword: str) -> ast.expr | None:
    if 0 <= position < len(call.args):
        return call.args[position]
    return next((word.value for word in call.keywords if word.arg == keyword), None)


def _resumes(calls: Sequence[ast.Call], method: str, keyword: str) -> str:
    """ "variable": the script's arguments decide; "itself": it looks for its newest checkpoint; "": never."""
    given = [_argument(call, -1, keyword) for call in calls if _name(call) == method]
    found = next((value for value in given if value is not None), None)
    if found is None or (isinstance(found, ast.Constant) and not found.value):
        return ""
    looks = isinstance(found, ast.Constant) or any(_name(call) == "get_last_checkpoint" for call in calls)
    return "itself" if looks else "variable"
