"""What makes a script go on where no flag does, as ``argosy init`` has it: itself, its settings, or lines to write."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from argosy.workflows.cli.init_account import account, words_of
from argosy.workflows.script.asked import Asked, key_named
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.places import fixed

OURS = "argosy.pt"
"""So is the file called of the lines that make a script go on."""
LAST = re.compile(
    r"(((checkpoint|ckpt|model)[-_])?(last|latest|current)|checkpoint|ckpt)([-_]?(checkpoint|ckpt|model))?\.\w+(\.tar)?"
)
"""So is the file called, among others that are numbered or the best, that each save writes anew."""
MAYBE = re.compile(r"^(resume|restore|restart|continue|reload|load)(_from)?(_checkpoint|_ckpt|_path|_model)?$")
"""So is a flag called of which it was not seen what the script does with it."""


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
    if facts.asked_for is not None:
        return _asked_for(facts, facts.asked_for, folder, patterns)
    if facts.of_model is not None:
        return _of_model(facts, *facts.of_model, folder, patterns)
    maybe = next((each for each in facts.flags if each.takes_value and MAYBE.search(each.attribute)), None)
    if maybe is not None and facts.trainer is None:
        why = f"{maybe.where} declares {maybe.name}; if the script goes on with it, name it with --resume-arg"
        return Way([], why, lines=True)
    why = "no --resume flag, and nothing that looks for the files, was seen: every restart may begin anew"
    if facts.loop is not None and facts.trainer is None:
        return Way([], why, lines=True)
    told = f". {account(facts)}" if facts.seen_loads else ""
    return Way([], f"{why}; name what makes the script go on with --resume-arg{told}")


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


def _asked_for(facts: ScriptFacts, asked: Asked, folder: str, patterns: Sequence[str]) -> Way:
    """Of a setting that no flag gives: the words that set it, or where to write what it goes on from."""
    glob = patterns[0] if len(patterns) == 1 else ""
    states = {*patterns} <= {each.pattern for each in fixed(facts.saves) if each.whole and each.folder == folder}
    if asked.words and (glob or states):
        told = "{newest}" if states or len(patterns) == 1 else f"{{newest:{glob}}}"
        why = f"{asked.where} goes on from what {asked.text} names, which words of the command line set"
        return Way(_joined(asked.words, told), why)
    key = key_named(asked.name, asked.text, facts.keys)
    file = facts.keys.get(key, "")
    named = f"{key} of {file}" if file else asked.name
    why = f"{asked.where} goes on from what {named} names, which no flag was seen to give"
    if word := facts.newest.get(asked.name):
        return Way([], f"{why}; {'' if file else 'where its settings hold it, '}write {word} there for a resume")
    if asked.also:
        also = (
            f"and loads what {' and '.join(asked.also)} name, too: a restart begins anew unless each names its newest"
        )
        return Way([], f"{why}, {also} file{f' and {asked.switch} is True' if asked.switch else ''}", lines=True)
    path = str(Path(folder, glob or (patterns[0] if patterns else "*")))
    return Way(
        [],
        f"{why}. For it to be the newest write before {asked.where} (with import glob, os), and call argosy init "
        f"again:\n        found = sorted(glob.glob({path!r}), key=os.path.getmtime)\n        if found:\n"
        f"            {asked.text} = found[-1]"
        f"{f'{chr(10)}            {asked.switch} = True' if asked.switch else ''}",
    )


def _joined(words: Sequence[str], value: str) -> list[str]:
    """``--options key=value``, and ``key value``; a ``=`` in a path says something to Hydra if it is not quoted."""
    value = f"'{value}'" if words[-1].startswith("++") else value
    return [*words[:-1], words[-1] + value] if words[-1].endswith("=") else [*words, value]
