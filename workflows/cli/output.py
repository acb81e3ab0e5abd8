"""What verbs print: one JSON object, or lines and the exact next commands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

import click

_COLOURS = re.compile(r"\x1b\[[0-9;:]*m")
_TERMINAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""What a terminal obeys instead of showing it, and what turns the direction of writing round; tab and newline stay."""


def harmless(text: str) -> str:
    """Text that others wrote (a rank, a script, an event), as a terminal may be given it.

    Colours are left out; every other control character is shown as ``\\x1b``.
    """
    return _TERMINAL.sub(lambda found: ascii(found[0])[1:-1], _COLOURS.sub("", text))


def say(text: str, *, err: bool = False) -> None:
    """Print text that may hold what others wrote."""
    click.echo(harmless(text), err=err)


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
