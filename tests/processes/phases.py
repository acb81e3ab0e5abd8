"""Eight moments in the life of a gang, and how it is seen that it is exactly there."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.processes.holding import Hold, HoldingServer, Who
from tests.s3.wire import Request

GATES = ("before restore", "between steps", "snapshot is copied")
"""The script itself says so, and waits."""

STORE = ("in restore", "shards half stored", "commit pending", "just committed", "in prune")
"""The store holds the request that is the moment."""

PHASES = ("before restore", "in restore", "between steps", "snapshot is copied", *STORE[1:])


def hold_for(phase: str, gang: str, rank: int, number: int) -> Hold | None:
    """What the store has to hold so that rank ``rank`` is in that phase of the gang's ``number``-th save."""
    match phase:
        case "in restore":
            return Hold(lambda who, request: who == (gang, rank) and _reads_data(request))
        case "shards half stored":
            return Hold(_counted(number, lambda who, request: who == (gang, rank) and _stores_shard(request)))
        case "commit pending":
            return Hold(_counted(number, lambda who, request: who[0] == gang and _commits(request)))
        case "just committed":
            return Hold(_counted(number, lambda who, request: who[0] == gang and _commits(request)), after=True)
        case "in prune":
            return Hold(_after_commits(number, gang))
    return None


def is_there(phase: str, hold: Hold, server: HoldingServer, bucket: str, rank: int, world: int) -> bool:
    """Whether the held request means the phase: shards are half stored when all other ranks' are there."""
    if not hold.held:
        return False
    if phase != "shards half stored":
        return True
    folder = hold.held[0][1].split("/", 2)[2].rpartition("/")[0]
    there = {key for key in list(server.buckets[bucket].objects) if key.startswith(folder)}
    return all(any(f"rank-{other:05d}" in key for key in there) for other in range(world) if other != rank)


def _reads_data(request: Request) -> bool:
    return request.seen.operation == "GetObject" and "/data/" in request.path


def _stores_shard(request: Request) -> bool:
    return request.seen.operation == "PutObject" and "/tensors/" in request.path


def _commits(request: Request) -> bool:
    if request.seen.operation != "PutObject" or "/log/" not in request.path:
        return False
    return bool(json.loads(request.body)["kind"] == "commit")


def _counted(number: int, wants: Callable[[Who, Request], bool]) -> Callable[[Who, Request], bool]:
    seen: list[str] = []

    def nth(who: Who, request: Request) -> bool:
        if wants(who, request) and request.path not in seen:  # the client repeats a request
            seen.append(request.path)
            return len(seen) == number
        return False

    return nth


def _after_commits(number: int, gang: str) -> Callable[[Who, Request], bool]:
    commits = _counted(number, lambda who, request: who[0] == gang and _commits(request))
    begun = False

    def deletes(who: Who, request: Request) -> bool:
        nonlocal begun
        begun = commits(who, request) or begun
        return begun and who[0] == gang and request.seen.operation in ("DeleteObject", "DeleteObjects")

    return deletes
