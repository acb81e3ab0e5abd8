"""The machine: what it is, what its link to host memory gives, and whether a snapshot's arena can be pinned."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

from argosy.steps.evidence import nvml
from tests.gpu.case import Case, Part
from tests.gpu.link import d2h_bytes_per_second, memory_for


def facts(case: Case) -> None:
    import torch

    case.figure("Python", platform.python_version())
    case.figure("torch", torch.__version__)
    case.figure("CUDA of torch", str(torch.version.cuda))
    case.figure("kernel", platform.release())
    case.figure("cores", len(os.sched_getaffinity(0)))
    case.figure("date", time.strftime("%Y-%m-%d", time.gmtime()))
    if case.cuda:
        case.figure("GPU", torch.cuda.get_device_name())
        case.figure("NCCL", ".".join(map(str, torch.cuda.nccl.version())))
        ask = ["nvidia-smi", "--query-gpu=driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit",
               "--format=csv,noheader"]  # fmt: skip
        told = subprocess.run(ask, capture_output=True, text=True, timeout=30) if shutil.which(ask[0]) else None
        case.figure("driver, memory, SM clock, highest, power limit", told.stdout.strip() if told else "no nvidia-smi")
        known = nvml.gpus()
        case.figure("evidence by NVML", json.dumps(known), bar="all asked is told", held=told_whole(known))
    for path in (Path("/tmp"), Path("/dev/shm")):
        case.figure(f"free in {path}", f"{shutil.disk_usage(path).free / 1e9:.0f} GB")


def told_whole(known: object) -> bool:
    """Whether the driver answered each question; what this kind of GPU may lack apart."""
    lacks = {"retired_pages_pending"}  # of GPUs before Ampere; the later ones remap rows
    return isinstance(known, list) and all(
        value is not None for gpu in known for key, value in gpu.items() if key not in lacks
    )


def link(case: Case) -> None:
    size = case.pick(1 << 30, 1 << 22)
    free = memory_for(case, case.pick(50 << 30, 1 << 26))
    case.figure("host memory that can be had", free / 1e9, "GB")
    for pinned in (True, False) if case.cuda else (False,):
        speed = d2h_bytes_per_second(case, size, pinned=pinned)
        case.figure(f"device to host, {'pinned' if pinned else 'pageable'}", speed / 1e9, "GB/s")


def arena(case: Case) -> None:
    """Registering must work for anonymous shared memory of a few GB, twice, and leave no error behind."""
    import torch

    from argosy.steps.checkpointer.arena import Arena
    from argosy.steps.checkpointer.pinning import pin

    made = Arena()
    for size in case.pick((1 << 30, 4 << 30), (1 << 20, 4 << 20)):
        began = time.monotonic()
        made.grow(size)
        grown = time.monotonic()
        case.figure(f"arena of {size / 1e9:.1f} GB: in place", grown - began, "s")
        if case.cuda:
            why = pin(made, torch.device("cuda", 0))
            case.figure("pinned", why or "yes", bar="yes", held=not why)
            case.figure(f"arena of {size / 1e9:.1f} GB: pinned", time.monotonic() - grown, "s")
            torch.ones(1, device="cuda").item()
    if case.cuda:
        failed = int(torch.cuda.cudart().cudaHostRegister(made.address, made.size, 1))  # a second time: refused
        case.figure("registering again is refused with", failed, bar="not 0", held=failed != 0)
        known = made.unpin
        made.unpin = None
        why = pin(made, torch.device("cuda", 0))
        torch.ones(1, device="cuda").item()  # would raise the error of the registration
        case.figure("a refused registration leaves no error", why, bar="says why", held=bool(why))
        made.unpin = known
    made.close()


PART = Part({"facts": facts, "link": link, "arena": arena}, seconds=120)
