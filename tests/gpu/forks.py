"""Processes forked from one that has torch imported and no CUDA context: a rank in a second instead of six."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from tests.gpu.case import Case

_PR_SET_PDEATHSIG = 1


class Fork:
    """Runs ``work(say)``; ``said`` waits for a word that it says."""

    def __init__(self, work: Callable[[Callable[[str], None]], None], log: Path) -> None:
        self._ear, mouth = os.pipe()
        self._heard = b""
        self.code: int | None = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(work, mouth, log)
        os.close(mouth)

    @staticmethod
    def _run(work: Callable[[Callable[[str], None]], None], mouth: int, log: Path) -> None:
        code = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(target, 1)
            os.dup2(target, 2)
            work(lambda word: os.write(mouth, word.encode() + b"\n") and None)
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def said(self, word: str, seconds: float) -> bool:
        """Whether it says the word (of all that it said) within so long; False when it ended without."""
        import time

        end = time.monotonic() + seconds
        while word.encode() + b"\n" not in self._heard:
            if not select.select([self._ear], [], [], max(0.0, end - time.monotonic()))[0]:
                return False
            if not (data := os.read(self._ear, 4096)):
                return False
            self._heard += data
        return True

    def kill(self) -> int:
        """SIGKILL and reap; how it ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def wait(self) -> int:
        """Reap; exit code, or minus the signal."""
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._ear)
        return self.code


def preload(case: Case) -> None:
    """Import what forked ranks need, without touching CUDA: even asking for devices would spoil it for them."""
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    import torch
    import torch._dynamo
    import torch._inductor
    import torch.distributed

    import argosy.steps.checkpointer.checkpointer
    import argosy.steps.exact.data_parallel  # noqa: F401

    torch.set_num_threads(1)
    assert not torch.cuda.is_initialized()
    case.say("torch is imported")
