"""Ends of ranks that only a GPU can bring about, in managed runs: the right cause each, and the line it rests on."""

from __future__ import annotations

import re
import shutil
import subprocess

from argosy.steps.contract.causes import Cause
from tests.gpu.case import Case, Part
from tests.gpu.managed import Managed

CAUSES: dict[str, tuple[set[Cause], str]] = {
    "oom": ({Cause.GPU_OOM}, "out of memory"),
    "device_assert": ({Cause.CUDA_ILLEGAL_ACCESS}, "assert"),
    "illegal_address": ({Cause.CUDA_ILLEGAL_ACCESS}, "illegal"),
    "aborted": ({Cause.PEER_LOST}, "abort"),
    "not_deterministic": ({Cause.USER_EXCEPTION}, "deterministic"),
    # Where NCCL does not take two ranks on a GPU the right cause is that one.
    "peer_killed": ({Cause.UNKNOWN, Cause.NCCL_INVALID_USAGE}, "signal 9|duplicate gpu"),
}


def one(case: Case) -> None:
    nproc = 2 if case.name == "peer_killed" else 1
    environ = {"GPU_DEVICE": case.device, "NCCL_MULTI_RANK_GPU_ENABLE": "1", "NCCL_DEBUG": "WARN"}
    run = Managed(case.folder / "run", case.name, environ, nproc, max_restarts=1, max_same_failure=1)
    code = run.run(max(30.0, case.left))
    verdict = run.verdict()
    causes, words = CAUSES[case.name]
    cause, quote = str(verdict.get("cause", "none")), str(verdict.get("quote", ""))
    wanted = " or ".join(sorted(causes))
    if case.cuda:
        case.keep("faults.json", {"verdict": verdict, "log": run.log(20_000)})
    if cause not in causes:
        case.say(f"exit code {code}; {run.log()}")
    case.figure("cause", cause, bar=wanted, held=cause in causes)
    quoted = re.search(words, quote.lower()) is not None
    case.figure("quoted", quote[:300] or "nothing", bar=f"says {words}", held=quoted)
    if case.cuda and shutil.which("dmesg"):
        told = subprocess.run(["dmesg"], capture_output=True, text=True, timeout=20).stdout
        xids = [line for line in told.splitlines() if "NVRM" in line or "Xid" in line]
        case.figure("lines of the kernel's log on the GPU", " / ".join(xids[-4:]) or "none")


PART = Part(dict.fromkeys(CAUSES, one), seconds=120, beside=frozenset(CAUSES) - {"oom"})
