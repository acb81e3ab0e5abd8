"""Gloo's threads let go of their tensors while the interpreter still stands: after that, trying to would abort it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_PAUSE_SECONDS = 0.01
_LIMIT_SECONDS = 1.0
_THREADS = Path("/proc/self/task")


def await_gloo() -> None:
    """Return when every gloo thread has slept through a pause in which the GIL was free; after a second anyway.

    A collective is told as done before gloo's thread drops its tensors, for which it may need the GIL. Where the
    interpreter is by then at its end, CPython before 3.14 ends the thread inside a C++ destructor: "terminate called
    without an active exception", SIGABRT (https://github.com/pytorch/pytorch/issues/190489), be the process group
    destroyed or not. A thread that waits for the GIL is woken by the pause, which its counts of switches tell.
    """
    deadline = time.monotonic() + _LIMIT_SECONDS
    seen = _gloo_threads()
    while seen and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)
        now = _gloo_threads()
        if now == seen and all(state.startswith("S") for state, *_ in now.values()):
            return
        seen = now


def _gloo_threads() -> dict[str, tuple[str, str, str]]:
    """State and counts of switches by thread; empty where there is no ``/proc``."""
    found = {}
    with contextlib.suppress(OSError):
        for thread in _THREADS.iterdir():
            with contextlib.suppress(OSError):  # it has ended
                lines = (thread / "status").read_text().splitlines()
                facts = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
                if facts["Name"] == "pt_gloo_runloop":
                    switches = facts["voluntary_ctxt_switches"], facts["nonvoluntary_ctxt_switches"]
                    found[thread.name] = (facts["State"], *switches)
    return found
