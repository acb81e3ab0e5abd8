"""The calls that write checkpoints: torch's own, and those of libraries."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from argosy.workflows.script.source import Function, Source, argument, last_name
from argosy.workflows.script.values import Values

_OF_TORCH = ("torch", "th", "safetensors", "xm", "accelerator")
_FILES = {"save": 1, "save_file": 1}
"""torch.save(state, path), safetensors.torch.save_file(state, path): which argument is the path."""
MOVES = ("replace", "rename", "move")
OF_LIGHTNING = "save_checkpoint"
"""Its Trainer saves all of a training by it, where the script, or a callback of its own, says."""
_BYTES = ("to_bytes", "msgpack_serialize")
"""What makes bytes of a state, which the script writes itself: flax's."""
SAVER = "-*"
"""What TensorFlow's Saver adds to a name; beside it lies a file ``checkpoint`` that names the newest."""
BY_SAVER = (SAVER, ".*")
"""So it does with a step, and without."""
_STATE = ("optim", "opt_state", "epoch", "step", "iter", "sched")
"""What a checkpoint holds beside the model: it names one that a run can go on from."""
_LEARNT = ("optim", "opt_state", "param", "model", "weight", "state_dict")
"""What is in a checkpoint, and in no file of losses."""
_WHOLE = re.compile(r"(?i)(^|_)(model|net|network|agent|policy|clf|classifier|regressor|estimator)$")
"""So is an object called that is pickled as it is."""
_PICKLES = ("pickle.dump", "dill.dump", "cloudpickle.dump", "joblib.dump")
NUMBERED = "*[0-9]"
"""Folders that are named by a number, and perhaps a word before it; while they are written another follows it."""
_TF = ("keras", "tensorflow", "tf_keras")
_LIBRARIES: tuple[tuple[tuple[str, ...], str, int, str, str], ...] = (
    (_TF, "Sequential().save", 0, "filepath", ""),
    (_TF, "Model().save", 0, "filepath", ""),
    (_TF, ".ModelCheckpoint", 0, "filepath", ""),
    (_TF, ".BackupAndRestore", 0, "backup_dir", "/**/*"),
    (_TF, ".CheckpointManager", 1, "directory", "/**/*"),
    (_TF, ".Saver().save", 1, "save_path", SAVER),
    (_TF, ".Estimator", 1, "model_dir", f"/model.ckpt{SAVER}"),
    (_TF, ".RunConfig", 0, "model_dir", f"/model.ckpt{SAVER}"),
    (("flax",), ".save_checkpoint", 0, "ckpt_dir", "/checkpoint_*/**/*"),
    (("flax",), ".save_checkpoint_multiprocess", 0, "ckpt_dir", "/checkpoint_*/**/*"),
    (("orbax",), ".CheckpointManager", 0, "directory", f"/{NUMBERED}/**/*"),
    (("equinox",), ".tree_serialise_leaves", 0, "path_or_file", ""),
    (("ignite",), ".DiskSaver", 0, "dirname", "/*checkpoint_*.pt"),
    (("ignite",), ".ModelCheckpoint", 0, "dirname", "/*.pt*"),
    (("timm",), ".CheckpointSaver", 7, "checkpoint_dir", "/last.pth.tar"),
    (("xgboost",), ".TrainingCheckPoint", 0, "directory", "/*"),
    (("stable_baselines3",), ".CheckpointCallback", 1, "save_path", "/*_steps.zip"),
    (("stable_baselines3", "sb3_contrib"), "().save", 0, "path", ".zip"),
    (("ultralytics",), "().train", 99, "project", "/*/weights/last.pt"),
    (("rsl_rl",), ".OnPolicyRunner", 2, "log_dir", "/model_*.pt"),
    (("paddle",), ".save", 1, "path", ""),
    (("fvcore",), ".Checkpointer", 1, "save_dir", "/*.pth"),
    (("fvcore",), ".Checkpointer", 1, "save_dir", "/last_checkpoint*"),
)
"""By the names that a library is imported by: what is called, which argument names the place, what is written there."""


def targets(call: ast.Call, source: Source, wrappers: set[str], values: Values) -> Iterator[tuple[ast.expr, str]]:
    """What names the file (or folder: with ``/`` and what it writes there) in calls that write a checkpoint or move one
    into place.
    """
    if known := [*_of_library(call, source, values)]:
        yield from known
        return
    name, owner = last_name(call.func), call.func.value if isinstance(call.func, ast.Attribute) else call.func
    base = last_name(owner)
    if owner is call.func:  # it may be imported by its name: ``from safetensors.torch import save_file``
        base, _, name = source.origin(owner).rpartition(".") if name not in wrappers else ("", "", name)
        base = base.rpartition(".")[2]
    keywords = {word.arg: word.value for word in call.keywords}
    if name in _FILES and base in _OF_TORCH:
        keyword = keywords.get("f", keywords.get("filename"))
        target = call.args[1] if len(call.args) > 1 else keyword
        if target is not None and not isinstance(call.args[0] if call.args else target, ast.Starred):
            yield target, ""
    elif name in wrappers and len(call.args) > 1:
        yield call.args[1], ""
    elif name == "save" and base == "fabric" and call.args:
        yield call.args[0], ""
    elif name == "save_weights" and call.args:
        yield call.args[0], "*"
    elif name == "save_pretrained" and (call.args or "save_directory" in keywords):
        yield call.args[0] if call.args else keywords["save_directory"], "/**/*"
    elif (
        name == "save_model"
        and base == "accelerator"
        and len(call.args) > 1
        and "save_state" not in {last_name(each.func) for each in source.calls}
    ):  # what lies beside states is no part of them
        yield call.args[1], "/*.safetensors"
    elif name == "save_state" or ((name, base) == ("save_model", "trainer") and name not in values.bindings.functions):
        yield from ((each, "/**/*") for each in [argument(call, "output_dir", 0)] if each is not None)
    elif name in ("save", "async_save", "save_state_dict") and (place := _of_dcp(call, keywords, values)) is not None:
        yield place, "/**/*"
    elif name in ("savez", "savez_compressed") and call.args and source.packages & {"jax", "flax"}:
        yield call.args[0], ""  # beside torch such a file is more likely data
    elif name == "dump" and pickles_a_state(call, source, values):
        yield call.args[1], ""
    elif name == OF_LIGHTNING and base == "trainer" and source.packages & {"lightning", "pytorch_lightning"}:
        yield from ((each, "") for each in [argument(call, "filepath", 0)] if each is not None)
    elif name in ("write", "write_bytes") and _is_bytes_of_flax(call, source):
        yield owner, ""
    elif name in MOVES and (moved := moves(call)) is not None:
        yield moved[1], ""


def _of_dcp(call: ast.Call, keywords: Mapping[str | None, ast.expr], values: Values) -> ast.expr | None:
    """The folder that torch's distributed checkpoints are told of, or their FileSystemWriter is."""
    given = [one for each in (*call.args, *keywords.values()) for one in (each, *values.bindings.origins(each))]
    writers = (each for each in given if isinstance(each, ast.Call) and last_name(each.func) == "FileSystemWriter")
    writer = next(writers, None)
    return keywords.get("checkpoint_id") or (None if writer is None else argument(writer, "path", 0))


def moves(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """What is moved, and where to: ``os.replace(old, new)``, ``old.rename(new)``; None of any other call."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in MOVES or call.keywords:
        return None
    if last_name(call.func.value) in ("os", "shutil"):
        return (call.args[0], call.args[1]) if len(call.args) == 2 else None
    return (call.func.value, call.args[0]) if len(call.args) == 1 and call.func.attr != "move" else None


def wrappers_of(source: Source) -> set[str]:
    """Functions that hand all their arguments to ``torch.save``."""
    return {
        function.name
        for function in source.nodes
        if isinstance(function, Function) and function.args.vararg is not None
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "save"
        and any(isinstance(each, ast.Starred) for each in call.args)
    }


def _of_library(call: ast.Call, source: Source, values: Values) -> Iterator[tuple[ast.expr, str]]:
    """What a call of a library that writes checkpoints is told."""
    called = _whose(call.func, source, values)
    for roots, name, place, keyword, ending in _LIBRARIES if called else ():
        if called.partition(".")[0] in roots and called.endswith(name):
            target = argument(call, keyword, place)
            if ending == SAVER and argument(call, "global_step", 2) is None:
                ending = BY_SAVER[1]
            if target is not None:
                yield target, ending


def _of_all(node: ast.expr, source: Source) -> str:
    """A name of a library that nobody names: ``from timm.utils import *``."""
    alike = isinstance(node, ast.Name) and any(name == f".{node.id}" for _, name, *_ in _LIBRARIES)
    return f"{source.imports.get((source.file(node), '*'), '').rpartition('.')[0]}.{last_name(node)}" if alike else ""


def _whose(node: ast.expr, source: Source, values: Values) -> str:
    """What is called as its library names it; a class of the script by what it inherits from."""
    found = source.origin(node) or values.machine.named(node) or _of_all(node, source)
    named = values.bindings.classes.get(found.rpartition(".")[2] or last_name(node), [])
    return next((text for each in named for base in each.bases if (text := source.origin(base))), found)


def pickles_a_state(call: ast.Call, source: Source, values: Values) -> bool:
    """Whether it pickles what was learnt, and not only what was measured in an epoch."""
    pickles = len(call.args) > 1 and values.machine.named(call.func) in _PICKLES
    return pickles and (_WHOLE.search(last_name(call.args[0])) is not None
                        or holds_a_state(call, source, values, _LEARNT))  # fmt: skip


def _is_bytes_of_flax(call: ast.Call, source: Source) -> bool:
    """And not a number's own method, as in the head of a file of data."""
    made = call.args[0] if call.args else call
    return isinstance(made, ast.Call) and last_name(made.func) in _BYTES and source.origin(made.func)[:5] == "flax."


def holds_a_state(call: ast.Call, source: Source, values: Values, words_of_it: tuple[str, ...] = _STATE) -> bool:
    """Whether what is saved has an optimizer, a step or an epoch in it."""
    if not call.args:
        return False
    around = source.function_of(call)
    added = [node for node in ast.walk(around) if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
             and ast.unparse(node.value) == ast.unparse(call.args[0])] if around is not None else []  # fmt: skip
    shown = [call.args[0], *values.bindings.origins(call.args[0]), *(node.slice for node in added)]
    words = [
        word.value.lower()
        for each in shown
        for word in ast.walk(each)
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    ]
    words += [each.id.lower() for one in shown if isinstance(one, ast.List | ast.Tuple)
              for each in one.elts if isinstance(each, ast.Name)]  # fmt: skip
    words += [word.arg.lower() for each in shown if isinstance(each, ast.Call) for word in each.keywords if word.arg]
    return any(part in word for word in words for part in words_of_it)


def passes(call: ast.Call) -> bool:
    """Whether Keras removes it when it has trained to its end."""
    kept = argument(call, "delete_checkpoint", 3)
    return last_name(call.func) == "BackupAndRestore" and not (isinstance(kept, ast.Constant) and kept.value is False)


def temporary(path: str) -> bool:
    """A file that is written first and renamed then: the name after it is the checkpoint."""
    name = PurePosixPath(path).name
    return name.endswith((".tmp", ".part", ".temp", "~")) or name.startswith((".", "tmp", "_tmp")) or ".tmp" in name


def in_memory(target: ast.expr, values: Values) -> bool:
    """Whether what is written into is no file."""
    made = (each for each in (target, *values.bindings.origins(target)) if isinstance(each, ast.Call))
    return any(last_name(each.func) in ("BytesIO", "StringIO") for each in made)


def is_called_back(call: ast.Call, source: Source) -> bool:
    """Whether it stands in an heir of a library's class, whose methods that calls."""
    kind = source.class_of(call)
    return kind is not None and any(source.origin(base) for base in kind.bases)
