"""Give a script its files back, and nothing that was never committed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from argosy.steps.checkpoint.at_hand import Near, nobody
from argosy.steps.checkpoint.manifest import Checkpoint, ShardFile, need_kind
from argosy.steps.checkpoint.node_paths import files_of, merged, nodes_of
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.placeholders import fill, named
from argosy.steps.launch.file_step import further
from argosy.steps.launch.units import contents, is_unit, late_files, numbers_in, unit_of
from argosy.steps.launch.whole_files import Signature, facts, matching


def restore(
    args: LaunchArgs,
    assignment: Assignment,
    checkpoints: CheckpointStore,
    workdir: Path,
    environ: Mapping[str, str],
    tell: Callable[..., None] = lambda **facts: None,
    near: Near = nobody,
) -> list[str]:
    """Put the assignment's checkpoint into the script's folder; the arguments that make the script use it.

    ``environ``: the ranks' environment, for the words in these arguments that stand for a variable. ``tell`` hears
    how many ``bytes`` these are, how many were ``fetched_bytes`` of the store, and in how many ``seconds``. ``near``
    may give files that do not lie here.

    What else matches there is removed: it was never committed, so a killed rank may have torn it.

    Raises:
        StepError: ``checkpoint_corrupt``; ``checkpoint_mismatch``: it was written by another number of nodes, or is a
            Checkpointer's; or what the store reported.
    """
    folder = workdir / args.checkpoint_path
    if not assignment.resume_digest:
        _clear(folder, args, ())
        return []
    checkpoint = checkpoints.by_digest(assignment.resume_digest)
    files = _files_for(args, assignment, checkpoint)
    _clear(folder, args, () if assignment.from_store else {file.path for file in files})
    folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # Files that a node gave of its own lie nowhere else.
    near = nobody if nodes_of(checkpoint.files) or assignment.from_store else near
    fetched = checkpoints.fetch(replace(checkpoint, files=files), folder, near)
    size = sum(file.size for file in files)
    tell(bytes=size, fetched_bytes=fetched, seconds=round(time.monotonic() - began, 3))
    names = matching(folder, args.checkpoint_include)
    base = Path(args.checkpoint_path)
    one = base.joinpath(*(names if len(names) == 1 else ()))
    written = [name for name in names if unit_of(name, args.checkpoint_unit)] or names
    found = contents(folder, args)
    for unit in found.units[-1:]:
        if further(folder, unit, late := late_files(found, unit)):
            written = list(late)
    newest = base / _newest(folder, written, args.checkpoint_include)
    step = next((unit.step for unit in reversed(found.units) if unit.step is not None), checkpoint.step)
    values = {"path": str(one), "newest": str(newest), "step": str(step)}
    words = (word for arg in args.resume_arg for word in named(arg) if ":" in word)
    values |= {word: _of_glob(word, base, folder, names, values) for word in words}
    return [fill(arg, environ, values) for arg in args.resume_arg]


def _of_glob(word: str, base: Path, folder: Path, names: list[str], values: Mapping[str, str]) -> str:
    """What ``{newest:GLOB}`` and ``{step:GLOB}`` stand for; as without the glob where no file is like it."""
    kind, _, glob = word.partition(":")
    alike = [name for name in names if fnmatchcase(name, glob)]
    if not alike:
        return values[kind]
    found = max(alike, key=lambda name: _recency(name, (folder / name).stat().st_mtime_ns))
    if kind == "newest":
        return str(base / found)
    before, _, after = (re.escape(part) for part in glob.rpartition("*"))
    number = re.fullmatch(rf"{before.replace(re.escape('*'), '.*')}(\d+){after}", found)
    return values[kind] if number is None else str(int(number[1]))


def _files_for(args: LaunchArgs, assignment: Assignment, checkpoint: Checkpoint) -> tuple[ShardFile, ...]:
    need_kind(checkpoint, checkpoint.digest, "files")
    nodes = nodes_of(checkpoint.files)
    if not nodes:
        return checkpoint.files
    if args.checkpoint_reshard == "all":
        return merged(checkpoint.files)
    if nodes != list(range(assignment.nnodes)):
        text = (
            f"checkpoint {checkpoint.digest[:12]} of step {checkpoint.step} holds files of {len(nodes)} nodes and "
            f"{assignment.nnodes} run now: give as many nodes, or set checkpoint.reshard to all if the script can "
            "load all nodes' files from one folder"
        )
        raise StepError(Cause.CHECKPOINT_MISMATCH, text, quote=text)
    return files_of(checkpoint.files, assignment.node_rank)


def of_others(args: LaunchArgs, assignment: Assignment, checkpoints: CheckpointStore, folder: Path) -> Signature:
    """Files of other nodes that :func:`restore` laid here too, as they lie here now: unchanged they are not this
    node's to save. Their own node may have written to them since, and then there would be two of one name.
    """
    if args.checkpoint_reshard != "all" or not assignment.resume_digest:
        return {}
    files = checkpoints.by_digest(assignment.resume_digest).files
    owner: dict[str, int] = {}
    for rank in nodes_of(files):
        for file in files_of(files, rank):
            owner.setdefault(file.path, rank if rank < assignment.nnodes else 0)
    return facts(folder, [path for path, rank in owner.items() if rank != assignment.node_rank])


def _clear(folder: Path, args: LaunchArgs, keep: Collection[str]) -> None:
    """Remove what matches and is not in ``keep``: those are replaced as a whole, so that on a volume that several
    nodes share no file is ever missing once it was restored. A numbered folder goes with all that is in it: a script
    takes the highest number, whatever is inside.
    """
    for name in matching(folder, args.checkpoint_include):
        if name not in keep:
            with contextlib.suppress(FileNotFoundError):
                (folder / name).unlink()
    tops = {name.partition("/")[0] for name in keep}
    with contextlib.suppress(FileNotFoundError):
        stale = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        for entry in stale:
            if entry.name not in tops and is_unit(entry.name, args.checkpoint_unit):
                _remove(Path(entry.path), whole=os.path.normpath(args.checkpoint_path) != ".")


def _remove(folder: Path, *, whole: bool) -> None:
    """``whole`` False: beside the script's code, where a folder may be anything, only what is empty goes."""
    if whole:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for root, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(root)


def _newest(folder: Path, names: list[str], include: Sequence[str]) -> str:
    """What was written to last: a file or subfolder that lies in ``folder`` itself, or the file deeper down that a glob
    means: ``version_*/checkpoints/*.ckpt``, but not ``checkpoint-*/**/*``, which means folders.
    """
    files = [glob for glob in include if "/" in glob and "**" not in glob]
    written: dict[str, int] = {}
    for name in names:
        meant = name if any(fnmatchcase(name, glob) for glob in files) else name.split("/", 1)[0]
        written[meant] = max(written.get(meant, 0), (folder / name).stat().st_mtime_ns)
    return max(written, key=lambda meant: _recency(meant, written[meant]), default="")


def _recency(name: str, written: int) -> tuple[int, bool, str]:
    """A link was stored as the file that it led to, of the same time; a script may read the step in that one's name."""
    return written, bool(numbers_in(name)), name
