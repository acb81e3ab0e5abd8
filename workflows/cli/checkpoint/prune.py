"""``argosy checkpoint prune``."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.record.wording import count, short, size
from argosy.workflows.cli.checkpoint.run import find_checkpoints
from argosy.workflows.cli.options import as_json, known_runs, state_dir
from argosy.workflows.cli.output import emit, next_commands, say


@click.command()
@click.argument("run", required=False, shell_complete=known_runs)
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    help="How many of the newest complete ones stay, beside pinned ones (required).",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@as_json
@state_dir
def command(run: str | None, keep: int | None, dry_run: bool, as_json: bool, state_dir: Path) -> None:
    """Remove old checkpoints and what failed saves left.

    The newest stay, and every one that is final, pinned or set aside. Pruning claims the run, which would end a
    training that still writes to it: a run that gives signs of life is refused. A script that saves there without
    argosy's supervisor gives none between its saves; stop it first.

    \b
    Example:
      argosy checkpoint prune gpt-x7k2p --keep 3 --dry-run
      argosy checkpoint prune s3://bucket/gpt/runs/gpt-x7k2p --keep 1
    """
    found = find_checkpoints(state_dir, run)
    if keep is None:
        example = found.command("checkpoint prune", "--keep", 3, "--dry-run")
        raise InputError(f"--keep: how many of the newest stay is not given; as in: {example}")
    told = {commit.digest: commit for commit in found.store.explain().commits}
    if dry_run:
        gone = [entry.digest for entry in found.store.superfluous(keep)]
    else:
        if alive := found.sign_of_life():
            rule = "pruning would take the run away from its training"
            remedy = "stop it first, or let the training prune ([checkpoint] keep)"
            raise InputError(f"RUN {found.name!r}: {alive}, and {rule}; {remedy}; --dry-run works at any time")
        gone = found.store.prune(keep, found.store.claim(f"argosy checkpoint prune by {_who()}"))
    freed = sum(told[digest].bytes for digest in gone)
    if as_json:
        pruned = [{"digest": digest, "step": told[digest].step} for digest in gone]
        emit({"run": found.name, "dry_run": dry_run, "keep": keep, "pruned": pruned, "bytes": freed})
        return
    for digest in gone:
        say(f"{'would prune' if dry_run else 'pruned'} {short(digest)} of step {told[digest].step}")
    say(f"{count(len(gone), 'checkpoint')}, {size(freed)}{' would go' if dry_run else ' freed'}")
    next_commands([(found.command("checkpoint list"), "what is there")])


def _who() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return socket.gethostname()
