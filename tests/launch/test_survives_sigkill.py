"""A process that SIGKILL does not end, like one that sleeps in a driver: a tracer holds it where it would end."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.pods import processes

if TYPE_CHECKING:
    from tests.launch.conftest import Gang

SLEEPS = """
import ctypes, os, time
ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # whoever it is may trace us
with open("pid.new", "w") as told:
    told.write(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)
"""
PTRACE_SEIZE: Final = 0x4206
PTRACE_O_TRACEEXIT: Final = 0x40
PTRACE_DETACH: Final = 17


@contextmanager
def held_at_its_end(pid: int) -> Iterator[None]:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    assert libc.ptrace(PTRACE_SEIZE, pid, None, PTRACE_O_TRACEEXIT) == 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        libc.ptrace(PTRACE_DETACH, pid, None, None)


def test_the_node_is_at_fault_and_its_pod_begins_nothing_more(make_gang: Callable[[int], Gang]) -> None:
    gang = make_gang(1)
    (gang.workspace(0) / "train.py").write_text(SLEEPS)
    gang.start(script="train.py", launcher="plain", grace_seconds=1)
    gang.assign()
    told = gang.workspace(0) / "pid"
    gang.until(told.exists, 20, "rank")
    pid = int(told.read_text())
    with held_at_its_end(pid):
        gang.order("stop")
        assert gang.exit_codes(120) == [ExitCode.SUSPECT_NODE]
        assert processes.start_time(pid) is not None
    gang.look()
    assert {(error["cause"], error["code"], error["node"]) for error in gang.errors()} == {("hang", 71, "node-0")}
    assert f"argosy: processes [{pid}] survive SIGKILL" in gang.pods[0].text()
