"""Resuming 8 and 40 GB: from the start of a fresh process until the state lies on the GPU, beside torch.load.

Both read what they wrote themselves, with the page cache asked to forget it; argosy verifies every byte (SHA-256),
torch.load nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.gpu.case import Case, Part
from tests.gpu.link import gpt_like, need_memory
from tests.gpu.stalls import SIZES, roomy


def both(case: Case) -> None:
    width, layers, _ = case.pick(SIZES[case.name], (32, 2, 0))
    count = 144 * layers * width**2
    need_memory(case, int(count * 1.3) + case.pick(4 << 30, 0))
    seconds = {}
    for how in ("torch", "argosy"):
        folder = roomy(case, count)
        folder.mkdir(parents=True)
        for what in ("save", "load"):
            began = time.monotonic()
            command = [sys.executable, "-m", "tests.gpu.resume", how, what, str(folder), case.device]
            subprocess.run([*command, str(width), str(layers)], check=True, timeout=max(30, case.left))
            seconds[how] = time.monotonic() - began
            case.say(f"{how}: {what}")
            forget(folder)
        case.figure(f"{how}: process start to state on the device", seconds[how], "s")
        case.figure(f"{how}: speed", count / seconds[how] / 1e9, "GB/s")
        shutil.rmtree(folder)
    case.figure("argosy / torch.load", seconds["argosy"] / seconds["torch"], "x")


def forget(folder: Path) -> None:
    """Ask the kernel to drop the files from its cache."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill(state: Any, loaded: Any) -> None:
    """Copy tensors into those of the same place."""
    if isinstance(state, dict):
        for key, value in state.items():
            fill(value, loaded[key])
    elif hasattr(state, "copy_"):
        state.copy_(loaded)


def child(how: str, what: str, folder: Path, device: str, width: int, layers: int) -> None:
    """Make the state; save it, or load into it and look that it is what was saved."""
    import torch

    from argosy import Checkpointer

    case = Case("", device, folder, 600)
    torch.manual_seed(1 if what == "save" else 2)
    state = gpt_like(case, width, layers)
    last = state["model"][f"blocks.{layers - 1}.mlp.2"]
    if how == "torch":
        path = folder / "state.pt"
        if what == "save":
            torch.save(state, path)
        else:
            # Not onto the GPU at once: beside the state that is filled it would not fit.
            fill(state, torch.load(path, map_location="cpu", mmap=True, weights_only=True))
    else:
        checkpointer = Checkpointer(folder / "store", asynchronous=False)
        if what == "save":
            checkpointer.save(1, state)
        else:
            assert checkpointer.restore(into=state) is not None
    told = folder / "last-sum"
    if what == "save":
        told.write_text(repr(last.double().sum().item()))
    else:
        assert told.read_text() == repr(last.double().sum().item()), "another state than was saved"


PART = Part({"8 GB": both, "40 GB": both}, seconds=420, disk=frozenset({"8 GB", "40 GB"}))

if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
