"""What a training script gives away about itself, read from its syntax tree; the script is never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.path_guess import Names, guess
from argosy.workflows.cli.trainer_facts import TrainerFacts, trainer_facts

DISTRIBUTED = frozenset(
    {"init_process_group", "DistributedDataParallel", "DDP", "FullyShardedDataParallel", "FSDP", "fully_shard"}
    | {"deepspeed", "Accelerator", "init_device_mesh"}
)
SAVERS = {"save": 1, "save_file": 1}
"""torch.save(state, path), safetensors.torch.save_file(state, path): which argument is the path."""
RESUME_FLAGS = ("--resume", "--resume-from-checkpoint", "--resume_from_checkpoint", "--resume-from", "--resume_from")
STEP_TOTALS = ("steps", "max_steps", "num_steps", "total_steps", "train_steps", "max_iters", "iters", "iterations")
EPOCH_TOTALS = ("epochs", "num_epochs", "max_epochs", "num_train_epochs", "n_epochs")
LARGEST_SCRIPT = 4 << 20


@dataclass(frozen=True)
class Flag:
    """A command line flag that the script declares."""

    name: str
    takes_value: bool
    default: str | None
    required: bool
    line: int


@dataclass(frozen=True)
class SavedAt:
    """Where a checkpoint is written: a folder relative to the working directory and a glob."""

    folder: str
    pattern: str
    line: int


@dataclass(frozen=True)
class ScriptFacts:
    """What was found; line numbers are those of the script."""

    flags: tuple[Flag, ...]
    saves: tuple[SavedAt, ...]
    unclear_saves: tuple[int, ...]
    """Lines that save to a path which only a run could tell."""
    checkpointer: int | None
    """Line that uses argosy.Checkpointer."""
    distributed: tuple[str, int] | None
    cuda: int | None
    init_from: int | None
    """Line with nanoGPT's init_from == "resume"."""
    end: int | None = None
    """The last step it would report, as its flags say: an epoch if it prints epochs only. None: not known."""
    trainer: TrainerFacts | None = None
    """The library that saves for it."""

    def resume_flag(self) -> Flag | None:
        """The flag that makes the script go on from its checkpoint."""
        found = {flag.name: flag for flag in self.flags}
        known = (*RESUME_FLAGS, *(self.trainer.resume_flags if self.trainer else ()))
        return next((found[name] for name in known if name in found), None)


def read_script(path: Path, arguments: Sequence[str] = ()) -> ScriptFacts:
    """Parse the script; ``arguments`` are what it will be called with, they win over the flags' defaults.

    Raises:
        InputError: no such file, a folder, too large, not text, or not Python.
    """
    try:
        if path.stat().st_size > LARGEST_SCRIPT:
            raise InputError(f"SCRIPT {path}: larger than {LARGEST_SCRIPT >> 20} MiB; name the training script itself")
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(f"SCRIPT {path}: {error.strerror}; name your training script") from error
    except SyntaxError as error:
        raise InputError(f"SCRIPT {path}:{error.lineno or 1}: not Python ({error.msg}); name a .py file") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"SCRIPT {path}: not Python ({error}); name a .py file") from error
    return _facts(tree, _given(arguments))


def _given(arguments: Sequence[str]) -> dict[str, str | None]:
    """``--out x`` and ``--out=x`` as {"out": "x"}."""
    given: dict[str, str | None] = {}
    for index, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag.startswith("--"):
            after = arguments[index + 1] if index + 1 < len(arguments) else None
            given[_attribute(flag)] = value if equals else after
    return given


def _attribute(flag: str) -> str:
    return flag.lstrip("-").replace("-", "_")


def _facts(tree: ast.Module, given: dict[str, str | None]) -> ScriptFacts:
    nodes = list(ast.walk(tree))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    flags = tuple(flag for call in calls if (flag := _flag(call)) is not None)
    names = Names.of(nodes, {_attribute(flag.name): flag.default for flag in flags} | given)
    saves, unclear = _saves(calls, names)
    return ScriptFacts(
        flags=flags,
        saves=saves,
        unclear_saves=unclear,
        checkpointer=next((line for name, line in _used(nodes) if name == "Checkpointer"), None),
        distributed=next(((name, line) for name, line in _used(nodes) if name in DISTRIBUTED), None),
        cuda=next((line for name, line in _used(nodes) if name in ("cuda", "nccl")), None),
        init_from=_init_from(nodes),
        end=_end({_attribute(flag.name): flag.default for flag in flags} | given, calls),
        trainer=trainer_facts(nodes, names),
    )


def fixed(saves: Sequence[SavedAt]) -> tuple[SavedAt, ...]:
    """With folders that do not change: a folder per checkpoint (``out/checkpoint-*``) becomes part of the glob.

    All that such a folder holds belongs to the checkpoint. A folder of which nothing is known is left out.
    """
    found: dict[tuple[str, str], SavedAt] = {}
    for each in saves:
        parts = each.folder.split("/")
        at = next((index for index, part in enumerate(parts) if "*" in part), len(parts))
        if parts[:1] == ["*"]:
            continue
        folder, glob = "/".join(parts[:at]) or ".", each.pattern if at == len(parts) else f"{parts[at]}/**/*"
        found.setdefault((folder, glob), SavedAt(folder, glob, each.line))
    return tuple(found.values())


def _end(values: dict[str, str | None], calls: list[ast.Call]) -> int | None:
    names = STEP_TOTALS if _prints_steps(calls) else (*STEP_TOTALS, *EPOCH_TOTALS)
    return next((int(value) for name in names if (value := values.get(name)) and value.isdecimal()), None)


def _prints_steps(calls: list[ast.Call]) -> bool:
    """Whether a text that is handed to any function looks like ``step 10``."""
    texts = (
        node.value
        for call in calls
        for argument in call.args
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return any(re.search(r"(?i)\b(step|iter(ation)?)s?\b", text) for text in texts)


def _used(nodes: list[ast.AST]) -> Iterator[tuple[str, int]]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield alias.name.rsplit(".", 1)[-1], node.lineno


def _flag(call: ast.Call) -> Flag | None:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "add_argument":
        return None
    names = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    long = [name for name in names if name.startswith("--")]
    if not long:
        return None
    keywords = {word.arg: word.value for word in call.keywords}
    action, default = keywords.get("action"), keywords.get("default")
    required = keywords.get("required")
    constant = default.value if isinstance(default, ast.Constant) else None
    return Flag(
        name=long[0],
        takes_value=action is None or (isinstance(action, ast.Constant) and action.value in ("store", "append")),
        default=None if constant is None or isinstance(constant, bool) else str(constant),
        required=isinstance(required, ast.Constant) and required.value is True,
        line=call.lineno,
    )


def _saves(calls: list[ast.Call], names: Names) -> tuple[tuple[SavedAt, ...], tuple[int, ...]]:
    found: dict[tuple[str, str], SavedAt] = {}
    unclear = []
    for call in calls:
        target = _target(call)
        if target is None:
            continue
        path = guess(target, names)
        if path is None:
            unclear.append(call.lineno)
        elif not _temporary(path):
            pure = PurePosixPath(path)
            saved = SavedAt(str(pure.parent), pure.name, call.lineno)
            found.setdefault((saved.folder, saved.pattern), saved)
    return tuple(found.values()), tuple(unclear)


def _target(call: ast.Call) -> ast.expr | None:
    """The expression that names the file, for calls that write a checkpoint or move one into place."""
    if not isinstance(call.func, ast.Attribute):
        return None
    owner = call.func.value
    base = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    if call.func.attr in SAVERS and base in ("torch", "safetensors"):
        keyword = next((word.value for word in call.keywords if word.arg in ("f", "filename")), None)
        return call.args[1] if len(call.args) > 1 else keyword
    if call.func.attr in ("replace", "rename") and base in ("os", "shutil") and len(call.args) == 2:
        return call.args[1]
    return None


def _temporary(path: str) -> bool:
    """A file that is written first and renamed then: the name after it is the checkpoint."""
    name = PurePosixPath(path).name
    return name.endswith((".tmp", ".part", ".temp", "~")) or name.startswith((".", "tmp")) or ".tmp" in name


def _init_from(nodes: list[ast.AST]) -> int | None:
    for node in nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or node.left.id != "init_from":
            continue
        if any(isinstance(each, ast.Constant) and each.value == "resume" for each in node.comparators):
            return node.lineno
    return None
