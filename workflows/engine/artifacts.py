"""Files between a pod and the run's folder: raw and stored artifacts in, artifacts and parameters out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.steps.paths import mounted
from argosy.workflows.engine.gotext import any_string
from argosy.workflows.engine.repository import ArtifactRepository, KeyAbsent

RESULT_BYTES = 256 * 1024
SOURCES = ("stored", "raw", "s3")
"""Where an artifact may come from: an earlier pod of this run, the YAML itself, a key of its own."""

_LINKS = 40
"""Linux follows no more of them."""


class InputMissing(Exception):
    """An artifact that the template needs has no source."""


class LinkOut(OSError):
    """A link that leads out of an artifact: Argo's executor does not unpack it."""


class OutputMissing(Exception):
    """A file that the template declares as output is not there."""


class PodFiles:
    """Paths of one pod as this machine has them: volumes first, then the pod's own root."""

    def __init__(self, root: Path, mounts: Mapping[str, Path]) -> None:
        self._root = root
        self._mounts = {path: str(folder) for path, folder in mounts.items()}

    def at(self, path: str) -> Path:
        """Where a path of the pod lies."""
        under = mounted(_absolute(path), self._mounts)
        return under if under is not None else Path(f"{self._root}{_absolute(path)}")

    def real(self, path: str) -> Path:
        """Where a file lies that the pod finds at a path: a link leads through the pod's folders, not the machine's."""
        found = self.at(path)
        for _ in range(_LINKS):
            if not found.is_symlink():
                break
            path = os.path.join(os.path.dirname(path), found.readlink())
            found = self.at(path)
        return found

    def on_volume(self, path: str) -> bool:
        """Whether a path of the pod lies on a volume."""
        return mounted(_absolute(path), self._mounts) is not None


def _absolute(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))  # normpath keeps two leading slashes


def place_inputs(template: Mapping[str, Any], files: PodFiles, repository: ArtifactRepository) -> None:
    """Put every input artifact where the template wants it.

    Raises:
        InputMissing: one is not optional and comes from nowhere, or cannot be had; the message is the pod's.
        LookupError: one was a link when it was stored.
        OSError: its place cannot be made.
    """
    for artifact in (template.get("inputs") or {}).get("artifacts") or []:
        if not any(source in artifact for source in SOURCES):
            if not artifact.get("optional"):
                raise InputMissing(f"required artifact '{artifact['name']}' not supplied")
            continue
        target = files.at(str(artifact["path"]))
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _load(artifact, target, repository)
        except OSError as error:
            if isinstance(error, KeyAbsent) and artifact.get("optional"):
                # The kubelet makes a folder of what a mount wants and nobody has put there.
                target.mkdir(exist_ok=True)
                continue
            loading = "" if isinstance(error, LinkOut) else f"artifact {artifact['name']} failed to load: "
            raise InputMissing(f"{loading}{error}") from error
        if artifact.get("mode") is not None:
            target.chmod(int(artifact["mode"]))


def _load(artifact: Mapping[str, Any], target: Path, repository: ArtifactRepository) -> None:
    if "stored" in artifact:
        stored = Path(artifact["stored"])
        if stored.is_symlink():
            raise LookupError(f"artifact {artifact['name']} is a link, which the kubelet mounts into no pod")
        if not stored.exists():
            raise KeyAbsent
        if "none" not in (artifact.get("archive") or {}):
            _refuse_links(stored, stored.name)
        copy_tree(stored, target)
    elif "raw" in artifact:
        target.write_text(any_string(artifact["raw"].get("data") or ""), encoding="utf-8")
    else:
        repository.load(artifact, target)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file, a folder or a link; a folder is merged into one that is there."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


def _refuse_links(path: Path, name: str) -> None:
    """Look for links that lead out of the artifact; ``name`` is what its archive calls the path.

    Raises:
        LinkOut: there is one.
    """
    if path.is_symlink():
        goal = os.path.normpath(os.path.join("/-", os.path.dirname(name), path.readlink()))
        if not goal.startswith("/-/"):
            raise LinkOut(f"illegal symlink target: {name} -> {path.readlink()}")
    elif path.is_dir():
        for each in sorted(path.iterdir()):
            _refuse_links(each, f"{name}/{each.name}")


def _copy_files(source: Path, target: Path, *, zipped: bool) -> None:
    """Copy what is kept of a folder that is zipped, or stored file by file: no empty folders, and no links.

    A link in a zip is an empty file.
    """
    if not source.is_dir():
        shutil.copy2(source, target)
        return
    for folder, folders, names in os.walk(source):
        for name in [*names, *(each for each in folders if (Path(folder) / each).is_symlink())]:
            file = Path(folder) / name
            place = target / file.relative_to(source)
            if zipped or not file.is_symlink():
                place.parent.mkdir(parents=True, exist_ok=True)
            if not file.is_symlink():
                shutil.copy2(file, place)
            elif zipped:
                place.touch()


def collect_parameters(template: Mapping[str, Any], files: PodFiles, *, strict: bool) -> dict[str, str]:
    """Output parameters from their files; one trailing newline is cut.

    Raises:
        OutputMissing: a file is not there and the parameter has no default (only when ``strict``).
    """
    found = {}
    for parameter in (template.get("outputs") or {}).get("parameters") or []:
        source = parameter.get("valueFrom") or {}
        if not source.get("path"):
            if parameter.get("value") is not None:
                found[parameter["name"]] = any_string(parameter["value"])
            continue
        try:
            text = files.real(str(source["path"])).read_text(encoding="utf-8", errors="replace")
            found[parameter["name"]] = text.removesuffix("\n")
        except OSError as error:
            if source.get("default") is not None:
                found[parameter["name"]] = any_string(source["default"])
            elif strict:
                reason = (error.strerror or str(error)).lower()
                raise OutputMissing(f"open {source['path']}: {reason}") from None
    return found


def collect_artifacts(
    template: Mapping[str, Any], files: PodFiles, store: Path, repository: ArtifactRepository, *, strict: bool
) -> dict[str, str]:
    """Copy output artifacts below ``store``, and to the keys that they name; name -> where it lies now.

    Raises:
        OutputMissing: one is not there and not optional (only when ``strict``).
        OSError: it cannot be copied or stored.
    """
    found = {}
    for artifact in (template.get("outputs") or {}).get("artifacts") or []:
        path, archive = str(artifact["path"]), artifact.get("archive") or {}
        target, real = store / str(artifact["name"]), files.real(path)
        if real.exists():
            # In Argo's archive a link to a folder is a link, one to a file is the file.
            source = files.at(path) if real.is_dir() else real
            packed = "none" not in archive and "zip" not in archive
            if not packed and not files.on_volume(path):
                _refuse_links(source, os.path.basename(path))
            _clear(target)
            if packed:
                copy_tree(source, target)
            else:
                _copy_files(source, target, zipped="zip" in archive)
            if (artifact.get("s3") or {}).get("key"):
                repository.save(artifact, target)
            found[artifact["name"]] = str(target)
        elif strict and not artifact.get("optional"):
            raise OutputMissing(f"failed to save artifact {artifact['name']}: {path}: no such file or directory")
    return found


def _clear(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir() and not target.is_symlink():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


def read_result(path: Path) -> str:
    """Standard output that was kept, one trailing newline cut."""
    with path.open("rb") as source:
        return source.read(RESULT_BYTES).decode(errors="replace").removesuffix("\n")
