"""Whole enumerations, each asked of what defines it: what none of its members may be taken for."""

from __future__ import annotations

import ctypes
import errno
import inspect
import os
import re
import signal
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.verdict import Named, diagnose

_AGAIN = (ExitCode.TRANSIENT, ExitCode.PREEMPTED)
_FRAMES = ("Traceback (most recent call last):", '  File "/app/train.py", line 210, in main', "    step(batch)")


def _read(*lines: str) -> Named:
    return diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]]).root


def _classes(module: object, of: str) -> list[str]:
    """Names of the exceptions that a package defines and that this module of it shows."""
    found = inspect.getmembers(module, lambda one: inspect.isclass(one) and issubclass(one, Exception))
    return [name for name, one in found if one.__module__.startswith(of)]


_NETWORK = [
    number for name, number in vars(errno).items() if re.match(r"E(NET|HOST|CONN|TIMEDOUT|PIPE|SHUTDOWN)", name)
]


@pytest.mark.parametrize("number", sorted(set(_NETWORK)))
def test_an_error_of_the_network_is_never_the_programs(number: int) -> None:
    error = OSError(number, os.strerror(number))
    found = _read(*_FRAMES, f"{type(error).__name__}: {error}")
    assert found.exit_code in _AGAIN, found


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        *((name, Cause.DISK_FULL) for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO")),
        *((name, Cause.PEER_LOST) for name in ("EPIPE", "ECONNRESET", "ECONNABORTED", "ESHUTDOWN")),
        ("ENOMEM", Cause.HOST_OOM),
        ("EADDRINUSE", Cause.ADDRESS_IN_USE),
    ],
)
def test_an_error_of_the_kernel_is_known_by_its_number(name: str, cause: Cause) -> None:
    error = OSError(getattr(errno, name), os.strerror(getattr(errno, name)))
    assert _read(*_FRAMES, f"{type(error).__name__}: {error}").cause == cause


@pytest.mark.parametrize("one", [one for one in signal.Signals if one.name in ("SIGKILL", "SIGTERM", "SIGHUP")])
def test_a_process_that_another_ended_is_started_again(one: signal.Signals) -> None:
    for line in (
        f"elastic.multiprocessing.api:failed (exitcode: -{int(one)}) local_rank: 0 (pid: 9) of binary",
        f"torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal {one.name}",
        f"mpirun noticed that process rank 1 with PID 9 on node n exited on signal {int(one)} (x).",
    ):
        assert _read(line).exit_code in _AGAIN, line


@pytest.mark.parametrize("one", [one for one in HTTPStatus if one >= 400], ids=str)
def test_a_status_of_a_hub_says_whether_to_ask_again(one: HTTPStatus) -> None:
    again = one >= 500 or one in (408, 409, 425, 429)  # too slow, in conflict, too early, too many
    whose = "Server" if one >= 500 else "Client"
    found = _read(
        *_FRAMES, f"requests.exceptions.HTTPError: {int(one)} {whose} Error: {one.phrase} for url: https://x.org"
    )
    assert found.cause == Cause.HUB_NETWORK
    assert (found.exit_code in _AGAIN) == again


def test_what_ray_raises_of_its_nodes_and_actors_is_never_the_programs() -> None:
    exceptions = pytest.importorskip("ray.exceptions")
    theirs = re.compile(
        "Died|Lost|Unavailable|OutOf(Disk|Memory)|Full|Unschedulable|Removed|Rpc|Timeout|Channel|System|Setup"
    )
    names = [name for name in _classes(exceptions, "ray") if theirs.search(name)]
    assert len(names) > 15
    for name in names:
        assert _read(*_FRAMES, f"ray.exceptions.{name}: something new").cause != Cause.USER_EXCEPTION, name


def test_what_botocore_raises_is_about_the_store() -> None:
    exceptions = pytest.importorskip("botocore.exceptions")
    for name in _classes(exceptions, "botocore"):
        found = _read(*_FRAMES, f"botocore.exceptions.{name}: something new")
        assert found.cause in (Cause.S3_ACCESS, Cause.S3_MISSING, Cause.S3_THROTTLE), name
        if re.search("Credential|Region|Profile|Token|Validation", name):
            assert found.exit_code == ExitCode.CONFIGURATION, name
        if re.search("Timeout|Connection|Proxy|SSL|HTTPClient", name):
            assert found.exit_code in _AGAIN, name


def test_what_botocore_asks_again_for_passes_and_any_other_code_is_a_refusal() -> None:
    standard = pytest.importorskip("botocore.retries.standard")
    passing = {
        *standard.TransientRetryableChecker._TRANSIENT_ERROR_CODES,
        *standard.ThrottledRetryableChecker._THROTTLED_ERROR_CODES,
        *map(str, standard.TransientRetryableChecker._TRANSIENT_STATUS_CODES),
    }
    for code in (*passing, "InternalError", "AccountBlockedByNobodyKnows", "InvalidSomething", "405"):
        again = code in passing or code == "InternalError"
        said = f"botocore.exceptions.ClientError: An error occurred ({code}) when calling the PutObject operation: x"
        assert (_read(*_FRAMES, said).exit_code in _AGAIN) == again, code
        document = _read("<Error>", f"  <Code>{code}</Code>", "</Error>").exit_code
        assert (document in _AGAIN) == again, code


def test_every_error_of_cuda_is_named_by_what_went_wrong() -> None:
    spec = find_spec("nvidia")
    homes = list(spec.submodule_search_locations or []) if spec else []
    found = sorted(path for home in homes for path in Path(home).glob("**/libcudart.so*"))
    if not found:
        pytest.skip("no CUDA runtime among the installed packages")
    library = ctypes.CDLL(str(found[0]))
    library.cudaGetErrorName.restype = library.cudaGetErrorString.restype = ctypes.c_char_p
    for number in range(1, 1000):
        name, words = library.cudaGetErrorName(number).decode(), library.cudaGetErrorString(number).decode()
        if name.startswith("unrecognized"):
            continue
        cause = _read(*_FRAMES, f"RuntimeError: CUDA error: {words}").cause
        if re.search(r"Mps|Ptx|Jit|SharedObject|Driver$|System(?!NotReady)", name):
            assert cause == Cause.CUDA_DRIVER, (name, words, cause)
        if name.startswith("cudaErrorStreamCapture"):
            assert cause == Cause.USER_EXCEPTION, (name, words, cause)
