"""``python -m tests.crash.full_disk FOLDER STRIDE``: a store on a tmpfs that is full, or read-only, at each write.

Runs in a mount namespace of its own. Every ``STRIDE``-th size: claim, saves and prunes until the disk is full; then
the disk grows, and the oracle judges what is left. Prints one line per case, ``SIZE INODES ACKNOWLEDGED CAUSE CODE``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.contract.errors import StepError
from argosy.steps.store import StoreError, open_store
from tests.crash.oracle import RUN, History, judge
from tests.crash.workloads import saves

PAGES, INODES = range(1, 60), range(2, 90)
PLENTY = 10_000


def mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", str(folder)], check=True)


def full(folder: Path, pages: int, inodes: int) -> bool:
    """One case; whether the disk was full."""
    mount(folder, f"size={pages * os.sysconf('SC_PAGE_SIZE')},nr_inodes={inodes}")
    uri, history, told = f"file://{folder}/store", History(), "went well"
    try:
        saves(open_store(uri), history, folder)
    except StoreError as error:
        told = f"{error.cause} {int(error.code)}"
    print(pages, inodes, len(history.acknowledged), told)
    subprocess.run(["mount", "-o", f"remount,size=50m,nr_inodes={PLENTY}", str(folder)], check=True)
    judge(open_store(uri), history)
    parts = folder / "store" / ".argosy-parts"
    assert not list(parts.iterdir()), "half-written objects are left"
    subprocess.run(["umount", str(folder)], check=True)
    return told != "went well"


def read_only(folder: Path) -> None:
    """The store becomes read-only in mid-run: writing says so, reading goes on, and nothing is lost."""
    mount(folder, "size=50m")
    uri, history = f"file://{folder}/store", History()
    saves(open_store(uri), history, folder)
    checkpoints = CheckpointStore(open_store(uri), RUN)
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    try:
        checkpoints.claim("next")
    except StepError as error:
        print("read-only", error.cause, int(error.code), str(error))
    newest = checkpoints.newest()
    assert newest is not None
    checkpoints.verify(newest)
    assert newest.digest == history.acknowledged[-1]
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)
    judge(open_store(uri), history)
    subprocess.run(["umount", str(folder)], check=True)


def main() -> None:
    folder, stride = Path(sys.argv[1]), int(sys.argv[2])
    read_only(folder)
    for pages in PAGES[::stride]:
        if not full(folder, pages, PLENTY):
            break
    for inodes in INODES[::stride]:
        if not full(folder, PLENTY, inodes):
            break


if __name__ == "__main__":
    main()
