"""Does a store keep the promises that the checkpoint protocol rests on? Found out by asking, before anyone writes.

A store that ignores ``If-None-Match`` answers like any other until two gangs meet, and then both have committed.
"""

from __future__ import annotations

import contextlib
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from argosy.steps.store.base import ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.probe_rules import RULES, Rule

VERSION = 1
"""Goes up when rules are added: what an older probe found says nothing about them."""


@dataclass(frozen=True)
class Finding:
    """One promise that the store does not keep."""

    rule: str
    message: str
    """What the store did, and why it matters."""
    refuses: bool
    """Whether it endangers what several writers rely on, so that nobody may train on this store."""


def probe(store: ObjectStore, prefix: str) -> list[Finding]:
    """Try every rule of :data:`probe_rules.RULES` below ``<prefix>/probe/<nonce>/``; empty: the store is honest.

    About 20 MB and 150 small requests, most of them at the same time. Removes what it wrote, also when it fails;
    what a kill leaves is removed by nobody and is never read.

    Raises:
        StoreError: the store refused or failed a request; that is no finding, nothing is known then.
    """
    base = "/".join(part for part in (prefix.strip("/"), "probe", uuid.uuid4().hex) if part)
    try:
        with ThreadPoolExecutor(len(RULES)) as pool:
            said = list(pool.map(lambda rule: _tried(rule, store, f"{base}/{rule.name}"), RULES))
    finally:
        _remove(store, base)
    return [
        Finding(rule.name, f"{what}; {rule.why}", rule.refuses) for rule, what in zip(RULES, said, strict=True) if what
    ]


def _tried(rule: Rule, store: ObjectStore, base: str) -> str:
    try:
        return rule.check(store, base)
    except ObjectMissing as error:
        return f"an object that was written is not there ({error})"


def _remove(store: ObjectStore, base: str) -> None:
    # Twice: a store whose listings are stale may show the rest a moment later.
    for _ in range(2):
        with contextlib.suppress(StoreError), ThreadPoolExecutor(16) as pool:
            list(pool.map(store.delete, [info.key for info in store.list(base)]))
