"""What verbs print: one JSON object, or lines and the exact next commands."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

import click


def emit(record: dict[str, Any]) -> None:
    """The one object of ``--json``, on standard output."""
    click.echo(json.dumps(record, indent=2, default=str))


def next_commands(commands: Sequence[tuple[str, str]], *, err: bool = False) -> None:
    """Commands as they can be typed, each with what it is good for."""
    if not commands:
        return
    width = max(len(command) for command, _ in commands)
    click.echo("\nNext:", err=err)
    for command, purpose in commands:
        click.echo(f"  {command:<{width}}   # {purpose}", err=err)


def typed(*parts: object) -> str:
    """A command line that a shell reads back as these parts."""
    return shlex.join(str(part) for part in parts)
