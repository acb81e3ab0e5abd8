"""What all tests have in common: signals, which files begin first, and what several folders ask for."""

from __future__ import annotations

import gc
import os
import random
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

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


@pytest.fixture
def seed() -> int:
    number = int(os.environ.get("ARGOSY_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"ARGOSY_TEST_SEED={number}")
    return number


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no pod and no gang, whatever started the tests."""
    for name in [name for name in os.environ if name.startswith("ARGOSY_") or name == "WORLD_SIZE"]:
        monkeypatch.delenv(name)


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder on tmpfs where there is one: hundreds of cases, and fsync itself is not what they are about."""
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="argosy-test-", dir=shm) as folder:
        yield Path(folder)


@pytest.fixture
def argosy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process, in an empty folder: (exit code, stdout, stderr)."""
    from click.testing import CliRunner

    from argosy.workflows.cli import main

    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> tuple[int, str, str]:
        with CliRunner().isolation() as (out, err, _):
            code = main.invoke(list(argv))
            return code, out.getvalue().decode(), err.getvalue().decode()

    return run
