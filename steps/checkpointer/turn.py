"""Whose turn it is: one thread at a time talks to the writer, and only in the process that started it."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from argosy.steps.contract.errors import InputError


class Turn:
    """Two saves at once would mix their bytes in one arena; a forked child's would mix them with its parent's."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._holder = 0
        self.closed = False

    @property
    def here(self) -> bool:
        """Whether this is the process that made it, and no child that was forked."""
        return os.getpid() == self._pid

    def check(self, *, closed: bool = True) -> None:
        """Raise InputError in a forked child; and where it is closed, unless ``closed`` may be."""
        if self.closed and not closed:
            raise InputError("the Checkpointer was closed: make another one")
        if not self.here:
            raise InputError(
                f"Checkpointer was made in process {self._pid} and is used in process {os.getpid()}, which was forked "
                "from it: save in the process that made it"
            )

    def __enter__(self) -> None:
        self.check()
        if self._holder == threading.get_ident():
            raise InputError(
                "Checkpointer was called while it is at work in this thread (from a signal handler?): let the handler "
                "set a flag, and save after the step"
            )
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *_error: object) -> None:
        self._holder = 0
        self._lock.release()


class _HasTurn(Protocol):
    turn: Turn


S = TypeVar("S", bound=_HasTurn)
P = ParamSpec("P")
R = TypeVar("R")


def in_turn(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Threads wait for each other; raises InputError in a forked child and when the method is entered again."""

    @functools.wraps(method)
    def alone(self: S, /, *args: P.args, **given: P.kwargs) -> Any:
        with self.turn:
            return method(self, *args, **given)

    return alone
