"""``argosy checkpoint list``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from argosy.steps.checkpoint.history import Commit, History
from argosy.steps.record.wording import count, duration, short, size
from argosy.workflows.cli.checkpoint.run import find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", required=False, shell_complete=known_runs)
@click.option("--all", "everything", is_flag=True, help="Also those that were pruned: their bytes are gone.")
@as_json
@state_dir
def command(run: str | None, everything: bool, as_json: bool, state_dir: Path) -> None:
    """List the checkpoints of a run, newest first.

    \b
    Example:
      argosy checkpoint list
      argosy checkpoint list s3://bucket/gpt/runs/gpt-x7k2p --json | jq '.checkpoints[0].digest'
    """
    found = find_checkpoints(state_dir, run)
    told = found.store.explain()
    shown = [commit for commit in told.commits if everything or commit.state != "pruned"]
    if as_json:
        emit({"run": found.name, "checkpoints": [facts(commit, told) for commit in shown]})
        return
    if not shown:
        click.echo(f"{found.name}: no checkpoint; {told.why}")
        return
    for line in _table(shown, told, time.time()):
        say(line)
    ways = [(found.command("explain-resume"), "which one a resume takes, and why")]
    next_commands([*ways, (found.command("checkpoint verify"), "read and hash every byte")])


def facts(commit: Commit, told: History) -> dict[str, Any]:
    """A commit as ``--json`` shows it; sizes in bytes, times in seconds since 1970."""
    return {
        "step": commit.step,
        "digest": commit.digest,
        "bytes": commit.bytes,
        "created": commit.created,
        "generation": commit.generation,
        "seq": commit.seq,
        "state": commit.state,
        "reason": commit.reason,
        "final": commit.final,
        "pinned": commit.pinned,
        "newest": told.chosen is not None and commit.digest == told.chosen.digest,
    }


def state(commit: Commit, told: History) -> str:
    """In words: ``newest, final``, ``set aside: reason``, ``pinned: reason``."""
    words = ["newest"] if told.chosen is not None and commit.digest == told.chosen.digest else []
    words += ["final"] if commit.final else []
    words += [f"pinned: {commit.pinned}"] if commit.pinned is not None else []
    words += [f"{commit.state}: {commit.reason}" if commit.reason else commit.state] if commit.state != "live" else []
    return ", ".join(words)


def _table(shown: list[Commit], told: History, now: float) -> list[str]:
    rows = [("step", "digest", "size", "age", "generation", "state")]
    for commit in shown:
        age = duration(max(0.0, now - commit.created))
        what = state(commit, told)
        rows.append((str(commit.step), short(commit.digest), size(commit.bytes), age, str(commit.generation), what))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = []
    for step, digest, held, age, generation, what in rows:
        cells = (
            f"{step:>{widths[0]}}",
            f"{digest:<{widths[1]}}",
            f"{held:>{widths[2]}}",
            f"{age:>{widths[3]}}",
            f"{generation:>{widths[4]}}",
            what,
        )
        lines.append("  ".join(cells).rstrip())
    kept = sum(each.bytes for each in shown if each.state != "pruned")
    gone = sum(each.state == "pruned" for each in shown)
    pruned = f", {gone} of them gone" if gone else ""
    return [*lines, f"{count(len(shown), 'checkpoint')}{pruned}, {size(kept)}"]
