from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def everywhere(outside: None) -> None:
    """All tests of states are in no gang."""
