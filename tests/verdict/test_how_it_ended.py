"""How a process ended and what a line of metrics names are less than what was said: only words tell why."""

from __future__ import annotations

import pytest

from argosy.steps.verdict.evidence import said_in
from argosy.steps.verdict.line import Line
from argosy.workflows.diagnosis.verdict import Named, diagnose

REFUSED = "  what():  [enforce fail at gloo/transport/tcp/pair.cc:498] optval == 0. SO_ERROR: Connection refused"
ABORTED = "mpirun noticed that process rank 1 with PID 29013 on node a exited on signal 6 (Aborted)."
ENDED = "slurmstepd: error: execution of the step was cancelled by signal SIGTERM"


def _root(*lines: str) -> Named:
    return diagnose([[Line("a", number, text) for number, text in enumerate(lines, 1)]]).root


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        ((REFUSED, ABORTED), "nccl_network_init"),
        (("NCCL timeout for validation", ABORTED), "nccl_timeout"),
        ((ABORTED,), "native_crash"),
        ((ABORTED, ENDED), "native_crash"),  # the launcher ends the others
    ],
)
def test_what_was_said_before_an_abort_is_why(lines: tuple[str, ...], cause: str) -> None:
    assert _root(*lines).cause == cause


def test_a_status_that_names_nothing_is_no_configuration() -> None:
    found = _root("[Rank 7] NCCL watchdog thread terminated with exception: CUDA error: unknown error")
    assert (found.cause, found.exit_code) == ("unknown", 75)


def test_what_a_launcher_needs_a_shell_says_before_it() -> None:
    said = ("bash: /bin/orted: No such file or directory", "ORTE was unable to reliably start one or more daemons.")
    assert _root(*said).cause == "launcher_usage"
    assert _root(said[1]).cause == "rendezvous_connect"


def test_names_of_metrics_are_no_trouble() -> None:
    line = " iteration      500/  500000 | loss scale: 131072.0 | number of nan iterations:   0 |"
    assert said_in([line], guess=True) == []
    assert _root(line.replace("131072.0", "nan")).cause == "numerics_nan"


def test_an_exception_that_a_logger_tells_is_one() -> None:
    line = "[2025-07-02 01:21:43] CRITICAL [olmo.util:168, rank=5] Uncaught KeyError: 'tokens'"
    assert _root(line).cause == "user_exception"


def test_a_line_as_a_node_keeps_it_is_read() -> None:
    """Kubernetes' container log on the node (CRI): time, stream, F for whole or P for part."""
    kept = "2026-01-01T00:00:00.000000000Z stderr F "
    lines = ("Traceback (most recent call last):", '  File "t.py", line 3, in <module>', "ValueError: not a scalar")
    assert _root(*(kept + line for line in lines)).cause == "user_exception"


def test_a_peer_that_was_lost_is_not_why_a_process_aborted() -> None:
    assert _root("INFO retrying after: Connection reset by peer", ABORTED).cause == "native_crash"
