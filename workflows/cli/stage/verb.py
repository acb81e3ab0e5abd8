"""``argosy stage``: a dataset from an object store into a folder, verified and resumable."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import unquote

import click

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest, check_digest
from argosy.steps.data.outlook import Outlook, look_ahead
from argosy.steps.data.room import ROOM_FACTOR
from argosy.steps.data.staging import StageResult, stage_objects
from argosy.steps.record.wording import count, duration, short, size
from argosy.steps.store.opening import check_uri
from argosy.workflows.cli.options import as_json
from argosy.workflows.cli.output import emit, harmless, say, typed
from argosy.workflows.cli.stage.progress import listing, progress
from argosy.workflows.cli.stage.selection import Selection, share_of
from argosy.workflows.cli.stage.store_options import store_options

Depth = Literal["none", "stat", "full"]


@click.command()
@click.argument("uri")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="List and compare only: say what would be fetched, write nothing.")
@click.option(
    "--verify",
    type=click.Choice(["none", "stat", "full"]),
    default="stat",
    show_default=True,
    help="How files that are there already are checked: not at all, by size and time, or by reading them.",
)
@click.option("--digest", default="", metavar="HEX", help="The dataset must be this version; else nothing is fetched.")
@click.option("--include", multiple=True, metavar="GLOB", help="Only keys that match one of these.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="No keys that match one of these.")
@click.option("--share", metavar="K/N", help="Node K's part (from 0) of a dataset that N nodes share.")
@click.option("--listing", "given", default="", metavar="URI", help="A listing of yours instead of asking the store.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@store_options
@as_json
def command(
    uri: str,
    folder: Path,
    dry_run: bool,
    verify: str,
    digest: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    share: str | None,
    given: str,
    quiet: bool,
    as_json: bool,
) -> int:
    """Fetch a dataset into FOLDER, which then holds exactly its objects.

    URI is s3://, gs:// or az:// with a bucket and a prefix, or file:///. Each object is fetched in the version that
    was listed and checked against the store's checksum. Killed in the middle, the same command goes on inside the
    objects; run again later, it fetches what changed and removes what is gone. FOLDER belongs to argosy, which
    keeps its notes in .argosy-stage there: it is refused when it holds files that staging did not put there.

    Exit codes: 0 all of it is there; 2 wrong input; 75 the store or the network failed, the same command goes on;
    70 and 78 somebody has to look first (an object is corrupt or gone, no access, too small a disk); 130 interrupted.

    \b
    Example:
      argosy stage s3://bucket/datasets/c4 ./data
      argosy stage s3://public/corpus ./data --anonymous --region us-west-2 --dry-run
      argosy stage s3://bucket/c4 /scratch/c4 --share 2/8 --json
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"FOLDER {folder}: is a file; name a folder, which need not exist yet")
    _check_apart(uri, folder)
    selection = Selection.of(include, exclude)
    node = share_of(share)
    if digest:
        check_digest(digest, "--digest")
    began = time.monotonic()
    try:
        with listing(quiet=quiet or as_json) as seen:
            keep = selection.takes if include or exclude else None
            manifest = take_snapshot(check_uri(uri, "URI"), given=given, tell=seen, keep=keep)
        _check_version(manifest, digest)
        facts: dict[str, Any] = {"uri": manifest.uri, "folder": str(folder), "dataset_digest": manifest.digest}
        facts["list_seconds"] = round(time.monotonic() - began, 3)
        objects = node.objects_of(manifest)
        if dry_run:
            return _preview(look_ahead(objects, folder), folder, facts, as_json=as_json)
        with progress(quiet=quiet or as_json) as tell:
            done = stage_objects(manifest, objects, folder, on_progress=tell, verify=cast(Depth, verify), guarded=True)
    except StepError as error:
        return _failed(error, as_json=as_json)
    except KeyboardInterrupt:
        again = typed("argosy", "stage", uri, folder)
        say(f"argosy: interrupted; {again} (with the same options) goes on where this stopped", err=True)
        return 130
    return _report(done, manifest, folder, facts, as_json=as_json)


def _check_apart(uri: str, folder: Path) -> None:
    """What is staged into the dataset's own folder would be part of the dataset the next time."""
    scheme, _, path = uri.partition("://")
    if scheme == "file" and path and folder.resolve().is_relative_to(Path(unquote(path)).resolve()):
        raise InputError(
            f"FOLDER {folder}: lies in the dataset {uri}, and would be a part of it; name one outside of it"
        )


def _check_version(manifest: DatasetManifest, digest: str) -> None:
    if digest not in ("", manifest.digest):
        raise InputError(
            f"--digest {short(digest)}: {manifest.uri} is {manifest.digest} now; leave it out to take what is there"
        )


def _preview(found: Outlook, folder: Path, facts: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        emit({**facts, "dry_run": True, **vars(found)})
        return 0
    all_of_it = f"{count(found.objects, 'object')}, {size(found.bytes)}"
    say(f"{facts['uri']}: {all_of_it}, dataset {short(facts['dataset_digest'])}")
    there = count(found.objects - found.missing_objects, "object")
    say(f"would fetch {count(found.missing_objects, 'object')}, {size(found.missing_bytes)}; there already: {there}")
    needed = int(found.missing_bytes * ROOM_FACTOR)
    room = "enough" if needed <= found.free_bytes else f"too little: {size(needed)} are needed"
    say(f"{folder} has {size(found.free_bytes)} free, {room}")
    return 0


def _failed(error: StepError, *, as_json: bool) -> int:
    text = harmless(" ".join(str(error).split()))
    if as_json:
        emit({"error": {"cause": str(error.cause), "message": text, "exit_code": int(error.code)}})
    say(f"argosy: {error.cause}: {text}", err=True)
    return int(error.code)


def _report(done: StageResult, manifest: DatasetManifest, folder: Path, facts: dict[str, Any], *, as_json: bool) -> int:
    rate = done.fetched_bytes / max(done.seconds, 1e-9)
    if as_json:
        emit({**facts, **vars(done), "bytes_per_second": round(rate)})
        return 0
    there = done.objects - done.fetched_objects
    say(f"{folder}: {count(done.objects, 'object')}, {size(done.bytes)}, dataset {short(manifest.digest)}")
    fetched = f"fetched {count(done.fetched_objects, 'object')}, {size(done.fetched_bytes)}"
    if done.fetched_objects:
        fetched += f" in {duration(done.seconds)} ({size(rate)}/s)"
    removed = f"; removed {count(done.removed, 'file')} of before" if done.removed else ""
    say(f"{fetched}; {count(there, 'object')} had been there{removed}")
    return 0
