"""``argosy explain-config``."""

from __future__ import annotations

import click

from argosy.workflows.cli.options import as_json
from argosy.workflows.cli.output import emit, next_commands


@click.command()
@click.argument("field", required=False, default="")
@as_json
def command(field: str, as_json: bool) -> None:
    """Explain a field of run.toml: what it does, its unit, default and rule. Without FIELD: the top level.

    \b
    Example:
      argosy explain-config gang.nnodes
      argosy explain-config retry
      argosy explain-config fabric.aws-efa
    """
    from argosy.workflows.spec.explain import explain_field

    text = explain_field(field)
    if as_json:
        emit({"field": field, "text": text})
        return
    click.echo(text)
    next_commands(
        [("argosy init train.py", "write a run.toml for a script"), ("argosy compile run.toml", "see the YAML")]
    )
