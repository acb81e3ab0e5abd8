"""Object stores behind one set of verbs: S3, GCS, Azure through obstore; ``file://`` with fsync of its own."""

from argosy.steps.store.base import ObjectInfo, ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.opening import open_store

__all__ = ["ObjectInfo", "ObjectMissing", "ObjectStore", "StoreError", "open_store"]
