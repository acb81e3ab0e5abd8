"""What this node keeps of a start that failed: gathered when its ranks have ended, stored beside what comes next."""

from __future__ import annotations

import contextlib
import glob
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment, Ending
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import bundle_key, run_prefix
from argosy.steps.evidence import cgroup, machine
from argosy.steps.evidence.bundle import Bundle, limit
from argosy.steps.launch.identity import Identity
from argosy.steps.paths import resolve
from argosy.steps.store.base import ObjectStore

STORE_SECONDS: Final = 10.0
"""A pod that goes down stays so long for what it has still to store."""
SPY_SECONDS: Final = 1.5
"""For all ranks' stacks together: a hang's own last words come 3 s after it was seen."""
_RECORDER: Final = "flight-recorder-rank_"
_RECORDING: Final = {
    # Both names: torch 2.15 reads the first of each pair, before that only the second was known.
    "TORCH_FR_DUMP_TEMP_FILE": "{prefix}", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "{prefix}",
    "TORCH_FR_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
}  # fmt: skip


class NodeEvidence:
    """Of one restart; what is gathered of it is stored in a thread that may outlive it."""

    def __init__(self, args: LaunchArgs, identity: Identity, assignment: Assignment, store: ObjectStore) -> None:
        """Take the counters' first readings."""
        self._args, self._identity, self._assignment, self._store = args, identity, assignment, store
        self._folder: Path | None = None
        self._workdir: Path | None = None
        self._infiniband = machine.infiniband()
        self._oom_kills = cgroup.oom_kills()
        self._pids: dict[int, int] = {}
        self._stacks: dict[int, str] = {}
        self._thread: threading.Thread | None = None

    def environment(self, environ: dict[str, str], folder: Path, workdir: Path) -> None:
        """Where the ranks of this restart write what is looked for later; what the user set stays."""
        self._folder, self._workdir = folder, workdir
        for name, value in _RECORDING.items():
            environ.setdefault(name, value.format(prefix=folder / _RECORDER))
        self._environ = environ

    def started(self, rank: int, pid: int) -> None:
        """A rank's own process runs."""
        self._pids[rank] = pid

    def look_at_stacks(self) -> None:
        """Before hanging ranks are ended: their stacks, C++ frames too, where py-spy is in the image and may look."""
        spy = shutil.which("py-spy")
        if spy is None:
            return
        deadline, running = time.monotonic() + SPY_SECONDS, {}
        for rank, pid in list(self._pids.items()):  # a rank may yet begin
            command = [spy, "dump", "--nonblocking", "--pid", str(pid)]
            with contextlib.suppress(OSError):
                running[rank] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank, process in running.items():
            try:
                told, _ = process.communicate(timeout=max(0.05, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                told, _ = process.communicate()
            self._stacks[rank] = told.decode("utf-8", "replace")

    def gather(self, endings: Sequence[Ending]) -> None:
        """The ranks have ended: begin to store what is known. Again: nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, args=(list(endings),), name="evidence", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> None:
        """Until it is stored, or the time is over."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _keep(self, endings: Sequence[Ending]) -> None:
        assignment = self._assignment
        key = bundle_key(
            run_prefix(self._args.name, assignment.run_id), self._identity.gang, assignment.restart, self._identity.pod
        )
        try:
            self._store.put(key, self._bundle(endings).archive())
        except (StepError, OSError) as error:  # evidence is worth no failure
            print(f"argosy: evidence of this node was not stored: {error}", flush=True)

    def _bundle(self, endings: Sequence[Ending]) -> Bundle:
        assignment = self._assignment
        facts = {"pod": self._identity.pod, "node": self._identity.node, "node_rank": assignment.node_rank,
                 "attempt": assignment.attempt, "restart": assignment.restart, "time": time.time()}  # fmt: skip
        bundle = Bundle(limit(assignment.nnodes), facts)
        bundle.add_json("endings.json", [asdict(ending) for ending in endings])
        for rank, stack in self._stacks.items():
            bundle.add(f"stacks/rank-{rank}.txt", stack)
        bundle.add("machine/cgroup.txt", cgroup.facts())
        killed = cgroup.oom_kills() - self._oom_kills
        bundle.add("machine/oom-kills.txt", f"{killed} since this start began\n" if killed else "")
        bundle.add("machine/room.jsonl", machine.room(_disks(self._workdir)))
        now = machine.infiniband()
        bundle.add_json("machine/infiniband.json", now)
        bundle.add_json("machine/infiniband-changed.json", machine.changed(self._infiniband, now))
        bundle.add_json("machine/gpus.json", _gpus())
        bundle.add("machine/kernel.log", machine.kernel_log())
        for name, path in self._files():
            bundle.add_file(name, path)
        return bundle

    def _files(self) -> Iterable[tuple[str, Path]]:
        """What ranks wrote, of each kind all ranks: the recorder's dumps before logs."""
        if self._folder is None or self._workdir is None:
            return
        environ: Mapping[str, str] = self._environ
        prefix = environ.get("TORCH_FR_DUMP_TEMP_FILE") or environ["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"]
        for name in sorted(glob.glob(f"{glob.escape(prefix)}*")):
            yield f"flight-recorder/{Path(name).name}", Path(name)
        for path in sorted(self._folder.glob("rank-*.log")):
            yield f"ranks/{path.name}", path
        for path in sorted(self._folder.glob("nccl.*.log")):
            yield f"nccl/{path.name}", path
        for path in _own_nccl_files(environ.get("NCCL_DEBUG_FILE", ""), self._workdir, self._folder):
            yield f"nccl/{path.name}", path


def _disks(workdir: Path | None) -> list[Path]:
    return [resolve("/dev/shm"), Path("/tmp"), resolve("/argosy"), *([] if workdir is None else [workdir])]


def _gpus() -> object:
    from argosy.steps.evidence.nvml import gpus  # most nodes that fail have none of it to tell

    return gpus()


def _own_nccl_files(pattern: str, workdir: Path, ours: Path) -> list[Path]:
    """Where the user has NCCL write its log."""
    if not pattern or pattern.startswith((str(ours), "/dev/")):
        return []
    from argosy.steps.launch.nccl_logs import pattern_of

    return [Path(path) for path in sorted(glob.glob(pattern_of(str(workdir / pattern))))]
