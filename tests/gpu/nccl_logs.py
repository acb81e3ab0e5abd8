"""NCCL's own log of one rank under several settings: kept in nccl.json as fixtures, and read by steps/nccl.

Without a GPU NCCL gets as far as its bootstrap, which is what the stand-in asks of it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from argosy.steps.nccl.observed import Observer
from tests.gpu.case import Case, Part, Skipped

RANK = """
import sys, torch, torch.distributed as dist
torch.cuda.set_device(0)
store = dist.FileStore(sys.argv[1], int(sys.argv[3]))
dist.init_process_group("nccl", store=store, rank=int(sys.argv[2]), world_size=int(sys.argv[3]))
given = torch.ones(64 << 20, dtype=torch.uint8, device="cuda")
for _ in range(2):
    dist.all_reduce(given)
    out = torch.empty(int(sys.argv[3]) * given.numel(), dtype=torch.uint8, device="cuda")
    dist.all_gather_into_tensor(out, given)
torch.cuda.synchronize()
print("done", flush=True)
import os; os._exit(0)
"""
BOOTSTRAP = """
import ctypes, glob, os, sys, torch
found = glob.glob(os.path.join(os.path.dirname(os.path.dirname(torch.__file__)), "nvidia", "*", "lib", "libnccl.so.2"))
library = ctypes.CDLL(found[0])
print("done", library.ncclGetUniqueId(ctypes.create_string_buffer(128)), flush=True)
"""
SETTINGS: dict[str, dict[str, str]] = {
    "as it is": {},
    "more subsystems": {"NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,GRAPH,TUNING"},
    "sockets asked for": {"NCCL_NET": "Socket"},
    "InfiniBand asked for, none there": {"NCCL_NET": "IB"},
    "an interface that is not there": {"NCCL_SOCKET_IFNAME": "eth9"},
    "loopback": {"NCCL_SOCKET_IFNAME": "lo"},
    "unknown and useless variables": {"NCCL_TIMEOUT": "3600", "NCCL_BUFFSIZE": "8388608", "NCCL_ALGO": "Ring"},
    "no peer to peer, no shared memory": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
    "two ranks on one GPU": {},
    "two ranks on one GPU, allowed": {"NCCL_MULTI_RANK_GPU_ENABLE": "1"},
}


def one(case: Case) -> None:
    settings = SETTINGS[case.name]
    world = 2 if case.name.startswith("two ranks") else 1
    if world > 1 and not case.cuda:
        raise Skipped("two ranks need the GPU that they share")
    command = [sys.executable, "-c", RANK if case.cuda else BOOTSTRAP, str(case.folder / "rendezvous")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    # A setup that needs no network but the machine's own: a lent machine's name may not resolve.
    given = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(case.folder / "nccl.%p.log"), **settings}
    ranks = [
        subprocess.Popen(
            [*command, str(rank), str(world)], env={**kept, **given}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        for rank in range(world)
    ]  # fmt: skip
    said = []
    for rank in ranks:
        try:
            said.append(rank.communicate(timeout=max(10.0, case.left))[0])
        except subprocess.TimeoutExpired:
            rank.kill()
            said.append(rank.communicate()[0] + "\n(killed: it hung)")
    logs = [path.read_text(errors="replace") for path in sorted(case.folder.glob("nccl.*.log"))]
    keep(case, settings, logs, said, [rank.returncode for rank in ranks])


def keep(case: Case, settings: dict[str, str], logs: list[str], said: list[str], codes: list[int]) -> None:
    observer = Observer()
    for log in logs:
        observer.feed(log.splitlines())
    seen = observer.seen
    case.keep("nccl.json", {
        "device": case.device, "version": seen.version, "settings": settings, "codes": codes, "logs": logs,
        "said": [text[-6000:] for text in said],
    })  # fmt: skip
    case.figure("NCCL", seen.version or "says no version")
    case.figure(
        "lines of its log, and those that steps/nccl reads", f"{sum(map(len, map(str.splitlines, logs)))}, {seen.lines}"
    )
    case.figure("networks, channels", f"{', '.join(seen.networks) or 'none'}; {', '.join(seen.channels) or 'none'}")
    case.figure("exit codes", str(codes))
    case.figure("a log was written and read", bool(seen.lines), bar="True", held=bool(seen.lines))


PART = Part(dict.fromkeys(SETTINGS, one), seconds=90, beside=frozenset(SETTINGS))
