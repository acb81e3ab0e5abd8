"""Step ``snapshot``: freeze a dataset into an immutable manifest; its digest is the version that was trained on."""

from __future__ import annotations

import sys
import time

from argosy.steps.contract.arguments import SnapshotArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.data.changes import compare
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest, check_digest
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.outputs import step_main, write_output
from argosy.steps.runlog import RunLog
from argosy.steps.store import ObjectStore, open_store


def snapshot(args: SnapshotArgs) -> None:
    """List once, compare with the pinned version, write the manifest if nobody has.

    Raises:
        InputError: a uri, a key or the pinned digest breaks a rule.
        StepError: ``s3_missing`` when the dataset is empty or is not the pinned version.
    """
    if args.version:
        check_digest(args.version, "dataset version")
    store = open_store(args.store_uri)
    began = time.monotonic()
    manifest = take_snapshot(args.dataset_uri, args.dataset_manifest, _tell)
    if args.version not in ("", manifest.digest):
        raise StepError(Cause.S3_MISSING, _changed(store, args, manifest))
    key = save_manifest(store, args.name, manifest)
    with RunLog(store, args.prefix, "snapshot") as log:
        log.append(
            "snapshot_taken",
            dataset_digest=manifest.digest,
            objects=manifest.count,
            bytes=manifest.total_bytes,
            listed=args.dataset_manifest or "store",
            seconds=round(time.monotonic() - began, 3),
        )
    write_output("dataset-manifest-uri", f"{store.uri}/{key}")
    write_output("objects", manifest.count)
    write_output("bytes", manifest.total_bytes)
    write_output("dataset-digest", manifest.digest)
    print(f"dataset {manifest.digest[:12]}: {manifest.count} objects, {manifest.total_bytes} bytes", flush=True)


def _tell(seen: int) -> None:
    print(f"{seen} objects so far", flush=True)  # a listing of millions takes minutes, and silence looks like a hang


def _changed(store: ObjectStore, args: SnapshotArgs, now: DatasetManifest) -> str:
    text = f"dataset changed: {now.uri} is {now.digest}, the run pins {args.version}"
    try:
        pinned = load_manifest(store, args.name, args.version)
    except StepError:
        return f"{text}; no manifest of the pinned version is in the store, so what changed is not known"
    if pinned.uri != now.uri:
        return f"{text}, which was taken of {pinned.uri}"
    return f"{text}: {compare(pinned, now).text()}; pin the new digest or restore the objects"


if __name__ == "__main__":
    sys.exit(step_main(SnapshotArgs, snapshot))
