"""Labelled bundles through the judge: composed ones (composed.toml) and real ends of real processes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.channel import Ending
from argosy.steps.contract.trouble import Trouble
from argosy.steps.record.advice import advice_for
from argosy.steps.verdict import PodFact, judge, termination_line
from argosy.steps.verdict.families import PATTERNS
from argosy.steps.verdict.families.benign import REGEXES

COMPOSED = tomllib.loads(Path(__file__).with_name("composed.toml").read_text())["bundle"]
BEGAN = 1_700_000_000.0


def ending(rank: dict[str, Any]) -> Ending:
    number, end = rank["number"], rank["end"]
    return Ending(
        rank=number,
        time=BEGAN + rank["at"],
        exit_code=None if end.startswith("sig") or end == "stopped" else 0 if end == "ok" else int(end),
        signal=int(end.split()[1]) if end.startswith("sig") else signal.SIGTERM if end == "stopped" else None,
        stopped=end == "stopped",
        tail=rank["say"],
        last_step=rank.get("step", 9),
        pod=f"pod-{number}",
        node=f"node-{number}",
    )


def later(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, **({"time": BEGAN + record["time"]} if "time" in record else {})}


@pytest.mark.parametrize("bundle", COMPOSED, ids=lambda bundle: str(bundle["name"]))
def test_composed(bundle: dict[str, Any]) -> None:
    endings = [ending(rank) for rank in bundle.get("ranks", [])]
    verdict = judge(
        endings,
        [Trouble(**later(error)) for error in bundle.get("error", [])],
        [PodFact(**later(pod)) for pod in bundle.get("pod", [])],
    )
    assert verdict.cause == bundle["cause"], verdict
    if "culprit" in bundle:
        assert verdict.rank == bundle["culprit"], verdict
        assert verdict.node == f"node-{bundle['culprit']}"
        assert verdict.pod in ("", f"pod-{bundle['culprit']}")
    if "code" in bundle:
        assert verdict.exit_code == bundle["code"], verdict
    assert verdict.quote
    assert bundle.get("quote", "") in verdict.quote
    assert bundle.get("advice", "") in advice_for(verdict.cause, verdict.quote)[1]
    line = termination_line(verdict)
    assert line.isascii()
    assert len(line) <= 1024


def test_the_corpus_is_large_and_covers_the_list() -> None:
    assert len(COMPOSED) >= 60
    assert len(PATTERNS) >= 60
    assert len({bundle["cause"] for bundle in COMPOSED}) >= 36


def test_each_pattern_speaks_first_for_its_example() -> None:
    for pattern in PATTERNS:
        assert next(other for other in PATTERNS if other.matches(pattern.example)) is pattern, pattern
        assert not any(re.search(regex, pattern.example) for regex, _ in REGEXES), pattern


def test_each_benign_line_matches() -> None:
    for regex, example in REGEXES:
        assert re.search(regex, example), example


def test_the_termination_line_holds_no_free_text() -> None:
    said = "{{workflow.name}} {{= sprig.env() }} KeyError: 'é'"
    bad = Ending(rank=0, time=1.0, exit_code=1, signal=None, stopped=False, tail=[said], pod="p{{x}}", node="n" * 5000)
    line = termination_line(judge([bad], [], []))
    assert "{{" not in line
    assert len(line) <= 1024
    assert line.isascii()


REAL = {
    "user_exception": ("raise KeyError('x')", None, 1),
    "import_error": ("import no_such_module_anywhere", None, 1),
    "launcher_usage": ("import argparse; argparse.ArgumentParser().parse_args(['--nope'])", None, 2),
    "native_crash": ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV, None),
    "unknown": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL, None),
    "sigterm": ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", signal.SIGTERM, None),
    "shm_exhausted": ("import os, signal; os.kill(os.getpid(), signal.SIGBUS)", signal.SIGBUS, None),
    "disk_full": ("f = open('/dev/full', 'w'); f.write('x' * 100000); f.close()", None, 1),
    "host_oom": (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); b = bytearray(1 << 30)",
        None,
        1,
    ),
    "address_in_use": (
        "import socket; a = socket.socket(); a.bind(('127.0.0.1', 0)); b = socket.socket(); b.bind(a.getsockname())",
        None,
        1,
    ),
    "rendezvous_connect": (
        "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); p = s.getsockname(); s.close();"
        "socket.create_connection(p)",
        None,
        1,
    ),
    "data_corrupt": ("import json; json.loads('{broken')", None, 1),
    "checkpoint_corrupt": ("import pickle; pickle.loads(b'\\x00\\x00')", None, 1),
    "peer_lost": (
        "import os; r, w = os.pipe(); os.close(r); import signal; signal.signal(signal.SIGPIPE, signal.SIG_IGN);"
        "os.write(w, b'x')",
        None,
        1,
    ),
    "numerics_nan": ("x = float('nan'); assert x == x, 'loss is nan'", None, 1),
}


@pytest.mark.parametrize("cause", REAL)
def test_real_processes(cause: str) -> None:
    code, number, exit_code = REAL[cause]
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True)
    assert done.returncode == (-number if number else exit_code)
    tail = (done.stdout + done.stderr).splitlines()[-60:]
    verdict = judge(
        [
            Ending(
                rank=3, time=BEGAN, exit_code=exit_code, signal=number, stopped=False, tail=tail, pod="p", node="node-1"
            )
        ],
        [],
        [],
    )
    assert verdict.cause == cause, (verdict, tail)
    assert (verdict.rank, verdict.node, verdict.signal, verdict.code) == (3, "node-1", number, exit_code)
