"""What argosy says of a run, judged by the files that it kept and by the kills it did not make."""

from __future__ import annotations

import filecmp
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from argosy.steps.checkpoint.node_paths import merged
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.workflows.cli.run_folder import RunFolder

CLI = ("-m", "argosy.workflows.cli.main")
"""Of any Python that sees argosy: it need not be installed as a program."""
_ALARMS = re.compile(r"(?i)\bwarning\b|began again|does not read|not committed|mistake of ours|did not happen")


def wrong_labels(store: CheckpointStore, saved: Callable[[Path], float]) -> list[str]:
    """``label/step`` of each commit whose label is not the step that its files hold."""
    found = []
    for commit in store.commits():
        with tempfile.TemporaryDirectory() as folder:
            store.fetch(replace(commit, files=merged(commit.files)), Path(folder))
            step = saved(Path(folder))
        if commit.step != step:
            found.append(f"{commit.step}/{step:g}")
    return found


def run_folder(work: Path) -> RunFolder:
    """The only run below ``work``."""
    (path,) = (work / ".argosy" / "runs").iterdir()
    return RunFolder(path, work / ".argosy")


def false_words(work: Path, printed: str, killed: Sequence[tuple[int, ...]]) -> list[str]:
    """Alarms, and failures that are not told as what they were: one of the ``killed`` ranks, by signal 9."""
    told = subprocess.run(
        [sys.executable, *CLI, "explain"], cwd=work, capture_output=True, text=True, check=False
    ).stdout
    found = [line for line in (printed + told).splitlines() if _ALARMS.search(line)]
    failures = [each for each in run_folder(work).record().restarts if each.failed]
    for number, each in enumerate(failures):
        struck = number < len(killed) and each.rank in killed[number]
        if not struck or each.signal != 9 or each.cause != "unknown":
            found.append(f"{each.cause}, rank {each.rank}, signal {each.signal}")
    return found


def result_kept(work: Path, folder: str, result: str) -> bool:
    """Whether ``checkpoint get`` brings ``result`` and all else byte for byte as the script's last process left it."""
    with tempfile.TemporaryDirectory() as empty:
        into = Path(empty) / "model"
        name = run_folder(work).path.name
        got = subprocess.run(
            [sys.executable, *CLI, "checkpoint", "get", name, str(into)], cwd=work, capture_output=True, check=False
        )
        files = [path.relative_to(into) for path in into.rglob("*") if path.is_file() and path.name != ".argosyignore"]
        left = [path / folder for path in work.glob(".argosy/runs/*/nodes/*/pods/*/volumes/workspace")]
        left += work.glob(".argosy/volumes/shared/*")
        equal = [any(_same(into / file, each / file) for each in left) for file in files]
        return got.returncode == 0 and Path(result) in files and all(equal)


def _same(one: Path, other: Path) -> bool:
    return other.is_file() and filecmp.cmp(one, other, shallow=False)
