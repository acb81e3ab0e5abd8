"""What a rank of a faulted gang runs: a small data-parallel training with the real Checkpointer, as a script has it.

The harness talks to it over a Unix socket: the rank says where it is and waits there, and strikes itself with the
faults that only a process can do to itself. Everything it reached is a line with its time in ``GANG-RANK.lines``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy
import torch
import torch.distributed as dist
from torch import nn

from argosy import Checkpointer
from argosy.steps.checkpointer.snapshot import Snapshot
from tests.exact.training import digest

SCRATCH_BYTES = 64 << 20
"""A step needs so much memory besides: whoever may have no more of it notices in the next step."""


class Injected(RuntimeError):
    """The uncaught exception of a rank that is struck with one."""


class Channel:
    """The rank's end of the harness's socket."""

    def __init__(self, path: str, gang: str, rank: int) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._go = threading.Event()
        self._say({"gang": gang, "rank": rank})
        signal.signal(signal.SIGUSR1, _raise)
        threading.Thread(target=self._listen, daemon=True, name="channel").start()

    def at(self, phase: str) -> None:
        """Tell, and wait to be told to go on."""
        self._say({"at": phase})
        self._go.wait()

    def _say(self, record: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(record).encode() + b"\n")

    def _listen(self) -> None:
        for line in self._socket.makefile():
            match line.strip():
                case "go":
                    self._go.set()
                case "segv":
                    ctypes.string_at(0)
                case "abort":
                    os.abort()
                case "exit":
                    os._exit(42)
                case "raise":
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
                case "gil":
                    ctypes.PyDLL(None).sleep(1 << 30)  # a PyDLL's functions keep the lock


def _raise(_number: int, _frame: Any) -> NoReturn:
    raise Injected("injected: this rank's script fails")


class Lines:
    """Told at once and whole: a killed rank's lines are those of what it did."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def say(self, **facts: Any) -> None:
        """One line."""
        os.write(self._file, (json.dumps({"time": time.monotonic(), **facts}) + "\n").encode())


class Training:
    """Model, optimizer and data; the same bits for the same number of ranks."""

    def __init__(self) -> None:
        torch.manual_seed(11)
        layers: list[nn.Module] = []
        for _ in range(6):
            layers += [nn.Linear(40, 40), nn.Tanh()]
        self.model = nn.Sequential(*layers)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-3)
        self.step(0)  # the optimizer has its tensors: the state has one shape from the first save on

    def step(self, number: int) -> None:
        """One step of all ranks together."""
        scratch = numpy.empty(SCRATCH_BYTES, numpy.uint8)
        draw = torch.Generator().manual_seed(number * 1000 + dist.get_rank())
        self.model(torch.randn(8, 40, generator=draw)).square().mean().backward()
        gradients = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
        flat = torch.cat([gradient.view(-1) for gradient in gradients])
        dist.all_reduce(flat)
        at = 0
        for gradient in gradients:
            gradient.copy_(flat[at : at + gradient.numel()].view_as(gradient))
            at += gradient.numel()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
        del scratch

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        for name in ("model", "optimizer"):
            getattr(self, name).load_state_dict(state[name])


def reference(lines: str, end: int) -> list[str]:
    """Digest of the state after each step from 0 to ``end``, when nothing happens."""
    training = Training()
    digests = [digest(training.state())]
    for number in range(1, end + 1):
        training.step(number)
        digests.append(digest(training.state()))
    return digests if dist.get_rank() == 0 else []


def train(
    control: str,
    name: str,
    lines: str,
    end: int,
    final: bool,
    prepare: bool,
    stop_at: str,
    stop_rank: int,
    stop_number: int,
) -> None:
    """Up to step ``end``, from the checkpoint that the environment names; ``stop_…``: where a rank waits."""
    rank = dist.get_rank()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["AWS_ACCESS_KEY_ID"] = f"{name}-{rank}"  # the store sees who asks
    told = Lines(f"{lines}/{name}-{rank}.lines")
    channel = Channel(control, name, rank)
    stop = Stop(channel, stop_at if rank == stop_rank else "", stop_number)
    checkpointer = Checkpointer()
    try:
        _train(checkpointer, told, stop, end, final, prepare)
    except BaseException as error:
        told.say(knew=type(error).__name__, message=str(error)[:300])
        if not isinstance(error, SystemExit):
            traceback.print_exc()
        with contextlib.suppress(SystemExit):
            checkpointer.close()  # as the interpreter's end does, which a forked rank does not have
        raise SystemExit(getattr(error, "code", 1)) from None


class Stop:
    """Where this rank is to wait for its fault; "" nowhere."""

    def __init__(self, channel: Channel, where: str, number: int) -> None:
        self._channel, self._where, self._number = channel, where, number
        self._saves = 0

    def at(self, where: str, number: int | None = None) -> None:
        """Wait if it is here."""
        if where == self._where and number in (None, self._number):
            self._channel.at(where)

    @contextlib.contextmanager
    def in_copy(self) -> Iterator[None]:
        """Around a save: wait in the middle of the snapshot's copies, when two tensors are copied and others not."""
        self._saves += 1
        if self._where == "snapshot is copied" and self._saves == self._number:
            sys.settrace(_third_time(Snapshot.copy.__code__, lambda: self._channel.at(self._where)))
        try:
            yield
        finally:
            sys.settrace(None)


def _third_time(code: Any, action: Callable[[], None]) -> Any:
    lines: Counter[int] = Counter()

    def in_frame(frame: Any, event: str, _argument: Any) -> Any:
        lines[frame.f_lineno] += event == "line"
        if lines[frame.f_lineno] == 3:
            sys.settrace(None)
            action()
            return None
        return in_frame

    return lambda frame, _event, _argument: in_frame if frame.f_code is code else None


def _train(checkpointer: Checkpointer, told: Lines, stop: Stop, end: int, final: bool, prepare: bool) -> None:
    training = Training()
    if prepare:
        checkpointer.prepare(training.state())
    stop.at("before restore")
    begin, restored = 1, checkpointer.restore()
    if restored is not None:
        begin = restored.step + 1
        training.load(restored.state)
    told.say(restored=begin - 1, digest=digest(training.state()))
    saving, first = None, begin
    for step in range(begin, end + 1):
        training.step(step)
        told.say(step=step)
        if saving is not None and saving.done():
            told.say(acknowledged=saving.step)
            saving = None
        stop.at("between steps", step - first)
        if checkpointer.due(step) or (final and step == end):
            with stop.in_copy():
                saving = checkpointer.save(step, training.state(), final=final and step == end)
            told.say(handed_over=step)
    checkpointer.close()
    told.say(done=end)
