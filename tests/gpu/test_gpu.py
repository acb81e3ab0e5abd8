"""The suite itself: what a crash, a hang or a missing GPU leaves; and stand-ins of its parts on CPUs."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.pods import processes
from tests.gpu.__main__ import PARTS, run
from tests.gpu.case import part
from tests.gpu.record import ROOT, Record

NAMES = ("works", "misses", "crashes", "hangs", "once", "cannot")


def test_a_case_that_goes_wrong_costs_no_other_and_the_next_call_goes_on(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    record, args = Record("cuda", tmp_path / "kept"), argparse.Namespace(minutes=1e6, again=False, together=1)
    todo = [("troubles", name) for name in NAMES]
    assert run(record, todo, args) == 1
    ends = {name: record.state("troubles", name) for name in NAMES}
    assert ends == {
        "works": "ran", "misses": "ran", "crashes": "failed", "hangs": "timed out", "once": "failed",
        "cannot": "not possible here",
    }  # fmt: skip
    assert not processes.is_running(int((tmp_path / "kept" / "child").read_text()))
    table = (tmp_path / "out" / "gpu.md").read_text()
    for row in (
        "| troubles | works | speed | 2.5 GB/s | >= 2 | pass |",
        "| troubles | misses | speed | 1.5 GB/s | >= 2 | **MISS** |",
        "| troubles | crashes | before the crash | 1 |  |  |",
        "| troubles | hangs | before the hang | 1 |  |  |",
        "no disk of a petabyte here",
        "the last words",
    ):
        assert row in table
    before = len(record.entries())
    with record.lines.open("a") as cut_off:
        cut_off.write('{"part": "troub')
    record.lines.write_text(record.lines.read_text() + "\n")
    run(record, [("troubles", "works"), ("troubles", "once")], args)
    assert record.state("troubles", "once") == "ran"
    assert [entry["case"] for entry in record.entries()[before:]] == ["once"] * 3
    assert json.loads((tmp_path / "out" / "gpu.json").read_text())["entries"] == record.entries()


def suite(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.gpu", "--folder", str(folder), *args]
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=280)


@pytest.mark.torch
def test_without_a_gpu_nothing_is_run_and_nothing_is_claimed(tmp_path: Path) -> None:
    done = suite(folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no GPU here (")
    assert done.stdout.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_part_has_cases_that_fit_into_one_command() -> None:
    for name in PARTS:
        assert part(name).cases
        assert part(name).seconds <= 8 * 60


STAND_INS = [
    ("saves", "side stream, saved from the default one"), ("stalls", "1 GB, argosy"), ("faults", "device_assert"),
    ("kills", "memory"), ("throughput", "1.5B"),
]  # fmt: skip


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "case"),
    [pytest.param(*each, id=each[0], marks=[] if each[0] == "kills" else pytest.mark.variant) for each in STAND_INS],
)
def test_a_stand_in_runs_on_cpus_and_holds(name: str, case: str, tmp_path: Path) -> None:
    done = suite("--cpu", "--only", name, "--case", case, folder=tmp_path)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    figures = Record("cpu", tmp_path).figures(name, case)
    assert figures
    assert "proves that the suite runs, and nothing of a GPU" in (tmp_path / "cpu.md").read_text()
