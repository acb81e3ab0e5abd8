"""``argosy checkpoint``: list, get, verify, pin, unpin, prune."""

from __future__ import annotations

import click

from argosy.workflows.cli.checkpoint import get, listing, pinning, prune, verify


@click.group(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List, fetch, verify, pin and prune the checkpoints of a run.

    RUN is a workflow name or run id of this machine, a run's folder, or its uri; CHECKPOINT is a step, or at least 6
    digits of a digest.

    \b
    Example:
      argosy checkpoint list
      argosy checkpoint get gpt-x7k2p model/
      argosy checkpoint list s3://bucket/gpt/runs/gpt-x7k2p
      argosy checkpoint pin gpt-x7k2p 4000 --reason "table 2"
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


command.add_command(listing.command, "list")
command.add_command(get.command, "get")
command.add_command(verify.command, "verify")
command.add_command(pinning.pin, "pin")
command.add_command(pinning.unpin, "unpin")
command.add_command(prune.command, "prune")
