"""What training waits for in a save of 1, 8 and 40 GB, beside torch's own ways and the link's limit of the same run.

Each contender runs in a process of its own, after the others' memory and files are gone. The state is a GPT's with
fused AdamW. The floor is the time that the same number of bytes takes from the GPU into pinned memory, measured in
the contender's process. 40 GB are saved once (after ``prepare``): two checkpoints of it need not fit on the disk.
"""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path
from typing import Any

from tests.gpu.case import Case, Part, Skipped
from tests.gpu.link import d2h_bytes_per_second, gpt_like, need_memory, settle

# (width, layers, rounds after the first) of a state of about so many GB: 144 * layers * width^2 bytes
SIZES = {"1 GB": (768, 12, 10), "8 GB": (1536, 24, 4), "40 GB": (2560, 42, 0)}
PEERS = ("DCP thread", "DCP process", "torch.save")


def contender(case: Case, who: str, state: dict[str, Any], folder: Path) -> Any:
    import torch.distributed as dist

    from benchmarks.checkpoints.savers import Argosy, AsyncDcp, PerRank

    store = dist.FileStore(str(case.folder / "rendezvous"), 1)
    backend = case.pick("cpu:gloo,cuda:nccl", "gloo")
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    if who == "argosy":
        return Argosy(state, folder)
    return PerRank(state, folder) if who == "torch.save" else AsyncDcp(state, folder, who.split()[1])


def one(case: Case, size: str, who: str) -> None:
    import torch

    width, layers, rounds = case.pick(SIZES[size], (32, 2, 1))
    count = 144 * layers * width**2
    if case.cuda:
        torch.cuda.set_device(0)
    need_memory(case, int(count * 1.3) + case.pick(4 << 30, 0))
    folder = roomy(case, count)
    floor = count / d2h_bytes_per_second(case, case.pick(1 << 30, 1 << 20), pinned=case.cuda)
    state = gpt_like(case, width, layers)
    case.say(f"{count / 1e9:.2f} GB of state, floor {1000 * floor:.1f} ms, into {folder}")
    began = time.perf_counter()
    saver = contender(case, who, state, folder)
    case.figure("getting ready", time.perf_counter() - began, "s")
    stalls, durable = [], 0.0
    for number in range(1, rounds + 2):
        settle(case)
        began = time.perf_counter()
        saver.save(number)
        settle(case)
        stalls.append(time.perf_counter() - began)
        case.say(f"save {number}: {1000 * stalls[-1]:.1f} ms")
        saver.finish()
        durable = time.perf_counter() - began
        if case.left < durable * 1.5:
            break
    told(case, size, who, stalls, floor, durable)
    shutil.rmtree(folder, ignore_errors=True)


def told(case: Case, size: str, who: str, stalls: list[float], floor: float, durable: float) -> None:
    """The first save apart, the median of the others (of 40 GB there is only the first)."""
    stall = statistics.median(stalls[1:] or stalls)
    case.figure("floor", 1000 * floor, "ms")
    case.figure("first save's stall", 1000 * stalls[0], "ms")
    case.figure("stall", 1000 * stall, "ms")
    case.figure("until durable, last", durable, "s")
    ours = who == "argosy"
    bar = {"bar": "<= 1.1", "held": stall <= 1.1 * floor} if ours and case.cuda else {}
    case.figure("stall / floor", stall / floor, "x", **bar)
    peers = [case.known.get(f"{size}, {peer}: stall") for peer in PEERS[:2]]
    best = min((peer for peer in peers if peer), default=None)
    if ours and best:
        bar = {"bar": "<= 0.7", "held": 1000 * stall <= 0.7 * best} if case.cuda else {}
        case.figure("stall / best of DCP", 1000 * stall / best, "x", **bar)


def roomy(case: Case, count: int) -> Path:
    """A folder with room for what is saved, the case's own if it can be.

    Raises:
        Skipped: neither the disk nor /dev/shm has it.
    """
    width = 1.15 if count > 20e9 else 2.3
    for folder in (case.folder / "saves", Path("/dev/shm") / f"{case.folder.name}-saves"):
        if shutil.disk_usage(folder.parent).free > count * width:
            return folder
    raise Skipped(f"{count * width / 1e9:.0f} GB of disk are needed")


def _of(size: str, who: str) -> Any:
    return lambda case: one(case, size, who)


# Argosy last of each size: its bar is held against the peers' figures.
CASES = {f"{size}, {who}": _of(size, who) for size in SIZES for who in (*PEERS, "argosy")}
PART = Part(CASES, seconds=300, disk=frozenset(CASES))
