"""``argosy checkpoint get``: a checkpoint's files back, every byte verified."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from errno import EDQUOT, ENOSPC
from pathlib import Path

import click

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.checkpoint.node_paths import merged
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.record.wording import count, short, size
from argosy.workflows.cli.checkpoint.run import PREFIX_DIGITS, CheckpointedRun, choose, find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import known_run
from argosy.workflows.code import FETCHED

_PART = ".argosy-fetch-"
"""A file of this name is being written (steps/checkpoint/reader.py)."""
_IGNORE = ".argosyignore"


@click.command()
@click.argument("named", metavar="[RUN [CHECKPOINT]]", nargs=-1, shell_complete=known_runs)
@click.argument("into", metavar="FOLDER")
@as_json
@state_dir
def command(named: tuple[str, ...], into: str, as_json: bool, state_dir: Path) -> None:
    """Fetch a checkpoint's files into FOLDER, verified.

    No file has its name before it is whole. Without CHECKPOINT the one that a resume would take: of a run that has
    ended, what it trained. After an interruption the same call completes the folder.

    \b
    Example:
      argosy checkpoint get model/
      argosy checkpoint get s3://bucket/gpt/runs/gpt-x7k2p 4000 model/
    """
    run, checkpoint = next(iter(named), None), named[1:]
    if len(checkpoint) > 1:
        raise InputError(f"FOLDER {into!r}: write get RUN CHECKPOINT FOLDER, not {len(named) + 1} words")
    if not named and ("://" in into or known_run(state_dir, into)):
        raise InputError(
            f"FOLDER {into!r}: reads like a RUN, and no folder is named; ./{into} is a folder of that name"
        )
    found, folder = find_checkpoints(state_dir, run), Path(into)
    if not checkpoint and _is_checkpoint(found, into):
        ways = f"{found.command('checkpoint get', into, 'FOLDER')}, or ./{into} for a folder of that name"
        raise InputError(f"FOLDER {into!r}: reads like a CHECKPOINT, and no folder is named; write {ways}")
    digest, files = fetch(found, "".join(checkpoint) or None, folder)
    if as_json:
        emit({"run": found.name, "digest": digest, "folder": str(folder), "files": files})
        return
    for name, length in files.items():
        say(f"{folder / name}  {size(length)}")
    say(f"{count(len(files), 'file')}, {size(sum(files.values()))}, verified: checkpoint {short(digest)}")
    next_commands([(typed("ls", folder), "what is there"), (found.command("checkpoint list"), "the others")])


def fetch(found: CheckpointedRun, checkpoint: str | None, folder: Path) -> tuple[str, dict[str, int]]:
    """The checkpoint that ``checkpoint`` names (None: a resume's), in ``folder``: its digest, files and sizes.

    What a call that was interrupted left is completed; a file that is not the checkpoint's is never replaced. Beside
    them lies a file that keeps them out of the code, should the folder be one of a run's.

    Raises:
        InputError: there is no such checkpoint, or something else lies in the folder.
        StepError: it is corrupt, or the store failed.
    """
    told = found.store.explain()
    chosen = choose(told.commits, checkpoint) if checkpoint is not None else told.chosen
    if chosen is None or chosen.checkpoint is None:
        why = told.why if chosen is None else chosen.reason
        raise InputError(f"RUN {found.name!r}: no checkpoint to get: {why}; see {found.command('checkpoint list')}")
    files = merged(chosen.checkpoint.files)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"FOLDER {folder}: is a file; name a folder")
    strange = sorted(_lying(folder) - {file.path for file in files} - {_IGNORE})
    if strange:
        raise InputError(f"FOLDER {folder}: {strange[0]} lies there, which is none of the checkpoint's; name another")
    there = [file for file in files if os.path.lexists(folder / file.path)]
    if other := next((file.path for file in there if _is_another(folder / file.path, file)), None):
        raise InputError(
            f"FOLDER {folder}: {other} lies there with other bytes than checkpoint {short(chosen.digest)} has, so it "
            "is another's, or was changed since; name another folder, or remove it"
        )
    # What a link leads to is another's, who may change it at any time.
    whole = {file for file in there if not (folder / file.path).is_symlink()}
    try:
        found.store.fetch(replace(chosen.checkpoint, files=files), folder, whole=whole)
    except StepError as error:
        if error.cause != Cause.CHECKPOINT_CORRUPT:
            raise
        what = f"step {chosen.step}, {short(chosen.digest)}: {error.quote.partition(' shard=')[2] or error}"
        raise StepError(error.cause, f"{what}; which are whole says {found.command('checkpoint verify')}") from error
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise
        raise InputError(f"FOLDER {folder}: {error.strerror}; name a folder of your own") from error
    for left in folder.rglob(f"{_PART}*"):
        left.unlink(missing_ok=True)
    if _IGNORE not in {file.path for file in files}:
        # In a folder of code it would be packed as code, and the next run be another one.
        (folder / _IGNORE).write_text(FETCHED)
    return chosen.digest, {file.path: file.size for file in files}


def _is_checkpoint(found: CheckpointedRun, word: str) -> bool:
    """A number is hardly meant for a folder, whether there is such a step or not; hex digits may be."""
    digests = (commit.digest for commit in found.store.explain().commits)
    return word.isdecimal() or (len(word) >= PREFIX_DIGITS and any(each.startswith(word.lower()) for each in digests))


def _is_another(path: Path, file: ShardFile) -> bool:
    """Whether what lies there is not this file. An interrupted call leaves none: a name means whole."""
    if not path.is_file() or path.stat().st_size != file.size:
        return True
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest() != file.sha256


def _lying(folder: Path) -> set[str]:
    """Files in the folder, but for those that an interrupted call was writing."""
    every = (path for path in folder.rglob("*") if not path.is_dir() and not path.name.startswith(_PART))
    return {path.relative_to(folder).as_posix() for path in every}
