"""The one collective of saving: rank 0 claims, and every rank's writer learns where it coordinates."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from argosy.steps.checkpoint.log import Claim
from argosy.steps.checkpointer.gang import WriterPlace
from argosy.steps.checkpointer.lines import Record
from argosy.steps.checkpointer.place import coordinator_host, node_of
from argosy.steps.checkpointer.ranks import Ranks
from argosy.steps.checkpointer.stopping import checked, failure, stop
from argosy.steps.checkpointer.writer import Writer
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError

_JOIN_SECONDS = 120.0


@dataclass(frozen=True)
class Joined:
    """What a rank needs to know of the gang for every save."""

    rank: int
    generation: int
    token: str


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Settings that the writers are started with; those of rank 0 count."""

    uri: str
    keep: int
    timeout: float
    failure_hours: Callable[[int], float] | None
    """Given the number of nodes; None: the interval between saves is fixed."""


def join(writer: Writer, ranks: Ranks, terms: Terms, claimed: Callable[[], Claim], ready: Callable[[], None]) -> Joined:
    """Collective. ``claimed`` is called on rank 0 only; ``ready`` does what this rank has to do by itself meanwhile.

    Raises:
        InputError: what ``claimed`` raised, on every rank; what ``ready`` raised, on the ranks that did.
        Stopped: a rank could not, on all ranks.
    """
    first, size = node_of(ranks.rank, ranks.world_size)
    host = coordinator_host(ranks.world_size, size)
    common: dict[str, Any] = {
        "rank": ranks.rank,
        "world_size": ranks.world_size,
        "first_rank": first,
        "node_ranks": size,
    }
    common |= {"timeout": terms.timeout, "host": host}
    record: Record = {}
    if ranks.rank == 0:
        try:
            claim = claimed()
            token = secrets.token_hex(32)
            hours = terms.failure_hours(-(-ranks.world_size // size)) if terms.failure_hours else 0.0
            mine: dict[str, Any] = {
                "generation": claim.generation,
                "seq": claim.seq,
                "keep": terms.keep,
                "failure_hours": hours,
            }
            answer = _started(writer, terms, WriterPlace(token=token, **common, **mine))
            record = {"token": token, "generation": claim.generation, "coordinator": answer.get("address")}
        except InputError as error:
            record = {"input": str(error)}
        except StepError as error:
            record = failure(error)
    record = checked(ranks.broadcast(record))
    if "input" in record:
        raise InputError(record["input"])
    joined = Joined(ranks.rank, int(record["generation"]), str(record["token"]))
    wrong: InputError | None = None
    outcome: Record = {}
    try:
        ready()
        if ranks.rank != 0:
            _started(writer, terms, WriterPlace(token=joined.token, coordinator=record["coordinator"], **common))
    except InputError as error:
        wrong, outcome = error, {"input": True, "message": str(error)}
    except StepError as error:
        outcome = failure(error)
    outcomes = ranks.gather(outcome)
    if wrong is not None:
        raise wrong
    for rank, other in enumerate(outcomes):
        checked(other)
        if "input" in other:
            message = f"rank {rank} could not save: {other['message']}"
            stop(Cause.USER_EXCEPTION, message, Cause.USER_EXCEPTION.exit_code)
    return joined


def _started(writer: Writer, terms: Terms, place: WriterPlace) -> Record:
    writer.send({"do": "start", "uri": terms.uri, "place": place.to_record()})
    deadline = time.monotonic() + _JOIN_SECONDS
    while "ready" not in writer.answers:
        writer.await_news(deadline)
    answer = writer.answers["ready"]
    if "failure" in answer:
        reason = answer["failure"]
        raise StepError(Cause(reason["cause"]), reason["message"])
    return answer
