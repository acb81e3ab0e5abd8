"""What the nodes of a run kept of its failed starts, fetched from its store and unpacked."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from zlib import error as ZlibError

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import run_prefix
from argosy.steps.store.base import ObjectStore
from argosy.workflows.cli.finding import Run
from argosy.workflows.code import FETCHED, IGNORE_FILES

_ENDING = ".tar.gz"


def fetch(run: Run, folder: Path) -> list[Path]:
    """``folder/GANG/RESTART/``: verdict.json, host.json and a folder for each pod; the files that were written.

    Raises:
        InputError: the run has no store that can be read here, it kept nothing, or ``folder`` cannot be written to.
    """
    store, record = run.store(), run.record()
    if store is None:
        raise InputError(f"{run.name}: its store is not known, so its evidence cannot be fetched")
    base = f"{run_prefix(record.name, record.run_id)}/attempts"
    keys = [info.key for info in store.list(base)]
    archives = [key for key in keys if "/bundle/" in key]
    if not archives:
        failed = any(each.failed for each in record.attempts)
        why = "though a start failed: argosy logs tells what refused it" if failed else "it is when a start fails"
        raise InputError(f"{run.name}: no evidence was kept, {why} (argosy explain {run.name})")
    verdicts = {key for key in keys if key.rpartition("/")[2].startswith("restart-")}
    found: list[Path] = []
    try:
        for key in archives:
            gang, _, restart, name = key[len(base) + 1 :].split("/", 3)
            found += _unpacked(store, key, folder / gang / restart / name)
            # Where somebody asks beside the code of a run that is to go on, it would be other code.
            (folder / gang / IGNORE_FILES[1]).write_text(FETCHED)
        for key in sorted(verdicts):
            gang, name = key[len(base) + 1 :].split("/", 1)
            place = folder / gang / name.removeprefix("restart-").removesuffix(".json")
            if place.is_dir():
                found.append(_written(place / "verdict.json", store.get(key)))
    except OSError as error:
        raise InputError(
            f"--bundle {folder}: {error.strerror or error}; name a folder that can be written to"
        ) from error
    return found


def _unpacked(store: ObjectStore, key: str, path: Path) -> list[Path]:
    data = store.get(key)
    if not path.name.endswith(_ENDING):
        return [_written(path, data)]
    place = path.with_name(path.name.removesuffix(_ENDING))
    place.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
            return [_placed(archive, member, place) for member in archive if member.isfile()]
    except (tarfile.TarError, EOFError, ZlibError) as error:
        raise StepError(Cause.DATA_CORRUPT, f"{key} cannot be unpacked: {error}", quote=str(error)) from error


def _placed(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> Path:
    """One file. Pods wrote the archive: nothing of it may leave its folder (tarfile's filters came with 3.11.4)."""
    if member.name.startswith("/") or ".." in member.name.split("/"):
        raise tarfile.TarError(f"{member.name!r} would leave the folder")
    source = archive.extractfile(member)
    assert source is not None  # it is a file
    return _written(place / member.name, source.read())


def _written(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
