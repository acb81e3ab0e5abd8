"""The contests of staging leave out who fails, notice litter and torn files, and never pass over ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.paired import BenchError
from benchmarks.staging.clients import OURS, Client
from benchmarks.staging.kill import kill
from benchmarks.staging.link import LinkError, capped_link
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import speeds
from benchmarks.staging.rounds import fetched_anew, fill, interleaved, strangers

TINY = Dataset("tiny", 3, 100, 100)
_COPY = """
import json, sys, time
from pathlib import Path
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.rounds import fill
fill(Dataset.parse(sys.argv[1]), Path(sys.argv[2]))
print(json.dumps({"began": time.monotonic(), "finished": time.monotonic()}))
"""
_HALF = """
import sys, time, urllib.request
from pathlib import Path
into, uri = Path(sys.argv[2]), sys.argv[1]
source, marker = urllib.request.urlopen(uri), into.parent / "second"
half = source.read(6 << 20)
with open(into / "litter", "wb") as target:
    target.truncate(8 << 20)
    target.write(half[: 1 << 20])
(into / "000").mkdir(exist_ok=True)
(into / "000" / "000000.bin").write_bytes(half)
first = not marker.exists()
marker.touch()
rest = source.read(24 << 20) if first else source.read()
if first:
    time.sleep(600)
(into / "000" / "000000.bin").write_bytes(half + rest)
"""


def python(name: str, code: str, *words: str) -> Client:
    return Client(name, lambda dataset, folder: [sys.executable, "-c", code, *words, str(folder)], "no")


def test_a_peer_that_fails_is_left_out_by_its_words(tmp_path: Path) -> None:
    good = python(OURS, _COPY, str(TINY))
    broken = python("broken", "import sys; sys.exit('no such luck')")
    wrong = python("wrong", "print()")
    missing: list[str] = []
    with Origin([TINY]) as origin:
        run = fetched_anew(origin, TINY, tmp_path)
        rounds = interleaved([good, broken, wrong], TINY, 1, run, missing)
        with pytest.raises(BenchError, match="no such luck"):
            interleaved([python(OURS, "import sys; sys.exit('no such luck')")], TINY, 2, run, [])
    assert {name: len(runs) for name, runs in rounds.items()} == {OURS: 1}
    assert ["no such luck" in missing[0], "is not what the origin has" in missing[1]] == [True, True]
    table = speeds("a title", rounds, missing, count=TINY.count, size=TINY.total_bytes).text()
    assert "left out: broken exited 1" in table
    assert list(tmp_path.iterdir()) == []


def test_litter_is_every_file_that_is_no_object(tmp_path: Path) -> None:
    fill(TINY, tmp_path)
    for name in (".argosy-stage/marker", ".argosy-stage/parts/left", "000/000001.bin.part", "x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert strangers(TINY, tmp_path) == [".argosy-stage/parts/left", "000/000001.bin.part", "x"]


def test_a_kill_counts_what_was_written_and_what_is_left(tmp_path: Path) -> None:
    one = Dataset("one", 1, 48 << 20, 48 << 20)
    with Origin([one]) as origin:
        uri = f"{origin.endpoint}/bench/one/000/000000.bin"
        outcome = kill(origin, one, [python(OURS, _HALF, uri)], tmp_path, 1)
    (seen,) = outcome.facts[OURS]
    assert 24 << 20 <= seen["sent"] < 48 << 20
    assert seen["on_disk"] == (1 + 6) << 20
    assert (seen["torn"], seen["stray"]) == (1, 1)
    assert seen["again"] >= 48 << 20
    assert [held for _, held in outcome.bars] == [False, False]


def test_no_link_is_said_and_not_raised_as_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LinkError, match=r"root|iproute2"), capped_link(100):
        pass
