"""What all tests have in common: signals, and which files begin first."""

from __future__ import annotations

import gc
import signal

import pytest
from hypothesis import settings

_LONGEST = (
    "chain/", "supervisor/", "examples/", "launch/", "checkpoint/", "agreement/", "exact/", "preflight/", "gpu/",
    "transfer/test_pages.py", "data/", "staging/",
    "cluster/test_faults.py", "cluster/test_runtimes.py",
)  # fmt: skip
"""What takes minutes a file. A file that begins last is waited for by every other core."""

# A clock says more of the machine than of the code.
settings.register_profile("argosy", deadline=None)
settings.load_profile("argosy")

# A shell that starts the tests in the background has them ignore it, and every process below them inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Nine thousand collected tests live until the end: looking through them for garbage took a sixth of collecting them.
gc.disable()


def pytest_collection_finish() -> None:
    """What was collected is looked through no more."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first."""
    items.sort(key=lambda item: _place(item.nodeid.removeprefix("tests/")))


def _place(path: str) -> int:
    return next((place for place, name in enumerate(_LONGEST) if path.startswith(name)), len(_LONGEST))
