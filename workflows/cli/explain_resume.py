"""``argosy explain-resume``: which checkpoint a resume takes, why, and what it skips."""

from __future__ import annotations

import time
from pathlib import Path

import click

from argosy.steps.checkpoint.history import History
from argosy.steps.record.wording import count, duration, short, size
from argosy.workflows.cli.checkpoint.listing import facts
from argosy.workflows.cli.checkpoint.run import find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", required=False, shell_complete=known_runs)
@as_json
@state_dir
def command(run: str | None, as_json: bool, state_dir: Path) -> None:
    """Explain which checkpoint a resume takes, why, and what it skips.

    RUN is a workflow name or run id of this machine, a run's folder, or its uri; without it, the run started last.
    Shards are not read here; a resume hashes each byte that it loads, and falls back when one is wrong.

    \b
    Example:
      argosy explain-resume gpt-x7k2p
      argosy explain-resume s3://bucket/gpt/runs/gpt-x7k2p --json | jq .chosen.step
    """
    found = find_checkpoints(state_dir, run)
    told = found.store.explain()
    if as_json:
        chosen = None if told.chosen is None else facts(told.chosen, told)
        skipped = [{**facts(commit, told), "why": why} for commit, why in told.skipped]
        emit({"run": found.name, "chosen": chosen, "why": told.why, "skipped": skipped})
        return
    for line in lines(told, time.time()):
        say(line)
    next_commands([(found.command("checkpoint list"), "every checkpoint and its state")])


def lines(told: History, now: float) -> list[str]:
    """The explanation as lines of text; ``now`` in seconds since 1970."""
    if told.chosen is None:
        text = [f"A resume begins from scratch: {told.why}."]
    else:
        chosen = told.chosen
        age = duration(max(0.0, now - chosen.created))
        text = [f"A resume takes step {chosen.step}, {short(chosen.digest)} ({size(chosen.bytes)}, {age} old)."]
        text.append(f"  Why: {told.why}.")
    if told.skipped:
        text.append(f"  Skipped, newest first ({count(len(told.skipped), 'checkpoint')}):")
    text += [f"    step {commit.step}, {short(commit.digest)}: {why}" for commit, why in told.skipped]
    gone = sum(commit.state == "pruned" for commit in told.commits)
    if gone:
        text.append(f"  Pruned before: {count(gone, 'checkpoint')}.")
    return text
