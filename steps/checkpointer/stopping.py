"""How a training ends when its checkpoints say so: the same way on every rank."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from argosy.steps.checkpointer.leaving import await_gloo
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError


class Stopped(SystemExit):
    """The training must end now, with the exit code of ``cause``; on every rank, so that none waits for another.

    A SystemExit, so that a script's ``except Exception`` does not train on after it was fenced.
    """

    def __init__(self, cause: Cause, message: str, code: int) -> None:
        super().__init__(code)
        self.cause = cause
        self.message = message


_exit_code: int | None = None
_held_back = False
"""The code was never raised."""
_last_acts: list[tuple[int, Callable[[], None]]] = []


def at_exit(action: Callable[[], None]) -> None:
    """Call ``action`` when this process (no child that it forked) ends; when it raises Stopped, with that code."""
    _last_acts.append((os.getpid(), action))


def forget_exit(action: Callable[[], None]) -> None:
    """Do not call it any more."""
    _last_acts[:] = [(pid, other) for pid, other in _last_acts if other != action]


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """A Stopped within is raised to nobody: the process has its code when it ends."""
    global _held_back
    try:
        yield
    except Stopped:
        _held_back = True


@atexit.register
def _leave() -> None:
    stopped_before = _exit_code is not None and not _held_back
    for pid, action in _last_acts[::-1]:
        if pid == os.getpid():
            with contextlib.suppress(Stopped):
                action()
    await_gloo()
    # Registered at import, so that what the script registered later has run. A process group that was not destroyed
    # may abort in the interpreter's last moments ("terminate called without an active exception", SIGABRT): the
    # rank would be judged by that signal instead of by the code it stopped with.
    distributed = sys.modules.get("torch.distributed")
    unfinished = distributed is not None and distributed.is_available() and distributed.is_initialized()
    # What is learned only now can no longer be raised.
    if _exit_code is not None and (unfinished or not stopped_before):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_exit_code)


def stop(cause: Cause, message: str, code: int) -> NoReturn:
    """Print the line that launch looks for, and end."""
    global _exit_code
    _exit_code = code
    line = message if message.startswith(f"{cause} ") else f"{cause} {message}"
    print(f"argosy: {line}", file=sys.stderr, flush=True)
    raise Stopped(cause, message, code)


def stop_for(error: StepError) -> NoReturn:
    """End for an error."""
    stop(error.cause, str(error), int(error.code))


def failure(error: StepError) -> dict[str, Any]:
    """The error as a record for the other ranks."""
    return {"cause": str(error.cause), "message": str(error), "code": int(error.code)}


def checked(record: dict[str, Any]) -> dict[str, Any]:
    """The record, or the end of this process: every rank sees the same record, so every rank ends."""
    if "cause" in record:
        stop(Cause(record["cause"]), record["message"], int(record["code"]))
    return record
