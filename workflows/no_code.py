"""What lies in a code folder and is no code: version control, caches, logs, events, what runs wrote there.

Were it packed, the code would have another digest after each run: an interrupted one would not be recognised again,
and an event would start its run twice.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from argosy.workflows.spec.run import TrainingRun

ALWAYS: Final = frozenset(
    {
        *(".git", ".hg", ".svn", ".jj", ".venv", ".argosy", "__pycache__", "node_modules", ".ipynb_checkpoints"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".idea", ".vscode", ".DS_Store"),
    }
)
"""Names of files and folders, wherever they lie."""
USUALLY: Final = (
    *("*.log", "*.out", "*.err", "*.pyc", "*.swp", "*~", "wandb/", "mlruns/", "lightning_logs/"),
    *("events.out.tfevents.*", ".*.part"),
)
"""Rules of an ignore file that stands above all others: ``!NAME`` in ``.argosyignore`` takes one back.

The last is what ``-o`` leaves when it is killed.
"""
_PRINTED: Final = (
    rb"\A(yaml sha256 [0-9a-f]{64}|\[ *\d+\.\d s\] "
    rb"|[a-z0-9.-]+( \(run id [\w.-]+\))?: (Pending|Running|Succeeded|Failed|Error|Interrupted|Silent|Promoted"
    rb"|Refused by the gate)[.,\n])"
)
"""What ``run``, ``status`` and ``explain`` begin with."""
_MARKS: Final = {
    ".yaml": re.compile(rb"argosy\.dev/run-name:"),
    ".yml": re.compile(rb"argosy\.dev/run-name:"),
    ".html": re.compile(rb'<meta name="generator" content="argosy">'),
    # A notification of S3 or MinIO, also within what SQS or SNS make of it.
    ".json": re.compile(rb'(?s)(?=.*Records)(?=.*[eE]ventName)(?=.*\\*"s3\\*")'),
    **dict.fromkeys(("", ".txt"), re.compile(_PRINTED)),
}
"""How a file of ours, or an event, begins; by the end of its name."""
_HEAD: Final = 4096
"""Bytes within which the mark stands."""


def is_no_code(name: str, path: Path, size: int) -> bool:
    """Whether it was written by argosy or for it: a compiled workflow, a report, what it printed, an event.

    An empty text is what ``| tee run.txt`` has just made.
    """
    suffix = PurePosixPath(name).suffix
    if suffix == ".txt" and size == 0:
        return True
    if (mark := _MARKS.get(suffix)) is None:
        return False
    with path.open("rb") as file:
        return mark.search(file.read(_HEAD)) is not None


def written_while_running(run: TrainingRun, folder: Path) -> tuple[str, ...]:
    """Rules for what this run writes into its code folder: its checkpoints, its store, what this process prints.

    In a pod the checkpoint's files are removed before each start anyway.
    """
    return (*_checkpoints(run), *_stored(run, folder), *_printed(folder))


def _checkpoints(run: TrainingRun) -> Iterator[str]:
    if run.checkpoint.mode == "opaque":
        path = posixpath.normpath(run.checkpoint.path)
        for glob in run.checkpoint.include or ("**/*",):
            yield "/" + (glob if path == "." else f"{_literal(path)}/{glob}")


def _stored(run: TrainingRun, folder: Path) -> Iterator[str]:
    # Verbs that only read a run import this file, and pydantic takes a third of a second.
    from argosy.workflows.spec.storage import file_path

    path = file_path(run.storage.uri)
    if path is None:
        return
    within, here = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if here in within.parents:
        yield f"/{_literal(within.relative_to(here).as_posix())}/"


def _printed(folder: Path) -> Iterator[str]:
    for handle in (1, 2):
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                target = Path(os.readlink(f"/proc/self/fd/{handle}"))
                yield "/" + _literal(target.relative_to(folder.resolve()).as_posix())
        except (OSError, ValueError):
            continue


def _literal(path: str) -> str:
    return re.sub(r"([\\*?\[\]!# ])", r"\\\1", path)
