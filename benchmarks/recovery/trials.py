"""One training of one contender, hurt once: the seconds from the fault to the next step that rank 0 makes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.launch.ports import free_port
from argosy.steps.runlog import Event, read_events
from argosy.steps.store import open_store
from benchmarks.paired import BenchError

RANKS = Path(__file__).with_name("ranks.py")
STEPS = 100_000
"""More than any trial makes: each is ended from outside."""
WARM_STEPS = 40
WARM_SECONDS = 25.0
"""Before it is hurt: checkpoints are there, the run's pace is known, and what is made ready beside the ranks is."""
PATIENCE = 180.0
LOST_AT = 60
"""Seconds after the ranks of ours were started: long after they are warm."""
RUN = """\
name = "recovery"
script = "ranks.py"
args = ["{told}", "{steps}", "{seconds}"]

[gang]
nnodes = {nnodes}
nproc_per_node = {nproc}
spares = {spares}
preload = {preload}
resources = {{ cpu = "1", memory = "1Gi" }}

[checkpoint]
mode = "opaque"
path = "out"
include = ["state.pt"]

[deadlines]
on_stall = "{stall}"
stall_seconds = 2
grace_seconds = 2
"""


@dataclass(frozen=True)
class Shape:
    """Of one of our trainings; ``act``: a stall is a hang; ``preload``: ranks find torch imported."""

    nnodes: int
    nproc: int
    spares: int = 0
    act: bool = False
    preload: bool = False


@dataclass(frozen=True)
class Outcome:
    """Seconds from the fault to the verdict (0: nobody gave one) and to the next step."""

    judged: float
    resumed: float


def steps_of(told: Path) -> list[tuple[float, int]]:
    """(time, process that made it), as they came."""
    with suppress(FileNotFoundError):
        rows = [line.split() for line in (told / "steps").read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [(float(when), int(process)) for when, process in rows]
    return []


def torchrun(folder: Path, seconds: float, nnodes: int = 1) -> Outcome:
    """Torchrun's own restart of two ranks, with a store of its own for each: of one node, or two with an agent each."""
    folder.mkdir()
    met = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port('127.0.0.1')}", f"--nnodes={nnodes}"]
    agent = [str(Path(sys.executable).parent / "torchrun"), *(met if nnodes > 1 else ["--standalone"])]
    agent += [f"--nproc-per-node={2 // nnodes}", "--max-restarts=3"]
    agents = " & ".join([shlex.join([*agent, str(RANKS), str(folder), str(STEPS), str(seconds)])] * nnodes)
    environ = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "OMP_NUM_THREADS": "1"}
    return _trial(["sh", "-c", f"{agents} & wait"], folder, folder, environ, lambda: _kill(folder, 1))


def in_place(folder: Path, seconds: float, shape: Shape) -> Outcome:
    """Ours; rank 1 gets SIGKILL."""
    return _ours(folder, seconds, shape, (), lambda: _kill(folder, 1))


def lost_node(folder: Path, seconds: float, shape: Shape) -> Outcome:
    """Ours; the second node loses its power after LOST_AT seconds."""
    return _ours(folder, seconds, shape, (f"node-loss:node=1@seconds={LOST_AT}",), None)


def hung(folder: Path, seconds: float, shape: Shape) -> Outcome:
    """Ours; rank 1 stops for ever."""
    return _ours(folder, seconds, shape, (), lambda: _kill(folder, 1, signal.SIGSTOP))


def _ours(
    folder: Path, seconds: float, shape: Shape, inject: tuple[str, ...], hurt: Callable[[], None] | None
) -> Outcome:
    folder.mkdir()
    description = RUN.format(
        told=folder,
        steps=STEPS,
        seconds=seconds,
        nnodes=shape.nnodes,
        nproc=shape.nproc,
        spares=shape.spares,
        preload='["torch"]' if shape.preload else "[]",
        stall="act" if shape.act else "observe",
    )
    (folder / "run.toml").write_text(description)
    (folder / "ranks.py").write_text(RANKS.read_text())
    command = [str(Path(sys.executable).parent / "argosy"), "run", "run.toml", "--state-dir", str(folder / "state")]
    command += [word for text in inject for word in ("--inject", text)]
    return _trial(command, folder, folder, dict(os.environ), hurt, spares=shape.spares)


def _kill(told: Path, rank: int, number: int = signal.SIGKILL) -> None:
    os.kill(int((told / f"pid-{rank}").read_text()), number)


def _trial(
    command: list[str],
    folder: Path,
    told: Path,
    environ: dict[str, str],
    hurt: Callable[[], None] | None,
    spares: int = 0,
) -> Outcome:
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log, start_new_session=True)
    try:
        _until(process, folder, lambda: _is_warm(steps_of(told)))
        if spares:
            ready = lambda: any(each.fields["ready"] for each in _events(folder, "standing_by"))  # noqa: E731
            _until(process, folder, ready)
        if hurt is not None:
            at = time.time()
            hurt()
        else:
            _until(process, folder, lambda: _events(folder, "injected"))
            at = _events(folder, "injected")[0].time
        first = steps_of(told)[0][1]
        _until(process, folder, lambda: steps_of(told)[-1][1] != first)
        resumed = next(when for when, rank in steps_of(told) if rank != first)
        ends = _events(folder, "restart_ended")
        return Outcome(ends[0].time - at if ends else 0.0, resumed - at)
    finally:
        _end(process)


def _is_warm(steps: list[tuple[float, int]]) -> bool:
    return len(steps) >= WARM_STEPS and time.time() > steps[0][0] + WARM_SECONDS


def _events(folder: Path, kind: str) -> list[Event]:
    store = folder / "state/volumes/argosy/store"
    runs = sorted((store / "recovery/runs").glob("*")) if store.exists() else []
    found = [each for run in runs for each in read_events(open_store(f"file://{store}"), f"recovery/runs/{run.name}")]
    return [each for each in found if each.kind == kind]


def _until(process: subprocess.Popen[bytes], folder: Path, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            tail = (folder / "log").read_text(errors="replace").splitlines()[-15:]
            raise BenchError("\n".join(["a training ended, or nothing came of it:", *tail]))
        time.sleep(0.02)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
