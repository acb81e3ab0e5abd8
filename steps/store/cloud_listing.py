"""What a client of obstore lists, in our words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from argosy.steps.store.base import ObjectInfo

_PAGE = 1000


def listed(client: Any, prefix: str) -> Iterator[ObjectInfo]:
    """What the client lists, as it comes."""
    for page in client.list(prefix or None, chunk_size=_PAGE):
        yield from map(info_of, page)


def info_of(meta: Any) -> ObjectInfo:
    """Of an object of the client's."""
    stored = meta["last_modified"].timestamp()
    return ObjectInfo(str(meta["path"]), int(meta["size"]), meta.get("e_tag") or "", meta.get("version") or "", stored)


def folders_of(keys: Iterator[str]) -> set[str]:
    """All that lie above one of the keys."""
    folders: set[str] = set()
    for key in keys:
        parent = key.rpartition("/")[0]
        while parent and parent not in folders:
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    return folders
