"""``argosy bench-comm``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from signal import Signals
from typing import Any

import click

from argosy.steps.bench_comm import ENDING
from argosy.steps.bench_comm.collectives import FACTORS, HEAD, Row, line
from argosy.steps.contract.errors import InputError
from argosy.steps.record.wording import count as counted
from argosy.workflows.cli.checkpoint.get import fetch
from argosy.workflows.cli.checkpoint.run import find_checkpoints
from argosy.workflows.cli.live import PlainScreen, Watch
from argosy.workflows.cli.options import as_json, output, ranks, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.source import Source, compiled, is_toml, read_bytes, with_ranks, write_yaml
from argosy.workflows.cli.starting import check_gpus
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.cluster.store import endpoint_of

_KEPT = ("name", "image", "step_image", "env", "secrets", "storage", "gang", "deadlines")
"""Of the run: who makes the pods and what they are told. Nothing is staged, judged, promoted or announced."""
_LONGEST_NAME = 40


@click.command()
@click.argument("file", metavar="RUN.toml", type=click.Path(path_type=Path))
@click.option("--op", "ops", multiple=True, metavar="OP", help=f"Only this; repeat. [default: {', '.join(FACTORS)}]")
@click.option("--min-bytes", default=8, show_default=True, metavar="N", help="Smallest message.")
@click.option("--max-bytes", default=0, metavar="N", help="Largest. [default: 64 MiB on CPUs, 1 GiB on GPUs]")
@click.option("--factor", default=4, show_default=True, metavar="N", help="From one size to the next.")
@click.option("--seconds", default=300.0, show_default=True, metavar="S", help="No further size once they are spent.")
@output("Write the YAML for a cluster to this file, and run nothing here.")
@ranks
@as_json
@state_dir
def command(
    file: Path,
    ops: tuple[str, ...],
    min_bytes: int,
    max_bytes: int,
    factor: int,
    seconds: float,
    output: Path | None,
    ranks: tuple[int, int] | None,
    as_json: bool,
    state_dir: Path,
) -> int:
    """Measure what the ranks of a gang get from each other.

    The gang is that of RUN.toml (runtime, placement, resources, fabric, environment); in place of its script each
    rank runs collectives over a sweep of sizes. Bandwidths are those of nccl-tests. With GPUs over NCCL, else over
    gloo. The table is in the log of rank 0; result.json and result.svg are the run's checkpoint.

    \b
    Example:
      argosy bench-comm run.toml -j 2x1
      argosy bench-comm run.toml -o bench.yaml && argo submit bench.yaml
      argosy checkpoint get s3://bucket/store/gpt-bench-comm/runs/WORKFLOW ./bench
    """
    words = _words(ops or tuple(FACTORS), min_bytes, max_bytes, factor, seconds)
    source = _described(file, ranks, words)
    if output is not None:
        write_yaml(source, output)
        place = f"{source.store_uri}/{source.run_name}/runs/WORKFLOW"
        where = [f"{name}={value}" for name, value in endpoint_of(source.document)]
        get = typed(*(["env", *where] if where else []), "argosy", "checkpoint", "get", place, "./bench")
        fetched = [] if source.store_uri.startswith("file:") else [(get, "then: the table and the plot")]
        next_commands([(typed("argo", "submit", output), "measure on a cluster"), *fetched], err=True)
        return 0
    check_gpus(source)
    check_state_dir(state_dir, source)
    return _run(source, state_dir, as_json)


def _words(ops: tuple[str, ...], low: int, high: int, factor: int, seconds: float) -> list[str]:
    for op in ops:
        if op not in FACTORS:
            raise InputError(f"--op {op!r}: unknown collective; there are {', '.join(FACTORS)}")
    if low < 1:
        raise InputError(f"--min-bytes {low}: no size of a message; write 1 or more")
    if high and high < low:
        raise InputError(f"--min-bytes {low} --max-bytes {high}: no sizes; write no smaller largest one")
    if max(low, high) > 1 << 36:
        raise InputError(f"--max-bytes {max(low, high)}: larger than 64 GiB, which no rank holds; write fewer")
    if factor < 2:
        raise InputError(f"--factor {factor}: sizes would not grow; write 2 or more")
    if not 1 <= seconds <= 86400:
        raise InputError(f"--seconds {seconds:g}: write 1 to 86400")
    every = [f"--op={op}" for op in ops]
    return [*every, f"--min-bytes={low}", f"--max-bytes={high}", f"--factor={factor}", f"--seconds={seconds:g}"]


def _described(file: Path, ranks: tuple[int, int] | None, words: list[str]) -> Source:
    from argosy.workflows.spec.load import load_run
    from argosy.workflows.spec.run import TrainingRun

    if not is_toml(file):
        raise InputError(f"RUN.toml {file}: the gang's description is wanted; name the run.toml it was compiled from")
    read_bytes(file)
    run = load_run(file)
    if run.gang.launcher != "torchrun":
        raise InputError(
            f"{file}: gang.launcher = {run.gang.launcher!r}: collectives of torch are measured under torchrun; "
            "leave the launcher out in a copy of the file"
        )
    run = run if ranks is None else with_ranks(run, *ranks)
    if (run.gang.nnodes, run.gang.nproc_per_node) == (1, 1):
        raise InputError(f"{file}: 1 node with 1 rank exchanges nothing; write -j 2x1 for 2 nodes with 1 rank")
    values = run.model_dump(exclude_unset=True)
    kept: dict[str, Any] = {name: values[name] for name in _KEPT if name in values}
    # What placeholders stand for is not there.
    kept["env"] = {name: value for name, value in kept.get("env", {}).items() if "{" not in value}
    kept["name"] = run.name[: _LONGEST_NAME - len(ENDING)].rstrip("-") + ENDING
    kept |= {"module": "argosy.steps.bench_comm", "args": words, "code": ""}
    kept["checkpoint"] = {"mode": "opaque", "path": "bench-comm", "include": ["result.*"], "marker": "result.json"}
    return compiled(TrainingRun(**kept), file)


def _run(source: Source, state_dir: Path, as_json: bool) -> int:
    from argosy.workflows.engine.api import RunOptions, run

    with Watch(PlainScreen(sys.stderr)) as watch:
        state = run(source.yaml, RunOptions(state_dir), lambda made: watch.found(RunFolder(made.run_dir, state_dir)))
    folder = RunFolder(state.run_dir, state_dir)
    if state.interrupted:
        return 128 + Signals[state.interrupted]
    if state.phase != "Succeeded":
        say(f"argosy: {folder.name} ended {state.phase}: {state.message}", err=True)
        next_commands([(typed("argosy", "explain", folder.name), "why")], err=True)
        return 1
    place = state.run_dir / "bench-comm"
    fetch(find_checkpoints(state_dir, folder.name), None, place)
    found = json.loads((place / "result.json").read_text())
    if as_json:
        emit({**found, "workflow": folder.name, "plot": str(place / "result.svg")})
        return 0
    click.echo(HEAD)
    for row in sorted((Row(**each) for each in found["rows"]), key=lambda row: [*FACTORS].index(row.op)):
        click.echo(line(row))
    where = f"{counted(found['ranks'], 'rank')} on {counted(found['nodes'], 'node')}, {found['backend']}"
    say(f"{where}; the plot: {place / 'result.svg'}")
    if found["stopped"]:
        say(f"argosy: {found['stopped']}", err=True)
    return 0
