"""How the ranks of a faulted gang ended: with what code and words, and how soon they knew."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.exact.gang import Gang
from tests.processes.faults import KINDS

if TYPE_CHECKING:
    from tests.processes.chain import Found

TOLD = {75}
"""Told by argosy: a peer, a writer or the store was lost."""
BY_TORCH = {1, -6}
"""A collective of the script's own failed: an exception in it, or gloo's abort."""
OURS = re.compile(r'File "[^"]*/(?:argosy/)?steps/[^"]*", line \d+, in \w+')


def lines_of(folder: Path, gang: Gang, rank: int) -> list[dict[str, Any]]:
    """What the rank told, oldest first."""
    path = folder / f"{gang.name}-{rank}.lines"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def judged(kind: str, phase: str, struck: int, at: float, gang: Gang, folder: Path, found: Found) -> None:
    """Add to ``found`` what the ranks of a struck gang did."""
    fault = KINDS[kind]
    for rank, pid in enumerate(gang.pids):
        code = gang.codes.get(pid, 0)
        who = f"{kind}, {phase}, rank {struck}: rank {rank}"
        text = (folder / f"{gang.name}-{rank}.err").read_text(errors="replace")
        words = " ".join(text.split())[-700:]
        if rank == struck and not fault.of_writer:
            if fault.codes and code not in fault.codes:
                found.wrong.append(f"{who} was struck and ended with {code}: {words}")
            continue
        if pid in gang.killed:
            found.endings["ended by the harness"] = found.endings.get("ended by the harness", 0) + 1
            if not fault.hangs:
                found.wrong.append(f"{who} never knew: {words}")
            continue
        found.endings[str(code)] = found.endings.get(str(code), 0) + 1
        if code not in TOLD | BY_TORCH | ({70} if kind == "uncaught exception" else set()):
            found.wrong.append(f"{who} ended with {code}: {words}")
        if "Traceback" in text and OURS.search(text):
            found.wrong.append(f"{who} ended with a traceback of ours: {words}")
        if code in TOLD and "argosy: " not in text:
            found.wrong.append(f"{who} ended with {code} and said nothing: {words}")
        knew = [line["time"] for line in lines_of(folder, gang, rank) if "knew" in line]
        if knew:
            found.knew.append(round(knew[0] - at, 2))
