"""The demo's gang with its data in a warm cache, beside the same gang with local files: when does it train?"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from argosy.steps.runlog import Event
from argosy.workflows.cli.run_folder import RunFolder, find_run
from benchmarks.paired import BenchError
from benchmarks.staging import first_step
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import NOISY, Outcome, load

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "stdlib-gpt"
BUCKET = "argosy-demo"
WARM, LOCAL = "node, warm cache", "local files"
NODES = 2
BAR_SECONDS = 1.0
LONGEST = 120
"""Seconds after which a run that has not ended has failed."""

_GANG = """
name = "gang"
script = "first_step.py"
args = {args}

[gang]
nnodes = {nodes}
nproc_per_node = 1
resources = {{ cpu = "1", memory = "2Gi" }}

[batch]
micro_batch_size = 8
base_learning_rate = 3e-3
base_batch_size = 16
"""
_CACHED = f"""
[dataset]
uri = "s3://{BUCKET}/stdlib-gpt/train"
staging = "node"

[dataset.cache]
claim = "dataset-cache"
"""
_ROW = "{:<18} {:>12} {:>8} {:>7} {:>11} {:>8} {:>11} {:>8} {:>8}"


@dataclass(frozen=True)
class Begin:
    """One run, in seconds since its gang was created: when every node had checked in, when the last node had its data
    (0: there were none to stage), when rank 0 began and had trained a step, both by its own clock, and when the event
    log had that step.
    ``fetched``: bytes that the nodes fetched; ``reads``: GETs and HEADs of objects that the data's store saw, in the
    whole run; ``cpu``: seconds, user and system, of the whole run.
    """

    checked_in: float
    staged: float
    began: float
    trained: float
    logged: float
    fetched: int
    reads: int
    cpu: float


def warm_gang(scratch: Path, rounds: int) -> Outcome:
    """Each once unmeasured, which fills the cache, then in turn, in an order that turns around; each run is anew."""
    code = scratch / "code"
    shutil.copytree(EXAMPLE, code, ignore=shutil.ignore_patterns(".argosy", "__pycache__"))
    shutil.copy(first_step.__file__, code)
    local = scratch / "files"
    steps = ["--steps", "5", "--warmup", "1"]
    _write(code / "warm.toml", steps, _CACHED)
    _write(code / "local.toml", [*steps, "--data", str(local / "train")])
    files = {WARM: code / "warm.toml", LOCAL: code / "local.toml"}
    found: dict[str, list[Begin]] = {WARM: [], LOCAL: []}
    with Origin(buckets=[BUCKET]) as origin:
        for uri in (f"s3://{BUCKET}/stdlib-gpt", local.as_uri()):
            _completed([sys.executable, "prepare.py", "--out", uri], code, origin)
        for number in range(rounds + 1):
            for name in (WARM, LOCAL) if number % 2 else (LOCAL, WARM):
                found[name].append(_run(files[name], scratch / files[name].stem, origin))
    return judged(found[WARM][0], {name: runs[1:] for name, runs in found.items()})


def _write(path: Path, args: Sequence[str], more: str = "") -> None:
    path.write_text(_GANG.format(args=json.dumps(args), nodes=NODES) + more)


def _completed(command: Sequence[str], folder: Path, origin: Origin) -> float:
    """Run to the end; CPU seconds with all children."""
    command = ["timeout", "--kill-after=10", str(LONGEST), *command]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command, cwd=folder, env=origin.environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        lines = output.read().decode(errors="replace").splitlines()
    if process.returncode != 0:
        raise BenchError("\n".join([f"{' '.join(command[3:])} exited {process.returncode}:", *lines[-12:]]))
    return usage.ru_utime + usage.ru_stime


def _run(file: Path, state_dir: Path, origin: Origin) -> Begin:
    origin.begin()
    argosy = str(Path(sys.executable).parent / "argosy")
    command = [argosy, "run", str(file), "--new", "--resume-from", "none", "--state-dir", str(state_dir)]
    cpu = _completed(command, file.parent, origin)
    requests = origin.counted().requests
    reads = requests.get("GetObject", 0) + requests.get("HeadObject", 0)
    folder = find_run(state_dir, None)
    try:
        return _begin(folder, reads, cpu)
    finally:
        shutil.rmtree(folder.path)


def _begin(folder: RunFolder, reads: int, cpu: float) -> Begin:
    events = folder.events()
    (created,) = _times(events, "gang_created")
    staged = [event for event in events if event.kind == "staged"]
    return Begin(
        checked_in=max(_times(events, "checked_in")) - created,
        staged=max((event.time - created for event in staged), default=0.0),
        began=_said(folder.path, first_step.BEGAN) - created,
        trained=_said(folder.path, first_step.TRAINED) - created,
        logged=min(_times(events, "step")) - created,
        fetched=sum(int(event.fields["fetched_bytes"]) for event in staged),
        reads=reads,
        cpu=cpu,
    )


def _times(events: Sequence[Event], kind: str) -> list[float]:
    found = [event.time for event in events if event.kind == kind]
    if not found:
        raise BenchError(f"no event {kind} in the log of the run")
    return found


def _said(run: Path, what: str) -> float:
    for log in run.glob("nodes/*/pods/*/log"):
        for line in log.read_text(errors="replace").splitlines():
            if what in line:
                return float(line.rpartition(what)[2])
    raise BenchError(f"{run.name}: no rank printed {what!r}")


def judged(filled: Begin, found: dict[str, list[Begin]]) -> Outcome:
    """The table and the bars; ``filled`` is the run that found the cache empty, ``found`` all others, round by round.

    A cache that served nothing, and a store that counted nothing, both miss a bar: no figure passes by accident.
    """
    head = ("", "trains after", "spread", "CPU s", "checked in", "staged", "rank began", "logged", "fetched")
    lines = [_ROW.format(*head), *(_row(name, runs) for name, runs in found.items())]
    pairs = len(found[WARM])
    later = _more(found, "trained")
    lines += [
        "seconds since the gang was created; the warm cache, median over the rounds: "
        f"{_more(found, 'began'):+.2f} s until rank 0 begins, {_more(found, 'logged'):+.2f} s by the event log, "
        f"{_more(found, 'cpu'):+.2f} CPU s for the whole run",
        f"filling the cache: {filled.fetched / 1e6:.1f} MB fetched, {filled.reads} reads, staged after "
        f"{filled.staged:.2f} s; {pairs} rounds; load average {load()}",
        *_noise(found),
    ]
    fetched, reads = (sum(of) for of in zip(*((run.fetched, run.reads) for run in found[WARM]), strict=True))
    bars = [
        (f"training begins {later:+.2f} s later than with local files (bar {BAR_SECONDS} s)", later <= BAR_SECONDS),
        (f"{fetched} bytes fetched, {reads} reads of the data's store (bar 0)", fetched == reads == 0),
        ("the run that filled the cache fetched and was seen by the store", filled.fetched > 0 < filled.reads),
    ]
    facts = {name: [asdict(run) for run in runs] for name, runs in found.items()}
    title = f"the demo's gang of {NODES} nodes, data in a warm cache, beside local files"
    return Outcome(title, lines, {"filled": asdict(filled), "rounds": facts, "load": os.getloadavg()}, bars)


def _more(found: dict[str, list[Begin]], of: str) -> float:
    """Median over the rounds of what the warm cache took beyond local files within the round."""
    pairs = zip(found[WARM], found[LOCAL], strict=True)
    return statistics.median(getattr(warm, of) - getattr(local, of) for warm, local in pairs)


def _noise(found: dict[str, list[Begin]]) -> list[str]:
    """On a busy machine torch's own seconds, which both have, differ by more than what is measured.

    A node stages between its check-in and the start of its ranks: no more than that can come of the data.
    """
    if all(_spread(runs) <= NOISY for runs in found.values()):
        return []
    least = {name: min(run.trained for run in runs) for name, runs in found.items()}
    staged = statistics.median(run.staged - run.checked_in for run in found[WARM])
    told = f"the least of each: {least[WARM]:.2f} and {least[LOCAL]:.2f} s"
    return [f"NOISY (spread > {100 * NOISY:.0f} %): believe the {staged:.2f} s from check-in to staged; {told}"]


def _spread(runs: Sequence[Begin]) -> float:
    trained = [run.trained for run in runs]
    return statistics.stdev(trained) / statistics.mean(trained) if len(trained) > 1 else 0.0


def _row(name: str, runs: Sequence[Begin]) -> str:
    def middle(of: str) -> float:
        return statistics.median(getattr(run, of) for run in runs)

    times = (f"{middle(of):.2f}" for of in ("checked_in", "staged", "began", "logged"))
    shown = (f"{middle('trained'):.2f}", f"{100 * _spread(runs):.0f} %", f"{middle('cpu'):.1f}", *times)
    return _ROW.format(name, *shown, f"{middle('fetched'):.0f} B")
