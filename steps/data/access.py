"""Whether a dataset may still be read, where a part of it was refused."""

from __future__ import annotations

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.stored_manifest import load_manifest
from argosy.steps.store.base import ObjectStore
from argosy.steps.store.opening import PERSON_SECONDS, open_store


def may_read(store: ObjectStore, name: str, manifest: DatasetManifest) -> bool:
    """Whether the run's store still gives the manifest, and the dataset's its first object; one that is away has not
    refused it. Then the keys are as they were, and what was refused will be again.
    """
    source = open_store(manifest.uri, retry_seconds=PERSON_SECONDS)
    try:
        load_manifest(store, name, manifest.digest)
        for first in manifest.every(manifest.count or 1):
            source.get_range(first.key, 0, 1)
    except StepError as error:
        return error.cause != Cause.S3_ACCESS
    return True
