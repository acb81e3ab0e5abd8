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


class InputMissing(Exception):
    """An artifact that the template needs has no source."""


class OutputMissing(Exception):
    """A file that the template declares as output is not there."""


class PodFiles:
    """Paths of one pod as this machine has them: volumes first, then the pod's own root."""

    def __init__(self, root: Path, mounts: Mapping[str, Path]) -> None:
        self._root = root
        self._mounts = {path: str(folder) for path, folder in mounts.items()}

    def at(self, path: str) -> Path:
        """Where a path of the pod lies."""
        absolute = os.path.normpath("/" + path.lstrip("/"))  # normpath keeps two leading slashes
        under = mounted(absolute, self._mounts)
        return under if under is not None else Path(f"{self._root}{absolute}")


def place_inputs(template: Mapping[str, Any], files: PodFiles, repository: ArtifactRepository) -> None:
    """Put every input artifact where the template wants it.

    Raises:
        InputMissing: one is not optional and comes from nowhere, or cannot be had; the message is the pod's.
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
            raise InputMissing(f"artifact {artifact['name']} failed to load: {error}") from error
        if artifact.get("mode") is not None:
            target.chmod(int(artifact["mode"]))


def _load(artifact: Mapping[str, Any], target: Path, repository: ArtifactRepository) -> None:
    if "stored" in artifact:
        copy_tree(Path(artifact["stored"]), target)
    elif "raw" in artifact:
        target.write_text(any_string(artifact["raw"].get("data") or ""), encoding="utf-8")
    else:
        repository.load(artifact, target)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a file or a folder; a folder is merged into one that is there."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)


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
            text = files.at(str(source["path"])).read_text(encoding="utf-8", errors="replace")
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
        path = str(artifact["path"])
        source, target = files.at(path), store / str(artifact["name"])
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.is_dir():
                shutil.rmtree(target)
            copy_tree(source, target)
            if (artifact.get("s3") or {}).get("key"):
                repository.save(artifact, target)
            found[artifact["name"]] = str(target)
        elif strict and not artifact.get("optional"):
            raise OutputMissing(f"failed to save artifact {artifact['name']}: {path}: no such file or directory")
    return found


def read_result(path: Path) -> str:
    """Standard output that was kept, one trailing newline cut."""
    with path.open("rb") as source:
        return source.read(RESULT_BYTES).decode(errors="replace").removesuffix("\n")
