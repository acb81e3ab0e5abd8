"""What a training script says of its progress: one call, read by the rank's parent over a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Sequence
from typing import Any

from argosy.steps.arrivals import Arrivals
from argosy.steps.contract import env

MAX_LINE = 4096
"""Lines up to PIPE_BUF are written whole: ranks that fork loaders cannot mix theirs (pipe(7))."""
_FILES_A_LINE = 30
_arrivals = Arrivals()


def report(
    step: int,
    *,
    loss: float | None = None,
    tokens: int | None = None,
    end_step: int | None = None,
    compute_seconds: float | None = None,
) -> None:
    """Say that optimizer step ``step`` (counted from 1) is done.

    ``loss`` of that step, ``tokens`` processed by this rank since the last call, ``end_step`` the step that
    ends the training; ``compute_seconds`` that this rank itself worked in it, without waiting for others: by it slow
    ranks are found, and where it is not given, by when the rank came to torch's collectives. Outside argosy it does
    nothing. An injected fault that only this process can produce (``--inject exit:...``) happens here.
    """
    told = {"loss": loss, "tokens": tokens, "end_step": end_step, "own": compute_seconds}
    _send({"type": "step", "step": step, **told, "time": time.time()})
    if compute_seconds is None and env.PROGRESS_FD in os.environ and (worked := _arrivals.done(step)):
        _send({"type": "worked", "steps": worked})
    _fault(step)


def skips(step: int) -> bool:
    """Whether the data of ``step`` are to be passed over: the loss was no number there again and again
    (``retry.nan_skip_steps``). The step is counted, and nothing is trained in it.
    """
    windows = os.environ.get(env.SKIP_STEPS, "")
    return any(int(first) <= step <= int(last) for first, _, last in (each.partition("-") for each in windows.split()))


def entered(phase: str) -> None:
    """Say that this rank begins to ``save`` or to ``restore`` a checkpoint, for a fault that is injected there."""
    _send({"type": "entered", "phase": phase})


def committed(step: int, *, digest: str, size: int, seconds: float, final: bool, generation: int) -> None:
    """Say that the checkpoint of ``step`` is durable and committed (rank 0; Checkpointer calls it).

    ``size`` in bytes, ``seconds`` from the call of save to the commit.
    """
    record = {"digest": digest, "bytes": size, "seconds": round(seconds, 3), "final": final, "generation": generation}
    _send({"type": "checkpoint", "step": step, **record, "time": time.time()})


def kept(handle: int, name: str, files: Sequence[tuple[str, int, int]]) -> None:
    """Say which files of the save ``name`` lie in the shared memory that this process has open as ``handle``: SHA-256,
    where it begins, size. Launch holds that memory, so that ranks which it starts anew need not ask the store. Without
    files: those of the save before do not lie there any more.
    """
    for first in range(0, max(len(files), 1), _FILES_A_LINE):
        record = {"pid": os.getpid(), "handle": handle, "name": name, "files": files[first : first + _FILES_A_LINE]}
        _send({"type": "kept", **record})


def durable(name: str) -> None:
    """Say that the save ``name``, of which :func:`kept` told, is committed."""
    _send({"type": "durable", "name": name})


def restored(*, size: int, fetched: int, seconds: float) -> None:
    """Say that every rank of the gang has restored: this one ``size`` bytes, ``fetched`` of them from the store."""
    _send({"type": "restored", "bytes": size, "fetched_bytes": fetched, "seconds": round(seconds, 3)})


def streamed(*, bytes: float, fetched_bytes: float, requests: float, refetched: float, waited_seconds: float) -> None:
    """Say what was read from the dataset's store since the last call, and how long samples were waited for."""
    record = {"bytes": bytes, "fetched_bytes": fetched_bytes, "requests": requests, "refetched": refetched}
    _send({"type": "streamed", **record, "waited_seconds": waited_seconds, "time": time.time()})


def preflight(*, summary: str, flaws: list[str], seconds: float, enforced: bool) -> None:
    """Say what was found of the gang before its first step (rank 0)."""
    told = {"summary": summary, "flaws": flaws, "seconds": round(seconds, 1), "enforced": enforced}
    _send({"type": "preflight", **told, "time": time.time()})


def failed(cause: str, message: str, *, node: str) -> None:
    """End this start of the gang: its ``cause`` is known, and so is the ``node`` that is at fault, unless empty."""
    _send({"type": "failure", "cause": cause, "message": message, "node": node})


def _send(record: dict[str, Any]) -> None:
    handle = pipe()
    if handle is None:
        return
    line = (json.dumps({k: v for k, v in record.items() if v is not None}, default=_plain) + "\n").encode()
    if len(line) <= MAX_LINE:
        try:
            os.write(handle, line)
        except OSError:
            os.environ.pop(env.PROGRESS_FD, None)  # the parent is gone; training goes on


def pipe() -> int | None:
    """This process's handle on the pipe; None: it has none."""
    handle = _opened(os.environ.get(env.PROGRESS_FD))
    if handle is None:
        return None
    with contextlib.suppress(OSError):
        found = os.fstat(int(handle))
        if stat.S_ISFIFO(found.st_mode) and os.environ.get(env.PROGRESS_PIPE, str(found.st_ino)) == str(found.st_ino):
            return int(handle)
    os.environ.pop(env.PROGRESS_FD, None)
    return None


def _plain(value: Any) -> Any:
    """A number of NumPy's or torch's as Python's own; of anything else words, which cost the report and no training."""
    try:
        return value.item()
    except (AttributeError, ValueError, RuntimeError, TypeError):
        return repr(value)[:80]


def _opened(handle: str | None) -> str | None:
    """Workers of Ray do not inherit the pipe and are told its path. The first of a node speaks for all of them, since
    their parent takes what it hears for one rank's.
    """
    if handle is None or handle.isdigit():
        return handle
    with contextlib.suppress(OSError):
        if os.environ.get("LOCAL_RANK", "0") == "0":
            os.environ[env.PROGRESS_FD] = str(os.open(handle, os.O_WRONLY))
            return os.environ[env.PROGRESS_FD]
    os.environ.pop(env.PROGRESS_FD, None)
    return None


def _fault(step: int) -> None:
    raw = os.environ.get(env.FAULT)
    if raw is None:
        return
    fault = json.loads(raw)
    if step >= int(fault["step"]):
        os._exit(int(fault["code"]))
