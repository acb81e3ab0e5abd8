"""A signal ends a supervisor's wait, wherever in it it arrives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.steps.test_supervise_manifest import JOB, written

EACH_LINE = """
import signal, sys
from argosy.steps.contract.arguments import SuperviseArgs
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.supervise.loop import Loop, Stopped
from argosy.steps.supervise.manifest import read_gang
from pathlib import Path

def arrives_at(line):
    '''False when the wait is shorter.'''
    left = line
    def trace(frame, event, argument):
        nonlocal left
        left -= event == "line"
        if event == "line" and left == 0:
            signal.raise_signal(signal.SIGTERM)
        return trace
    loop = Loop(None, None, Owner(name="", uid="u"), gang, name, SuperviseArgs(gang="g"))
    signal.signal(signal.SIGTERM, lambda number, _: loop.stop(number))
    try:
        sys.settrace(trace)
        loop.pause(0.001)
        sys.settrace(None)
        if left > 0:
            return False
        loop.pause(60)
    except Stopped:
        sys.settrace(None)
        return True
    raise SystemExit(f"lost in line {line}")

gang, name, _ = read_gang(Path(sys.argv[1]), "default")
line = 1
while arrives_at(line):
    line += 1
print(line)
"""


def test_a_signal_in_any_line_of_the_wait_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", EACH_LINE, str(written(tmp_path, JOB))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 2
