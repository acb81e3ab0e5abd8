"""Ours, through the public API: the one file here that knows how argosy stages.

    python -m benchmarks.staging.ours stage URI FOLDER             snapshot, then stage, in one process
    python -m benchmarks.staging.ours snapshot URI MANIFEST        what the snapshot step leaves to the others
    python -m benchmarks.staging.ours restage MANIFEST FOLDER      stage by a manifest that is there, no listing
    python -m benchmarks.staging.ours node MANIFEST FOLDER RANK N  a node's share of it

Each prints one JSON line: the bytes it fetched, and when it began and finished (CLOCK_MONOTONIC), imports apart.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest, Objects
from argosy.steps.data.plan import node_share
from argosy.steps.data.staging import stage_objects
from argosy.steps.data.stored_manifest import load_manifest, save_manifest
from argosy.steps.store import open_store

NAME = "bench"


def main() -> None:
    """One verb."""
    verb, source, target, *node = sys.argv[1:]
    began = time.monotonic()
    fetched = 0
    if verb == "snapshot":
        _save(take_snapshot(source), Path(target))
    else:
        manifest = take_snapshot(source) if verb == "stage" else _load(Path(source))
        share: Objects = node_share(manifest, "sharded", int(node[0]), int(node[1])) if verb == "node" else manifest
        fetched = stage_objects(manifest, share, Path(target)).fetched_bytes
    finished = time.monotonic()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"began": began, "finished": finished, "fetched": fetched, "peak": peak}), flush=True)


def _save(manifest: DatasetManifest, folder: Path) -> None:
    save_manifest(open_store(folder.as_uri()), NAME, manifest)
    (folder / "digest").write_text(manifest.digest)


def _load(folder: Path) -> DatasetManifest:
    return load_manifest(open_store(folder.as_uri()), NAME, (folder / "digest").read_text())


if __name__ == "__main__":
    main()
