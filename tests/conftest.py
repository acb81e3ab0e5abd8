"""What all tests have in common: signals, and which files begin first."""

from __future__ import annotations

import signal

import pytest

_LONGEST = ("chain", "supervisor", "examples", "launch", "checkpoint", "agreement", "exact", "preflight", "gpu")
"""Folders whose files take minutes each. One that begins last is waited for by every other core."""

# A shell that starts the tests in the background has them ignore it, and every process below them inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first."""
    places = {name: place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.split("/")[1], len(places)))
