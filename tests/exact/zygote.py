"""``python -m tests.exact.zygote``: has torch imported, and forks gangs of ranks on request: 10 ms instead of 3 s.

One JSON object per line on stdin, one answer per line on stdout. ``{"start": {...}}`` answers pids in order of rank,
``{"reap": true}`` answers {pid: exit code, or minus the signal}. End of stdin ends everything it started.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.exact import training

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1


class Zygote:
    """The harness's side."""

    def __init__(self) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
        environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}  # fmt: skip
        command = [sys.executable, "-m", "tests.exact.zygote"]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def start(
        self, what: str, *, world: int, folder: Path, gang: str, environ: dict[str, str] | None = None, **arguments: Any
    ) -> list[int]:
        """Fork a gang whose ranks call ``what`` (module:function); their pids.

        Below ``folder`` a rank leaves ``GANG-RANK.err`` and, when it returned, ``GANG-RANK.answer`` (JSON).
        """
        request = {"what": what, "world": world, "folder": str(folder), "gang": gang, "environ": environ or {}}
        return [int(pid) for pid in self._ask({"start": {**request, "arguments": arguments}})]

    def reap(self) -> dict[int, int]:
        """What ended since the last call: pid -> exit code, or minus the signal."""
        return {int(pid): int(code) for pid, code in self._ask({"reap": True}).items()}

    def close(self) -> None:
        """End it and every rank."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, request: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def _warm() -> None:
    # What a first step imports or builds is done here once; no backward pass: its threads do not survive a fork.
    import obstore.store  # noqa: F401
    import safetensors.torch  # noqa: F401

    torch.set_num_threads(1)
    model, optimizer, schedule, loader = training.parts(0, 8, 4, 2)
    training.ExactDataParallel(model, loader)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()


def _rank(rank: int, request: dict[str, Any]) -> int:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    folder, world = Path(request["folder"]), int(request["world"])
    os.environ.update(request["environ"])
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(world)})
    with (folder / f"{request['gang']}-{rank}.err").open("ab") as errors:
        os.dup2(errors.fileno(), 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    if world > 1:
        store = dist.FileStore(str(folder / f"{request['gang']}.rendezvous"), world)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    module, _, function = request["what"].partition(":")
    answer = getattr(importlib.import_module(module), function)(**request["arguments"])
    (folder / f"{request['gang']}-{rank}.answer").write_text(json.dumps(answer))
    return 0


def _forked(rank: int, request: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        code = _rank(rank, request)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _reaped() -> dict[int, int]:
    found = {}
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            found[pid] = os.waitstatus_to_exitcode(status)
    return found


def main() -> None:
    """Serve until stdin ends."""
    _warm()
    alive: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "start" in request:
            answer: Any = [_forked(rank, request["start"]) for rank in range(int(request["start"]["world"]))]
            alive |= set(answer)
        else:
            answer = _reaped()
            alive -= set(answer)
        print(json.dumps(answer), flush=True)
    for pid in alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(0)  # torch takes seconds to leave in order


if __name__ == "__main__":
    main()
