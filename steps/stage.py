"""Step ``stage``: make sure, before the gang exists, that its data can be had; mode ``shared`` puts it in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from argosy.steps.claims import heartbeat
from argosy.steps.contract.arguments import LONGEST_BOOK_SECONDS, StageArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.access import may_read
from argosy.steps.data.cache.use import Cache, use
from argosy.steps.data.changes import check_unchanged
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.data.plan import check_layout, plan_bytes, plan_key
from argosy.steps.data.staging import StageProgress
from argosy.steps.data.stored_manifest import load_manifest, save_units
from argosy.steps.outputs import step_main, write_output
from argosy.steps.paths import resolve
from argosy.steps.runlog import RunLog
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.allowed import allowed_until_now

MODES = ("shared", "node", "stream")
VERIFIED = ("", "blocks", "etag")
READERS = 32
READABLE = 10_000
"""Mode stream, verify etag: objects whose first byte is read; of larger datasets as many, spread evenly."""
NODE = "stage"
"""What the event log calls the node of a staging that is not a gang's."""


def stage(args: StageArgs) -> None:
    """Confirm the manifest against the store, write the plan, and do what the mode asks for.

    Raises:
        InputError: unknown mode or layout, mode ``shared`` without a path.
        StepError: the dataset changed, an object cannot be read, or the volume is too small.
    """
    if args.mode not in MODES:
        raise InputError(f"mode = {args.mode!r}: use {', '.join(MODES)}")
    if args.verify not in VERIFIED:
        raise InputError(f"verify = {args.verify!r}: use {' or '.join(VERIFIED[1:])}")
    if args.mode == "shared" and not args.path:
        raise InputError("path: mode shared fills a folder on the shared volume; name it")
    if not 0 <= args.book_seconds <= LONGEST_BOOK_SECONDS:
        raise InputError(f"book-seconds = {args.book_seconds:g}: use 0 to {LONGEST_BOOK_SECONDS:g}")
    check_layout(args.layout, args.nnodes)
    store = open_store(args.store_uri)
    manifest = load_manifest(store, args.name, args.dataset_digest)
    allowed = may_read(store, args.name, manifest)
    with heartbeat(store, args), allowed_until_now(lambda: not allowed or may_read(store, args.name, manifest)):
        if args.mode != "shared":  # which reads every object in its version, before any GPU waits
            check_unchanged(manifest)
        with RunLog(store, args.prefix, "stage") as log:
            if args.mode == "stream" and args.verify != "etag":
                _take_checksums(args, manifest, store, log)
            elif args.mode == "stream":
                _check_readable(manifest)
            elif args.mode == "shared":
                _fill(args, manifest, log)
        plan = plan_key(args.prefix, manifest.digest, args.layout, args.nnodes)
        units = save_units(store, args.name, manifest) if args.layout == "sharded" else None
        store.put(plan, plan_bytes(manifest, args.layout, args.nnodes, units))
    write_output("bytes", manifest.total_bytes)
    write_output("plan-uri", f"{store.uri}/{plan}")
    print(f"{args.mode}: {manifest.count} objects, {manifest.total_bytes} bytes are as in the snapshot")


def _fill(args: StageArgs, manifest: DatasetManifest, log: RunLog) -> None:
    cache = Cache.of(resolve(args.path), args.cache_gib, args.cache_verify, args.cache_access)
    who = f"the stage step of {args.workflow}"
    with use(
        cache, manifest, manifest, who=who, on_progress=_telling(log), run=args.workflow, book_seconds=args.book_seconds
    ) as used:
        done = used.result
        log.append("staged", node=NODE, bytes=done.bytes, fetched_bytes=done.fetched_bytes, seconds=done.seconds)


def _take_checksums(args: StageArgs, manifest: DatasetManifest, store: ObjectStore, log: RunLog) -> None:
    """Read every object once per version of the dataset, so that ranks can verify any range of it."""
    # Imported here: the other modes start without it.
    from argosy.steps.stream.blocks import BlockTable
    from argosy.steps.stream.building import build_blocks
    from argosy.steps.stream.connection import Connection
    from argosy.steps.stream.place import StreamPlace

    began, fetched = time.monotonic(), 0

    def make() -> bytes:
        nonlocal fetched
        fetched = manifest.total_bytes
        with Connection(manifest.uri, READERS) as connection:
            return build_blocks(manifest, connection, on_progress=_telling(log)).to_bytes()

    StreamPlace(store, args.name).derived(manifest.digest, "blocks", make, BlockTable.from_bytes, lead=True)
    seconds = round(time.monotonic() - began, 3)
    log.append("staged", node=NODE, bytes=manifest.total_bytes, fetched_bytes=fetched, seconds=seconds)


def _telling(log: RunLog) -> Callable[[StageProgress], None]:
    def tell(now: StageProgress) -> None:
        log.append("staging", node=NODE, **vars(now))
        print(f"staging {now.objects}/{now.objects_total} objects, {now.bytes}/{now.bytes_total} bytes", flush=True)

    return tell


def _check_readable(manifest: DatasetManifest) -> None:
    from argosy.steps.stream.catalogue import no_version

    source = open_store(manifest.uri)
    some = manifest.every(-(-manifest.count // READABLE))

    def first_byte(one: DataObject) -> None:
        if not (one.etag or one.version):
            raise no_version(manifest.uri, one.key)
        if one.size and len(source.get_range(one.key, 0, 1, etag=one.etag, version=one.version)) != 1:
            raise StepError(Cause.DATA_CORRUPT, f"object {one.key!r} of {manifest.uri} has {one.size} bytes, none came")

    with ThreadPoolExecutor(READERS) as pool:
        for _ in pool.map(first_byte, some):
            pass


if __name__ == "__main__":
    sys.exit(step_main(StageArgs, stage))
