"""Manifests in, a run and its account out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.workflows.imports.convert import convert
from argosy.workflows.imports.record import record
from argosy.workflows.manifests.reading import read_file, read_text
from tests.imports.account import Account


@pytest.fixture
def imported() -> Callable[..., tuple[dict[str, Any], Account]]:
    """(the run as TOML reads it, its account) of a text, an object or a file."""

    def run(manifest: str | Path | dict[str, Any], **options: str) -> tuple[dict[str, Any], Account]:
        if isinstance(manifest, Path):
            source = read_file(manifest)
        else:
            text = manifest if isinstance(manifest, str) else yaml.safe_dump(manifest)
            source = read_text(text.encode(), "manifest.yaml")
        account = Account(record(convert([source], **options)))
        return account.run, account

    return run


def job(container: dict[str, Any], **pod: Any) -> dict[str, Any]:
    """An Indexed Job of two pods."""
    held = {"name": "main", "image": "example/train:1", **container}
    spec = {"restartPolicy": "Never", "containers": [held], **pod}
    job = {"completionMode": "Indexed", "completions": 2, "parallelism": 2, "template": {"spec": spec}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": job}


@pytest.fixture(name="job")
def job_fixture() -> Callable[..., dict[str, Any]]:
    return job
