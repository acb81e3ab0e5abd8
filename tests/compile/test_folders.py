"""The folders that templates mount are found again by the steps, however often a path is resolved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.steps.contract import env
from argosy.steps.paths import resolve


def test_a_path_resolves_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = {"/argosy": f"{tmp_path}/claim", "/argosy/checkpoint": f"{tmp_path}/pod/volumes/checkpoint"}
    monkeypatch.setenv(env.MOUNTS, json.dumps(mounts))
    monkeypatch.setenv(env.POD_ROOT, f"{tmp_path}/pod/disk")
    for path, place in {
        "/argosy/checkpoint/x": "pod/volumes/checkpoint/x",
        "/argosy/store/x": "claim/store/x",
        "/tmp/x": "pod/disk/tmp/x",
    }.items():
        assert resolve(path) == tmp_path / place
        assert resolve(resolve(path)) == tmp_path / place


def test_on_a_cluster_a_path_is_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(env.MOUNTS, raising=False)
    monkeypatch.delenv(env.POD_ROOT, raising=False)
    assert resolve("/argosy/data") == Path("/argosy/data")
    assert resolve("out") == Path("out")
