"""What argosy costs a step besides saves: launcher, shim, report and heartbeats, beside plain torchrun, in turns."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

from tests.gpu.case import Case, Part
from tests.gpu.managed import TORCHRUN, Managed


def step(case: Case) -> None:
    rounds, count = case.pick(4, 1), case.pick(250, 60)
    found: dict[str, list[float]] = {"argosy": [], "torchrun": []}
    calls = []
    for number in range(rounds):
        for who in found if number % 2 else reversed(found):
            folder = case.folder / f"{who}-{number}"
            folder.mkdir()
            environ = {"GPU_TIMES": str(folder / "times"), "GPU_STEPS": str(count), "GPU_DEVICE": case.device,
                       "GPU_FOLDER": str(folder / "checkpoints")}  # fmt: skip
            if who == "argosy":
                run = Managed(folder, "steps", {**environ, "GPU_SPEAKS": "1"})
                code = run.run(max(30.0, case.left))
                assert code == 0, f"exit code {code}: {run.log()}"
            else:
                command = [sys.executable, *TORCHRUN,
                           "--no-python", sys.executable, "-m", "tests.gpu.ranks", "steps"]  # fmt: skip
                subprocess.run(command, env={**os.environ, **environ}, check=True, timeout=max(30.0, case.left))
            took, called = map(float, (folder / "times").read_text().split())
            found[who].append(took)
            calls += [called] if who == "argosy" else []
            case.say(f"{who}: {1000 * took:.3f} ms per step")
        if case.left < 90:
            break
    for who, seconds in found.items():
        case.figure(f"{who}: step", 1000 * statistics.median(seconds), "ms")
        case.figure(f"{who}: spread of the rounds", 100 * (max(seconds) / min(seconds) - 1), "%")
    per_call = statistics.median(calls)
    share = 100 * per_call / statistics.median(found["torchrun"])
    more = 100 * (statistics.median(found["argosy"]) / statistics.median(found["torchrun"]) - 1)
    case.figure("report() and due()", 1e6 * per_call, "us")
    for what, value in (("report() and due(), share of a step", share), ("a step under argosy takes more by", more)):
        bar = {"bar": "<= 0.5", "held": value <= 0.5} if case.cuda else {}
        case.figure(what, value, "%", **bar)


PART = Part({"step": step}, seconds=240, disk=frozenset({"step"}))
