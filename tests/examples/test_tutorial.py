"""The commands of docs/tutorial.md do what the page says, in its order, in a folder with the script it names."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.runlog import read_events
from argosy.steps.store import open_store

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, list[str]]]:
    """(command, the lines that must come in this order) of the whole page."""
    found: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def missing(lines: list[str], said: str) -> list[str]:
    """The first shown line that does not come behind the ones before it; "…" stands for anything."""
    at = 0
    for line in lines:
        pattern = ".*".join(shape(part.rstrip()) for part in line.split("…"))
        match = re.compile(pattern).search(said, at)
        if match is None:
            return [line]
        at = match.end()
    return []


def shape(text: str) -> str:
    """A pattern of ``text`` in which times, sizes, digests and steps may differ, as between two runs they do."""
    pattern = re.sub(r"(?:\\ )+", r"\\s+", re.escape(text))
    pattern = re.sub(r"\d+\\\.\d+(?:\\s\+\w+\b)?", r"(?:\\d+\\s+min\\s+)?[\\d.]+(?:\\s+\\w+)?", pattern)
    pattern = re.sub(r"\b[0-9a-f]{12}\b", "[0-9a-f]{12}", pattern)
    return re.sub(r"(?<=[Ss]tep\\s\+)\d+|\d+(?=\\s\+steps)", r"\\d+", pattern)


@pytest.mark.torch
@pytest.mark.timeout(900)
def test_the_page_is_true(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "ddp-plain" / "train.py", tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    assert len(steps()) > 6
    for command, lines in steps():
        done = subprocess.run(
            shlex.split(command),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, f"$ {command}\n{said}"
        assert not missing(lines, said), f"$ {command}\n{said}"
    check_run(tmp_path / ".argosy/volumes/argosy/store")


def check_run(root: Path) -> None:
    """What the killed run of two nodes has left beside what it printed."""
    ((name, _, run_id),) = (folder.relative_to(root).parts for folder in root.glob("*/runs/*"))
    store = open_store(f"file://{root}")
    told = list(read_events(store, f"{name}/runs/{run_id}"))
    ended = [event.fields for event in told if event.kind == "restart_ended"]
    assert [(fields["signal"], fields["rank"]) for fields in ended] == [(9, 0)]
    began = [event.fields["restored_step"] for event in told if event.kind == "restart_began"]
    assert began[0] == 0 < began[1] < 100 <= ended[0]["last_step"]
    steps = [(event.fields["restart"], event.fields["step"]) for event in told if event.kind == "step"]
    assert max(step for _, step in steps) in (250, 256)
    for _, of_restart in itertools.groupby(steps, key=lambda pair: pair[0]):
        listed = [step for _, step in of_restart]
        assert listed == sorted(listed)
    newest = CheckpointStore(store, f"{name}/runs/{run_id}").newest()
    assert newest is not None
    assert newest.final
