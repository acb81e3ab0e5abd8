"""The script once more, read as a restart calls it: what it reads then has to be there, and to be what was saved."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from argosy.workflows.cli.init_account import STEP
from argosy.workflows.cli.init_resume import TO_WRITE
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.places import fixed

Read = Callable[[tuple[str, ...]], ScriptFacts]
UNSEEN = "; called so, nothing was seen that reads what it saved: see it go on once (--inject, below)"


def as_restarted(
    facts: ScriptFacts, read: Read, words: list[str], why: str, folder: str, patterns: Sequence[str]
) -> tuple[list[str], str, dict[str, str]]:
    """The words of a restart, and why, with a doubt where nothing reads what was saved; and what to keep beside it.

    Words for which there is no why are the user's own, who knows.
    """
    again = read(filled(words, folder, patterns)) if words else facts
    for value in (folder, STEP) if why and len(words) > 1 else ():
        # What the flag names may be the folder, or a number.
        tried = [*words[:-1], value]
        if _reads_it(again, folder, patterns) or value in words:
            break
        if _reads_it(other := read(filled(tried, folder, patterns)), folder, patterns):
            words, again, why = tried, other, f"so called, the script was seen to read what it saved in {folder}"
    more = _kept_too(facts, again, folder, patterns)
    if more and len(patterns) == 1:  # what lies beside it may be newer
        of_them = f"{{newest:{patterns[0]}}}"
        words, why = [each.replace("{newest}", of_them) for each in words], why.replace("{newest}", of_them)
    endings = {PurePosixPath(each).suffix for each in patterns}
    copies = [name for name in more if PurePosixPath(name).suffix in endings]  # last.pt, of another that was saved
    seen = not words or again.loads or copies or _reads_it(again, folder, patterns)
    doubt = ("" if seen else UNSEEN) + _lost(facts, again, folder) + _unwritten(facts, more, folder)
    if why and doubt:
        first, lines, rest = why.partition(TO_WRITE)
        why = f"{first}{doubt}{lines}{rest}"
    return words, why, more


def filled(words: Sequence[str], folder: str, patterns: Sequence[str]) -> tuple[str, ...]:
    """The words with a checkpoint that may be."""
    usual = (patterns or ["*"])[0]
    whole = os.path.join(folder, usual) if len(patterns) == 1 and "*" not in usual else folder

    def one(word: str) -> str:
        word = re.sub(r"\{newest:?([^}]*)\}", lambda found: os.path.join(folder, _one(found[1] or usual)), word)
        return re.sub(r"\{step:?[^}]*\}", "1", word).replace("{path}", whole)

    return (*map(one, words),)


def _kept_too(first: ScriptFacts, again: ScriptFacts, folder: str, patterns: Sequence[str]) -> dict[str, str]:
    """The files beside the checkpoints that a restart reads, by their names below ``folder``, and where it does: those
    that a run writes, and those that its first start does not read.
    """
    near = {str(PurePosixPath(each.folder, each.pattern).parent) for each in fixed(first.saves)}
    known, writes = first.opened
    found = dict[str, str]()
    for path, where in sorted(again.opened[0].items()):
        written = next((each for each in sorted(writes) if fnmatchcase(path, each)), "" if path in known else path)
        # Of what is written under several names, the one that is read.
        name = os.path.relpath(os.path.join(os.path.dirname(written or folder), os.path.basename(path)), folder)
        plain = PurePosixPath(name).suffix and "*" not in PurePosixPath(name).name and not name.startswith("../")
        if written and plain and str(PurePosixPath(written).parent) in near and not _is_of(name, patterns):
            found[name] = where
    return found


def _lost(first: ScriptFacts, again: ScriptFacts, folder: str) -> str:
    """What a restart reads that only the first start writes, outside ``folder``."""
    once = first.opened[1] - again.opened[1]
    return "".join(f"; {where} reads {path}, which the first start writes, and which is not kept: name a folder "
                   "above both with --opaque" for path, where in sorted(again.opened[0].items())
                   if path in once and os.path.relpath(path, folder).startswith("../"))  # fmt: skip


def _unwritten(first: ScriptFacts, kept: Mapping[str, str], folder: str) -> str:
    """What a restart reads there, and nothing that was seen writes; a library may."""
    writes = [*first.opened[1], *(os.path.join(each.folder, each.pattern) for each in fixed(first.saves))]
    paths = {os.path.normpath(os.path.join(folder, name)): where for name, where in kept.items()}
    return "".join(f"; {where} reads {path}, which nothing was seen to write: without it a restart ends there"
                   for path, where in paths.items()
                   if not any(fnmatchcase(path, each) for each in writes) and not os.path.exists(path))  # fmt: skip


def _reads_it(again: ScriptFacts, folder: str, patterns: Sequence[str]) -> bool:
    """Whether a restart was seen to read a file of a checkpoint, or its folder."""
    return any(_is_of(os.path.relpath(path, folder), [*patterns, *map(_one, patterns)]) for path in again.opened[0])


def _one(pattern: str) -> str:
    """What may be called so; for the files of a folder the folder."""
    return pattern.partition("/**/")[0].replace("[0-9]", "").replace("*", "1")


def _is_of(name: str, patterns: Sequence[str]) -> bool:
    deep = (each for each in patterns if "**" in each or each.count("/") == name.count("/"))
    return not patterns or any(fnmatchcase(name, each.replace("/**/", "/")) for each in deep)
