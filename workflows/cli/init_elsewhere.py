"""The words with which a script saves below the folder that it runs in, where as it is called it does not."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from argosy.workflows.cli.init_checkpoint import places
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.given import shortened
from argosy.workflows.script.hints import FOLDER
from argosy.workflows.script.settings import RUN_DIR
from argosy.workflows.script.values import OUTSIDE

OUT = "out"
MOST = 4
"""So many are tried: each has all of the script read again."""


def words_inside(facts: ScriptFacts, read: Callable[[tuple[str, ...]], ScriptFacts]) -> tuple[str, ...]:
    """The first that were seen to do it; () for none. ``read``: the script with words behind its own."""
    if _is_inside(facts):
        return ()
    tried = list(dict.fromkeys(_candidates(facts)))[:MOST]
    return next((words for words in tried if _is_inside(read(words))), ())


def with_words(refused: str, script: str, given: Sequence[str], words: Sequence[str]) -> str:
    """A refusal with the whole command that has these words behind those that were given; none are known: as it is."""
    if not words:
        return refused
    whole = shlex.join(("argosy", "init", script, "--", *given, *words))
    asked = re.compile(rf"`argosy init \S+ -- {re.escape(words[0])} ?(VALUE|out/model\.pt)`")
    if asked.search(refused):
        return asked.sub(lambda _: f"`{whole}`", refused)
    return f"{refused}; with {' '.join(words)} it saves below that one: `{whole}`"


def left_behind(modules: Sequence[Path], folder: Path) -> list[tuple[str, str]]:
    """The first module that lies, or is a link to one, outside the folder that travels, and how it comes along."""
    for each in (path.resolve() for path in modules if not path.resolve().is_relative_to(folder)):
        whole = os.path.commonpath([each, folder])
        why = "the script imports it, and only the folder of run.toml travels: copy it there, install it where it runs"
        return [(os.path.relpath(each, folder), f"{why}, or call argosy init in {whole}")]
    return []


def among(flag: Flag, args: tuple[str, ...], flags: Sequence[Flag] = ()) -> bool:
    """Whether the arguments give the flag, also where argparse takes the first letters of its name."""
    words = [word.partition("=")[0] for word in args]
    return any(word in (flag.name, *flag.aliases) or flag.name in shortened(word, flags) for word in words)


def _is_inside(facts: ScriptFacts) -> bool:
    if facts.trainer is None:
        return bool(places(facts))
    return facts.trainer.folder is not None and not facts.trainer.folder.startswith(OUTSIDE)


def _candidates(facts: ScriptFacts) -> Iterator[tuple[str, ...]]:
    for flag in facts.flags:
        said = [flag.default, *(getattr(each, "value", "") for each in ast.walk(flag.node or ast.Pass()))]
        begins = tuple(each.rstrip("/") for each in said if isinstance(each, str) and len(each) > 1)
        if flag.takes_value and any(each.folder.startswith(begins) for each in facts.saves if begins):
            yield flag.name, OUT
    for flag in facts.flags:
        if flag.takes_value and FOLDER.search(flag.attribute):
            yield (f"{flag.name}{OUT}",) if flag.name.endswith("=") else (flag.name, OUT)
    hydra = any(flag.name == f"{RUN_DIR}=" for flag in facts.flags)
    for key, _ in facts.written.values() if hydra else ():
        if FOLDER.search(key):
            yield (f"{key}={OUT}",)
    for key in facts.keys:
        if FOLDER.search(key) and key.isupper():
            yield key, OUT
