"""``argosy checkpoint pin`` and ``unpin``."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.record.wording import short
from argosy.workflows.cli.checkpoint.run import CheckpointedRun, choose, find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", metavar="[RUN]", nargs=-1, shell_complete=known_runs)
@click.argument("checkpoint")
@click.option("--reason", default="", help="Why; shown by list. [default: what an earlier pin said, or kept by hand]")
@as_json
@state_dir
def pin(run: tuple[str, ...], checkpoint: str, reason: str, as_json: bool, state_dir: Path) -> None:
    """Keep a checkpoint until it is unpinned.

    No prune removes it; the run may be training.

    \b
    Example:
      argosy checkpoint pin gpt-x7k2p 4000 --reason "table 2"
      argosy checkpoint pin s3://bucket/gpt/runs/gpt-x7k2p c8a91f
    """
    found = _named(state_dir, run, checkpoint)
    chosen = choose(found.store.explain().commits, checkpoint)
    reason = reason or found.store.pinned().get(chosen.digest, "kept by hand")
    found.store.pin(chosen.digest, reason)
    if as_json:
        emit({"run": found.name, "digest": chosen.digest, "step": chosen.step, "pinned": reason})
        return
    say(f"pinned {short(chosen.digest)} of step {chosen.step} of {found.name}: {reason}")
    next_commands([(found.command("checkpoint unpin", short(chosen.digest)), "let pruning remove it again")])


@click.command()
@click.argument("run", metavar="[RUN]", nargs=-1, shell_complete=known_runs)
@click.argument("checkpoint")
@as_json
@state_dir
def unpin(run: tuple[str, ...], checkpoint: str, as_json: bool, state_dir: Path) -> None:
    """Let pruning remove a pinned checkpoint again.

    \b
    Example:
      argosy checkpoint unpin gpt-x7k2p 4000
    """
    found = _named(state_dir, run, checkpoint)
    chosen = choose(found.store.explain().commits, checkpoint)
    if chosen.pinned is None:
        raise InputError(f"CHECKPOINT {checkpoint!r}: is not pinned; see: {found.command('checkpoint list')}")
    found.store.unpin(chosen.digest)
    if as_json:
        emit({"run": found.name, "digest": chosen.digest, "step": chosen.step, "pinned": None})
        return
    say(f"unpinned {short(chosen.digest)} of step {chosen.step} of {found.name}; the next prune may remove it")


def _named(state_dir: Path, run: tuple[str, ...], checkpoint: str) -> CheckpointedRun:
    if len(run) > 1:
        raise InputError(f"CHECKPOINT {checkpoint!r}: write [RUN] CHECKPOINT, not {len(run) + 1} words")
    return find_checkpoints(state_dir, run[0] if run else None)
