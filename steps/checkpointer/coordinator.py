"""Rank 0's writer decides: when all nodes have stored their part of a save it commits, and everybody learns of it.

A state machine without sockets or clocks of its own: records go in, records come out, slow work is handed to
``work``. For each node it costs one message and, in the store, one part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from argosy.steps.checkpoint.manifest import PartRef
from argosy.steps.checkpointer.lines import Record
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

Then = Callable[[Any, BaseException | None], None]
Work = Callable[[Callable[[], Any], Then], None]


def failure_of(error: BaseException) -> Record:
    """An error as others are told it."""
    if isinstance(error, StepError):
        return {"cause": str(error.cause), "message": str(error), "code": int(error.code)}
    text = f"the checkpoint's writer failed: {type(error).__name__}: {error}"
    return {"cause": str(Cause.UNKNOWN), "message": text, "code": int(Cause.UNKNOWN.exit_code)}


def failure(cause: Cause, message: str) -> Record:
    """The end of a training, as everybody is told it."""
    return {"cause": str(cause), "message": message, "code": int(cause.exit_code)}


@dataclass
class _Save:
    """What has been reported of one save."""

    began: float
    ranks: set[int] = field(default_factory=set)
    parts: dict[int, Record] = field(default_factory=dict)
    """By the smallest rank of the node."""
    claims: list[list[Any]] = field(default_factory=list)
    stall: float = 0.0


@dataclass(frozen=True)
class Agreed:
    """A save of which every rank's bytes are stored; ``stall``: the longest of all ranks, in seconds."""

    number: int
    name: str
    step: int
    final: bool
    world_size: int
    parts: Sequence[PartRef]
    stall: float
    seconds: float
    """Since the first report."""


class Coordinator:
    """Saves are numbered from 1 and committed in that order; after the first failure none is committed."""

    def __init__(
        self,
        world_size: int,
        timeout: float,
        *,
        commit: Callable[[Agreed], Record],
        work: Work,
        announce: Callable[[Record], None],
        clock: Callable[[], float],
    ) -> None:
        """``commit`` stores and returns the outcome's facts; ``announce`` tells every writer; seconds throughout."""
        self._world_size = world_size
        self._timeout = timeout
        self._commit = commit
        self._work = work
        self._announce = announce
        self._clock = clock
        self._saves: dict[int, _Save] = {}
        self._gone: dict[int, str] = {}
        self._ended: Record | None = None

    @property
    def waiting(self) -> bool:
        """Whether a save is under way."""
        return bool(self._saves)

    def receive(self, record: Record) -> None:
        """A record of a node's leader: ``part``, ``refused`` or ``left``."""
        if record["is"] == "left":
            self._gone.update(dict.fromkeys(map(int, record["ranks"]), str(record["why"])))
            for number in sorted(self._saves):
                self._check_gone(number)
            return
        number = int(record["number"])
        if self._ended is not None:
            self._announce({"is": "outcome", "number": number, "failure": self._ended})
        elif record["is"] == "refused":
            self._end(number, dict(record["failure"]))
        else:
            self._add(number, record)

    def tick(self) -> None:
        """Call it now and then: who has not reported in time ends the save, by name."""
        for number, save in sorted(self._saves.items()):
            if len(save.ranks) < self._world_size and self._clock() - save.began > self._timeout:
                late = named(set(range(self._world_size)) - save.ranks)
                text = f"{late} did not store save {number} within {self._timeout:.0f} s of the first that did"
                self._end(number, failure(Cause.HANG, text))

    def _add(self, number: int, record: Record) -> None:
        save = self._saves.setdefault(number, _Save(began=self._clock()))
        save.ranks.update(record["ranks"])
        save.parts[min(record["ranks"])] = record
        save.claims += record["claims"]
        save.stall = max(save.stall, float(record["stall"]))
        if len(save.ranks) == self._world_size:
            self._complete(number, save)
        else:
            self._check_gone(number)

    def _check_gone(self, number: int) -> None:
        save = self._saves.get(number)
        missing = set(self._gone) - save.ranks if save is not None else set()
        if missing:
            why = self._gone[min(missing)]
            self._end(number, failure(Cause.PEER_LOST, f"{named(missing)} left before save {number} was stored: {why}"))

    def _complete(self, number: int, save: _Save) -> None:
        differing = disagreement(save.claims)
        if differing:
            return self._end(number, failure(Cause.USER_EXCEPTION, differing))
        records = [save.parts[first] for first in sorted(save.parts)]
        step, final = save.claims[0][0], save.claims[0][1]
        agreed = Agreed(
            number=number,
            name=records[0]["name"],
            step=step,
            final=final,
            world_size=self._world_size,
            parts=[PartRef(**record["part"]) for record in records],
            stall=save.stall,
            seconds=self._clock() - save.began,
        )
        self._work(lambda: self._commit(agreed), lambda facts, error: self._committed(number, facts, error))

    def _committed(self, number: int, facts: Record | None, error: BaseException | None) -> None:
        if error is not None:
            return self._end(number, failure_of(error))
        self._saves.pop(number, None)
        self._announce({"is": "outcome", "number": number, **(facts or {})})

    def _end(self, number: int, reason: Record) -> None:
        self._ended = self._ended or reason
        self._saves.clear()
        self._announce({"is": "outcome", "number": number, "failure": self._ended})


def disagreement(claims: Sequence[Sequence[Any]]) -> str:
    """What two ranks differ in, "" for nothing; a claim is ``[step, final, fingerprint, rank]``."""
    first, *others = sorted(claims, key=lambda claim: int(claim[3]))
    for other in others:
        if other[:2] != first[:2]:
            return (
                f"rank {first[3]} saves step {first[0]} (final {first[1]}) and rank {other[3]} step {other[0]} (final "
                f"{other[1]}): every rank calls Checkpointer.save with the same step"
            )
        if other[2] != first[2]:
            return (
                f"the states of rank {first[3]} and rank {other[3]} differ in names, types or shapes: "
                "Checkpointer.save needs the same state on every rank"
            )
    return ""


def named(ranks: AbstractSet[int]) -> str:
    """The ranks for people."""
    shown = ", ".join(map(str, sorted(ranks)[:8])) + (", …" if len(ranks) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
