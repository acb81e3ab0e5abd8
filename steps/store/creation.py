"""Create an object and know whether it was we who created it."""

from __future__ import annotations

from argosy.steps.store.base import ObjectStore


def create_ours(store: ObjectStore, key: str, data: bytes) -> bool:
    """Create ``key``; True when it holds our bytes, also when the answer to our first try was lost.

    ``data`` must carry a nonce, or equal bytes could be another writer's and two would think that they had won.

    Raises:
        StoreError: the store failed; whether the object exists is then not known.
    """
    return store.put_if_absent(key, data) or store.get(key) == data
