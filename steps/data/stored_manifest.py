"""A manifest in the run's store: shards by their content first, the root document last."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import dataset_key, dataset_shard_key, dataset_units_key
from argosy.steps.data.manifest import DatasetManifest, check_digest
from argosy.steps.data.plan import count_units
from argosy.steps.data.shards import Shard, pack, unpack
from argosy.steps.data.units import Units
from argosy.steps.store.base import ObjectMissing, ObjectStore

_WRITERS = 4


def save_manifest(store: ObjectStore, name: str, manifest: DatasetManifest) -> str:
    """Write what is not there yet, and return the root's key; an interrupted call is gone on with by the next.

    Raises:
        StepError: ``data_corrupt`` when something else lies under the manifest's key, or what the store reported.
    """

    def save(shard: Shard) -> None:
        key = dataset_shard_key(name, shard.sha256)
        if store.head(key) is None:
            store.put_if_absent(key, pack(manifest.text(shard)))

    if len(manifest.shards) > 1:
        with ThreadPoolExecutor(_WRITERS) as pool:
            for _ in pool.map(save, manifest.shards):
                pass
    key = dataset_key(name, manifest.digest)
    if not store.put_if_absent(key, manifest.to_bytes()):
        load_manifest(store, name, manifest.digest)  # what is there must be whole: training rests on it
    return key


def load_manifest(store: ObjectStore, name: str, digest: str) -> DatasetManifest:
    """The manifest that ``snapshot`` wrote for run ``name``; its shards are read, and verified, when iterated.

    Raises:
        InputError: ``digest`` is no digest.
        StepError: ``s3_missing`` if no snapshot wrote it, ``data_corrupt`` if its content does not match.
    """
    key = dataset_key(name, check_digest(digest, "dataset digest"))

    def read(shard: Shard) -> bytes:
        return unpack(shard, store.get(dataset_shard_key(name, shard.sha256)))

    try:
        manifest = DatasetManifest.from_bytes(store.get(key), read)
    except ObjectMissing as error:
        raise StepError(Cause.S3_MISSING, f"no dataset manifest at {store.uri}/{key}: run snapshot first") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise StepError(Cause.DATA_CORRUPT, f"dataset manifest {store.uri}/{key}: {error}", quote=str(error)) from error
    if manifest.digest != digest:
        raise StepError(Cause.DATA_CORRUPT, f"{store.uri}/{key} holds the manifest {manifest.digest}")
    return manifest


def save_units(store: ObjectStore, name: str, manifest: DatasetManifest) -> Units:
    """Count the units once for all nodes, and keep them where counting takes more than reading."""
    units = count_units(manifest)
    if len(manifest.shards) > 1:
        store.put_if_absent(dataset_units_key(name, manifest.digest), units.to_bytes())
    return units


def load_units(store: ObjectStore, name: str, manifest: DatasetManifest) -> Units | None:
    """What :func:`save_units` wrote; None where there is nothing, or not that: then each reader counts itself."""
    if len(manifest.shards) < 2:
        return None
    try:
        units = Units.from_bytes(store.get(dataset_units_key(name, manifest.digest)))
    except (ObjectMissing, ValueError):
        return None
    counted = units.total_bytes, sum(units.sizes.values()), sum(units.counts.values())
    return units if counted == (manifest.total_bytes, manifest.total_bytes, manifest.count) else None
