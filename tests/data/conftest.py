"""Datasets as real files, staged by real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest


@pytest.fixture
def dataset(tmp_path: Path) -> Callable[..., DatasetManifest]:
    """Write files ({key: content}) into a folder and take its snapshot."""

    def write(files: dict[str, bytes], name: str = "source") -> DatasetManifest:
        for key, content in files.items():
            path = tmp_path / name / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return take_snapshot(f"file://{tmp_path}/{name}")

    return write


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by key, staging's own state left out."""
    files = (path for path in folder.rglob("*") if path.is_file())
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    return {key: content for key, content in found.items() if not key.startswith(".argosy-stage/")}


@pytest.fixture(name="tree")
def tree_fixture() -> Callable[[Path], dict[str, bytes]]:
    return tree
