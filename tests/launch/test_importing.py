"""A pod that is told to stop before it has imported what it needs."""

from __future__ import annotations

import signal
import subprocess
import sys

from argosy.steps.contract.exit_codes import ExitCode

HELD = """
import runpy, sys
class Held:
    def find_spec(self, name, *_):
        if name == "argosy.steps.launch.node":
            print("imports", flush=True)
            sys.stdin.read()
sys.meta_path.insert(0, Held())
runpy.run_module("argosy.steps.launch", run_name="__main__")
"""


def test_it_ends_by_a_handler_for_a_containers_first_process_ends_by_nothing_else() -> None:
    with subprocess.Popen([sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as pod:
        assert pod.stdout is not None
        assert pod.stdout.readline() == b"imports\n"
        pod.send_signal(signal.SIGTERM)
        assert pod.wait(20) == ExitCode.PREEMPTED
