"""A user of the dataset cache, SIGKILLed just before each of its system calls in turn, while it evicts and fills.

The cache holds a dataset and has room for one. A process links what a later version of it has in common with it,
makes room, fetches the rest, and books it for a run; it is killed before call COUNT of those it makes. After each:
what can be seen under the name of the old version is all of it or nothing, a process that comes next has the new one
whole, byte by byte, nothing lies in the trash, in parts, or as a lease that counts, and there is a booking of the new
one or none. Every fifth case another process waits for the one that is killed, and goes on in its place.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest
from tests.prove.record import ROOT, Record

COLUMNS = ["another process waits", "killed in the middle", "held"]
COUNT = 10_000
"""More than there are calls: all of them."""
USER = ROOT / "tests" / "data" / "cache_user.py"
FILES, SIZE = 12, 10_000
CAP = json.dumps({"size_gib": (FILES * SIZE + SIZE) / (1 << 30), "verify": "full"})


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Kill at each call until all are done or ``minutes`` are over; 0 when every case held."""
    record = Record("cache-kills", seed)
    work = record.folder / "cache-kills"
    shutil.rmtree(work, ignore_errors=True)
    old, new = prepare(work, seed)
    calls = min(count, count_calls(work, old, new))
    print(f"{calls} system calls; seed {seed}", flush=True)
    record.go_on(range(len(record.cases()) + 1, calls + 1), lambda number: kill_once(work, number, old, new), minutes)
    title, note = "A user of the dataset cache killed (SIGKILL) at each of its system calls", __doc__.split("\n", 2)[2]
    return record.told(title, COLUMNS, count=0, note=f"There are {calls} calls. {note.strip()}", by=COLUMNS[:1])


def prepare(work: Path, seed: int) -> tuple[DatasetManifest, DatasetManifest]:
    """A dataset that is staged in ``work/filled``, and its later version; their files in ``old`` and ``new``."""
    draw = random.Random(seed)
    for number in range(FILES):
        path = work / "source" / f"d{number % 3}" / f"{number:03d}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(SIZE))
    old = version(work, "old")
    out, _ = start(work, "old", "the first").communicate("\n", timeout=60)
    assert "done" in out, out
    (work / "cache").rename(work / "filled")
    for number in range(0, FILES, 2):
        (work / "source" / f"d{number % 3}" / f"{number:03d}").write_bytes(draw.randbytes(SIZE))
    return old, version(work, "new")


def version(work: Path, name: str) -> DatasetManifest:
    """The manifest of the source as it is now, and a copy of its files."""
    manifest = take_snapshot(f"file://{work}/source")
    (work / f"{name}.manifest").write_bytes(manifest.to_bytes())
    shutil.copytree(work / "source", work / name)
    return manifest


def start(work: Path, name: str, who: str, **environ: str) -> subprocess.Popen[str]:
    """A user of one of the two datasets."""
    command = [sys.executable, str(USER), str(work / f"{name}.manifest"), str(work / "cache"), who, CAP]
    return subprocess.Popen(
        command, env={**os.environ, **environ}, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def fresh(work: Path, old: DatasetManifest) -> None:
    """A cache that holds the old version, with the times of its files."""
    shutil.rmtree(work / "cache", ignore_errors=True)
    shutil.copytree(work / "filled", work / "cache")
    assert (work / "cache" / old.digest).is_dir()


def count_calls(work: Path, old: DatasetManifest, new: DatasetManifest) -> int:
    """Calls of a process that nobody kills, up to its end."""
    fresh(work, old)
    events = work / "events"
    out, _ = start(work, "new", "counted", CACHE_EVENTS=str(events), CACHE_BOOK="wf").communicate("\n", timeout=60)
    assert "done" in out, out
    assert whole(work / "cache" / new.digest, work / "new")
    return int(json.loads(events.read_text())["*"])


def files(folder: Path) -> dict[str, bytes]:
    """Path -> content of the data below a folder."""
    found = (path for path in folder.rglob("*") if path.is_file() and ".argosy-stage" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def whole(folder: Path, source: Path) -> bool:
    """Whether a staged folder has the source's files, all of them and no others."""
    return files(folder) == files(source)


def kill_once(work: Path, number: int, old: DatasetManifest, new: DatasetManifest) -> dict[str, Any]:
    """One case."""
    fresh(work, old)
    waiting = number % 5 == 0
    first = start(work, "new", "killed", CACHE_BOOK="wf", CACHE_AT=f"* * {number} {'STOP' if waiting else 'KILL'}")
    second = None
    if waiting:
        assert first.stdout is not None
        found = os.waitid(os.P_PID, first.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        second = start(work, "new", "the next")
        if found is not None and found.si_code == os.CLD_STOPPED:
            assert second.stdout is not None
            second.stdout.readline()  # it waits, or is done
        first.kill()
    first.communicate("\n", timeout=60)
    torn = (work / "cache" / old.digest).exists() and not whole(work / "cache" / old.digest, work / "old")
    second = second or start(work, "new", "the next")
    out, _ = second.communicate("\n", timeout=120)
    return {
        "number": number,
        "another process waits": "yes" if waiting else "no",
        "killed in the middle": first.returncode == -signal.SIGKILL,
        "held": not torn and second.returncode == 0 and clean(work, old, new),
        "said": out[-300:],
    }


def clean(work: Path, old: DatasetManifest, new: DatasetManifest) -> bool:
    """Whether the new dataset is there, the old one is gone, and nothing is left over."""
    root = work / "cache"
    with CacheRoot(root) as found:
        counted, booked = found.living(), found.bookings()
        trash = os.listdir(found.trash)
    parts = list(root.glob("*/.argosy-stage/parts/*"))
    there = {name for name in os.listdir(root) if not name.startswith(".")}
    mine = [(one.entry, one.who) for one in booked] in ([], [(new.digest, "killed")])
    return mine and not (counted or trash or parts) and there == {new.digest} and whole(root / new.digest, work / "new")
