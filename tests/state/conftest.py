from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARGOSY_") or name == "WORLD_SIZE"]:
        monkeypatch.delenv(name)
