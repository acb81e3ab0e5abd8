"""``argosy checkpoint verify``: read and hash every byte."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from argosy.steps.checkpoint.history import Commit
from argosy.steps.checkpoint.reader import CorruptCheckpoint
from argosy.steps.record.wording import count, duration, short, size
from argosy.workflows.cli.checkpoint.run import CheckpointedRun, choose, find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", required=False, metavar="[RUN", shell_complete=known_runs)
@click.argument("checkpoint", nargs=-1, metavar="[CHECKPOINT]...]")
@as_json
@state_dir
def command(run: str | None, checkpoint: tuple[str, ...], as_json: bool, state_dir: Path) -> int:
    """Read every byte and compare it with what was committed.

    Without CHECKPOINT all that are live. Exit code 0: all are whole; 1: at least one is corrupt. Nothing is changed:
    a resume finds damage by itself, sets the checkpoint aside and takes the one before.

    \b
    Example:
      argosy checkpoint verify gpt-x7k2p
      argosy checkpoint verify s3://bucket/gpt/runs/gpt-x7k2p 4000 c8a91f
    """
    found = find_checkpoints(state_dir, run)
    commits = found.store.explain().commits
    chosen = [choose(commits, text) for text in checkpoint]
    chosen = chosen or [commit for commit in commits if commit.state in ("live", "incomplete")]
    began = time.monotonic()
    with progress(sum(commit.bytes for commit in chosen), shown=not as_json) as advance:
        results = [_verified(found, commit, advance) for commit in chosen]
    seconds = time.monotonic() - began
    done = sum(result["bytes"] for result in results if result["ok"])
    corrupt = [result for result in results if not result["ok"]]
    if as_json:
        facts = {"bytes": done, "seconds": round(seconds, 3), "bytes_per_second": round(done / max(seconds, 1e-9))}
        emit({"run": found.name, "checkpoints": results, "corrupt": len(corrupt), **facts})
        return 1 if corrupt else 0
    for result in results:
        what = "whole" if result["ok"] else f"corrupt: {result['why']}"
        say(f"step {result['step']}  {short(result['digest'])}  {size(result['bytes'])}  {what}")
    rate = f"{size(done)} in {duration(seconds)}, {size(done / max(seconds, 1e-9))}/s"
    say(f"{count(len(results) - len(corrupt), 'checkpoint')} whole ({rate}), {len(corrupt)} corrupt")
    next_commands([(found.command("explain-resume"), "which one a resume takes, and why")])
    return 1 if corrupt else 0


def _verified(found: CheckpointedRun, commit: Commit, advance: Callable[[int], None]) -> dict[str, Any]:
    result = {"step": commit.step, "digest": commit.digest, "bytes": commit.bytes, "ok": True, "why": ""}
    if commit.checkpoint is None:
        return {**result, "ok": False, "why": commit.reason}
    try:
        found.store.reader.verify(commit.checkpoint, advance)
    except CorruptCheckpoint as error:
        return {**result, "ok": False, "why": f"{error.shard}: {error.why}"}
    return result


@contextlib.contextmanager
def progress(total: int, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """A bar with bytes and rate on a terminal; elsewhere nothing."""
    if not shown or not sys.stderr.isatty():
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda count: progress.advance(task, count)
