"""Gangs on one commit log: the real ones, and protocols that look right and are not."""

from __future__ import annotations

import itertools
from typing import Any

from argosy.steps.checkpoint.log import CommitLog, Entry, LogWriter
from argosy.steps.contract.errors import StepError
from argosy.steps.store import StoreError
from tests.models.explorer import Objects, Promises
from tests.models.requests import GATE, AnsweringStore, Program, Request, Told

LOG = "log/"


class Log(CommitLog):
    """The real log, which says where histories meet; with ``gated`` others come between only at its two verbs."""

    gated = False

    def __init__(self, store: AnsweringStore, told: Told, tries: int = 0) -> None:
        super().__init__(store, "")
        self.asked, self.told, self.tries = store, told, tries

    def tail(self) -> Entry | None:
        self.told.mark("claim", self.tries)
        if self.gated:
            self.asked.ask(GATE, "")
        return super().tail()

    def create(self, entry: Entry) -> bool:
        self.told.meet("create", entry)
        if self.gated:
            self.asked.ask(GATE, "")
        return super().create(entry)


class GatedLog(Log):
    gated = True


def gang(number: int, commits: int, log_class: type[Log] = Log) -> Program:
    """Claim (once more when it is not known whether the first was made), then commit; a failure ends it."""

    def run(store: AnsweringStore, told: Told, since: Any) -> None:
        store.begin()
        log = log_class(store, told, since[1] if since and since[0] == "claim" else 0)
        try:
            first = 1
            if since and since[0] == "append":
                _, first, last, committed = since
                writer = LogWriter(log, last)
                writer.committed_step = committed
            else:
                writer = claimed(log, f"gang-{number}", told)
            for step in range(first, commits + 1):
                told.mark("append", step, writer.last, writer.committed_step)
                digest = f"{number}{step}".ljust(64, "0")
                entry = writer.append(kind="commit", step=step, digest=digest, name="n", manifest="m", total_bytes=1)
                told.promise(entry.seq, entry.identity)
        except StepError:
            return

    return run


def claimed(log: Log, owner: str, told: Told) -> LogWriter:
    while True:
        try:
            claim = log.claim(owner)
            break
        except StoreError:
            log.tries += 1
            if log.tries > 1:
                raise
    told.promise(claim.seq, "")
    return log.writer(claim)


def entries(objects: Objects) -> list[Entry]:
    """As they lie there, read by the real parser."""
    keys = sorted(key for key in objects if key.startswith(LOG))
    return [Entry.from_bytes(objects[key], int(key[len(LOG) :].removesuffix(".json"))) for key in keys]


def one_chain(objects: Objects) -> str:
    """ "" when the log is one chain, generations never fall and only a claim raises them."""
    found = entries(objects)
    for before, entry in itertools.pairwise(found):
        if entry.parent != before.identity or entry.seq != before.seq + 1:
            return f"entry {entry.seq} does not follow {before.seq}: a fork"
        if entry.generation != before.generation + (entry.kind == "claim"):
            return f"entry {entry.seq}: generation {before.generation} -> {entry.generation}"
        if entry.kind == "commit" == before.kind and entry.step < before.step:
            return f"entry {entry.seq}: step {before.step} -> {entry.step}"
    return ""


_chains: dict[frozenset[tuple[str, bytes]], str] = {}


def judge(objects: Objects, promised: Promises) -> str:
    """One chain, and every acknowledged append is in it."""
    key = frozenset((k, v) for k, v in objects.items() if k.startswith(LOG))
    if key not in _chains:
        _chains[key] = one_chain(objects)
    if _chains[key]:
        return _chains[key]
    there = {entry.seq: entry.identity for entry in entries(objects)} if promised else {}
    for seq, identity, *_ in promised:
        if seq not in there or (identity and there[seq] != identity):
            return f"entry {seq} was acknowledged and is lost"
    return ""


def append_only(before: Objects, after: Objects, request: Request, _gang: int) -> str:
    """An entry is never changed and never deleted."""
    if request.key.startswith(LOG) and request.key in before and after.get(request.key) != before[request.key]:
        return f"{request.verb} {request.key}: an entry changed"
    return ""
