"""``argosy explain-resume``: which checkpoint a resume takes, why, and what it skips."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import click

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.checkpoint.history import History
from argosy.steps.checkpoint.reader import CorruptCheckpoint
from argosy.steps.record.wording import count, duration, short, size
from argosy.workflows.cli.checkpoint.listing import facts
from argosy.workflows.cli.checkpoint.run import find_checkpoints
from argosy.workflows.cli.checkpoint.verify import progress
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", required=False, shell_complete=known_runs)
@as_json
@state_dir
def command(run: str | None, as_json: bool, state_dir: Path) -> None:
    """Explain which checkpoint a resume takes, why, and what it skips.

    RUN is a workflow name or run id of this machine, a run's folder, or its uri; without it, the run started last.
    In a store on this machine it hashes every byte of the checkpoint that it names, as a resume does, and goes on to
    the one before where one is wrong. From any other it fetches none: `argosy checkpoint verify` does. Nothing changes.

    \b
    Example:
      argosy explain-resume gpt-x7k2p
      argosy explain-resume s3://bucket/gpt/runs/gpt-x7k2p --json | jq .chosen.step
    """
    found = find_checkpoints(state_dir, run)
    here = found.store.store.uri.startswith("file:")
    told = _verified(found.store, shown=not as_json) if here else found.store.explain()
    if as_json:
        chosen = None if told.chosen is None else facts(told.chosen, told)
        skipped = [{**facts(commit, told), "why": why} for commit, why in told.skipped]
        emit({"run": found.name, "chosen": chosen, "why": told.why, "skipped": skipped})
        return
    for line in lines(told, time.time()):
        say(line)
    next_commands([(found.command("checkpoint list"), "every checkpoint and its state")])


def _verified(store: CheckpointStore, *, shown: bool) -> History:
    """The choice once the bytes are read, which is the choice of a resume."""
    damaged: dict[str, str] = {}
    told = store.explain()
    while (chosen := told.chosen) is not None and chosen.checkpoint is not None:
        try:
            with progress(chosen.bytes, shown=shown) as advance:
                store.reader.verify(chosen.checkpoint, advance)
        except CorruptCheckpoint as error:
            damaged[chosen.digest] = f"{error.shard}: {error.why}"
            told = told.without(damaged)
        else:
            return replace(told, why="the newest commit that is neither set aside nor damaged, by a hash of every byte")
    return told


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
