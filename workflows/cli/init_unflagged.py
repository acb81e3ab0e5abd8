"""What makes a script go on where no flag does, as ``argosy init`` has it: itself, its settings, or lines to write."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from argosy.workflows.cli.init_account import account, words_of
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag

OURS = "argosy.pt"
"""So is the file called of the lines that make a script go on."""
LAST = re.compile(
    r"(((checkpoint|ckpt|model)[-_])?(last|latest|current)|checkpoint|ckpt)([-_]?(checkpoint|ckpt|model))?\.\w+(\.tar)?"
)
"""So is the file called, among others that are numbered or the best, that each save writes anew."""


class Way(NamedTuple):
    """The words that make a script go on, and why these, or none."""

    words: list[str]
    why: str
    lines: bool = False
    """Whether the lines follow that make its own loop go on."""


def by_script(facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> Way:
    """Where no flag makes it go on: what it does by itself, what its settings say, or the lines to write."""
    if facts.init_from is not None:
        return Way(["--init_from=resume"], f"{facts.init_from} compares init_from with 'resume'")
    if facts.loads:
        return Way([], f"{facts.loads} looks for it and goes on by itself")
    if facts.of_model is not None:
        return _of_model(facts, *facts.of_model, folder, patterns)
    why = "no --resume flag, and nothing that looks for the files, was seen: every restart may begin anew"
    if facts.may_go_on:
        named = "; ".join(facts.may_go_on)
        why = f"by its name {named} may make it go on, which was not seen: if it does, name it with --resume-arg"
    if facts.loop is not None and facts.trainer is None:
        return Way([], why, lines=True)
    told = f". {account(facts)}" if facts.seen_loads else ""
    return Way([], f"{why}{'' if facts.may_go_on else '; name what makes the script go on with --resume-arg'}{told}")


def lines_of(facts: ScriptFacts, folder: str) -> str:
    """What to write for it to go on, around its own loop; "" where none is known."""
    if facts.loop is None or facts.trainer is not None:
        return ""
    lines = facts.loop.lines(str(Path(folder, OURS)), facts.end)
    return f". For it to go on write, and call argosy init again:\n{lines}"


def _of_model(facts: ScriptFacts, flag: Flag, where: str, folder: str, patterns: Sequence[str]) -> Way:
    """Of a flag with the path of a model that the script begins with."""
    checkpoint = f"{folder}/{patterns[0] if patterns else '*'}"
    numbered = [each for each in patterns if "*" in Path(each).name]
    path = str(Path(checkpoint)) if "*" not in checkpoint and len(patterns) == 1 else "{newest}"
    if len(patterns) > 1 and len(numbered) == 1:
        path = f"{{newest:{numbered[0]}}}"
    words = words_of(flag.name, path)
    if len(numbered) > 1:
        words = []
    say = " ".join(f"--resume-arg={shlex.quote(word)}" for word in words)
    why = f"{where} loads what {flag.name} names, but no optimizer's state: a restart begins anew"
    newest = f"; with {say} it begins with the newest model" if words else ""
    return Way([], f"{why}{newest}", lines=True)
