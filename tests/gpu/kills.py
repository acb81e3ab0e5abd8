"""SIGKILL of a rank that holds most of a GPU, 50 times; and how soon a killed rank trains again, beside torchrun."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.gpu.case import Case, Part, Skipped
from tests.gpu.forks import Fork, preload
from tests.gpu.managed import TORCHRUN, Managed

KILLS = 50
SHARE = 0.75
"""Of the GPU's memory that the rank holds."""
TOLERANCE = 64 << 20
"""Bytes of the GPU by which it may differ from what was used before."""
FREE_SECONDS = 20.0


def of_gpu(case: Case, what: str) -> int:
    """Bytes of ``what`` nvidia-smi knows of the GPU; asked without a context of our own."""
    if not case.cuda:
        return 0
    if shutil.which("nvidia-smi") is None:
        raise Skipped("no nvidia-smi")
    ask = ["nvidia-smi", f"--query-gpu={what}", "--format=csv,noheader,nounits"]
    return int(subprocess.run(ask, capture_output=True, text=True, check=True, timeout=20).stdout.split()[0]) << 20


def memory(case: Case) -> None:
    """Killed at random instants: while CUDA starts, while it trains, while it copies, while its save is stored."""
    preload(case)
    before, most = of_gpu(case, "memory.used"), int(SHARE * of_gpu(case, "memory.total"))
    chance = random.Random(20261122)
    held, done, waits, kills = 0, 0, [], case.pick(KILLS, 3)
    while done < kills and case.left > 20:
        rank = Fork(lambda say: _rank(case, most, say), case.folder / "rank.log")
        began = rank.said("begun" if chance.random() < 0.1 else "training", 60.0)
        time.sleep(chance.uniform(0, case.pick(1.0, 0.5)))
        top = of_gpu(case, "memory.used")
        code = rank.kill()
        assert began, f"ended with {code}: {(case.folder / 'rank.log').read_text()[-1500:]}"
        killed = time.monotonic()
        while (now := of_gpu(case, "memory.used")) > before + TOLERANCE and time.monotonic() - killed < FREE_SECONDS:
            time.sleep(0.05)
        waits.append(time.monotonic() - killed)
        held += now <= before + TOLERANCE
        done += 1
        if done % 10 == 0:
            case.say(f"{done} kills; {top / 1e9:.0f} GB were used")
    log = (case.folder / "rank.log").read_text()
    restored = log.count("restored step")
    case.figure("kills", done, bar=str(kills), held=done == kills)
    case.figure("memory free again", held, bar=f"all {kills}", held=held == done)
    case.figure("until it was free", max(waits), "s at most")
    case.figure("ranks that restored a committed checkpoint", restored, bar="some", held=restored > 0)
    case.figure("damaged checkpoints", log.count("set aside"), bar="0", held="set aside" not in log)


def _rank(case: Case, most: int, say: Callable[[str], None]) -> None:
    """``most``: bytes of the GPU that it holds besides what it trains."""
    import torch

    from argosy import Checkpointer

    say("begun")
    device = torch.device(case.device)
    held = torch.empty(case.pick(most, 1 << 20), dtype=torch.uint8, device=device)
    held.fill_(1)
    weights = torch.randn(case.pick(8192, 64), case.pick(8192, 64), device=device)
    checkpointer = Checkpointer(case.folder / "store", keep=2)
    found = checkpointer.restore(into={"weights": weights})
    if found is not None:
        print("restored step", found.step, flush=True)
    step = found.step if found is not None else 0
    while True:
        step += 1
        weights = torch.tanh(weights @ weights)
        checkpointer.save(step, {"weights": weights})
        say("training")


def restart(case: Case) -> None:
    """From the kill to the first step of the next process, argosy's and plain torchrun's, in turns."""
    kills = case.pick(3, 1)
    found: dict[str, list[float]] = {"argosy": [], "torchrun": [], "argosy, torch preloaded": []}
    for _ in range(case.pick(2, 1)):
        if case.left < 45:
            break
        for who in found:
            folder = case.folder / f"{who.replace(', ', '-').replace(' ', '-')}-{len(found[who])}"
            folder.mkdir()
            environ = {"GPU_TIMES": str(folder / "times"), "GPU_KILLS": str(kills), "GPU_DEVICE": case.device}
            command = ["-m", "tests.gpu.ranks", "killed"]
            if who != "torchrun":
                preload = "torch" if "preloaded" in who else ""
                run = Managed(
                    folder, "killed", environ, preload=preload, max_same_failure=kills + 2, max_restarts=kills + 2
                )
                run.run(max(30.0, case.left))
            else:
                torchrun = [sys.executable, *TORCHRUN,
                            f"--max-restarts={kills + 1}", "--no-python", sys.executable, *command]  # fmt: skip
                given = {**os.environ, **environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
                with (folder / "log").open("wb") as log:
                    subprocess.run(torchrun, env=given, stdout=log, stderr=log, timeout=max(30.0, case.left))
            found[who] += between(folder / "times")
            case.say(f"{who}: {', '.join(f'{seconds:.2f}' for seconds in found[who])} s")
    for who, seconds in found.items():
        case.figure(f"{who}: kill to first step", statistics.median(seconds), "s")
    for who in (who for who in found if who != "torchrun"):
        ratio = statistics.median(found[who]) / statistics.median(found["torchrun"])
        bar = {"bar": "<= 1.1", "held": ratio <= 1.1} if case.cuda else {}
        case.figure(f"{who} / torchrun", ratio, "x", **bar)


def between(times: Path) -> list[float]:
    """Seconds from each kill to the next first step."""
    lines = [line.split() for line in times.read_text().splitlines()]
    found, killed = [], 0.0
    for what, when in lines:
        if what == "killed":
            killed = float(when)
        elif what == "first" and killed:
            found.append(float(when) - killed)
            killed = 0.0
    assert found, f"no restart: {lines}"
    return found


PART = Part({"restart": restart, "memory": memory}, seconds=300, disk=frozenset({"restart"}))
