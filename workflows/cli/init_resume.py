"""What makes a script go on, as ``argosy init`` writes it into ``resume_args``, or why nothing stands there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from argosy.workflows.cli.init_account import STEP, account, stands_for, words_of
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.globs import only_numbered
from argosy.workflows.script.places import fixed
from argosy.workflows.script.resuming import COUNTS, NUMBERED, STATE
from argosy.workflows.script.trainer import TrainerFacts

OURS = "argosy.pt"
"""So is the file called of the lines that make a script go on."""
TO_WRITE = ". For it to go on write"
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


def resume(facts: ScriptFacts, given: tuple[str, ...], folder: str, patterns: Sequence[str]) -> tuple[list[str], str]:
    """The arguments, and why."""
    if given:
        return list(given), ""
    words, why, wanted = _words(facts, folder, patterns)
    words, why = _beside(facts, words, why, patterns)
    goes_on = bool(words or facts.loads)
    bare = goes_on and facts.not_loaded
    counts_on = facts.not_loaded == STATE or (facts.counting is not None and not facts.counting.anew)
    if facts.at_end and not goes_on:
        why = f"{facts.at_end} saves only when its loop has ended; {why}"
    elif facts.at_end:
        why += f"; but {facts.at_end} saves only when its loop has ended: what is killed before begins anew"
        wanted = True
    elif goes_on and not bare and facts.trainer is None and (loop := facts.counting) is not None and loop.anew:
        why += f"; but {loop.where} counts from {loop.first} whatever was loaded: a restart takes all turns"
        why += f" again, unless {loop.counter} is saved and loaded, too"
    if bare and not facts.at_end:
        why += f"; but nothing seen loads {STATE}"
        why += ", which begins anew" if counts_on else " or a step: a restart begins anew with that model"
        wanted = True
    return words, f"{why}{_lines_of(facts, folder) if wanted else ''}"


def _beside(facts: ScriptFacts, words: list[str], why: str, patterns: Sequence[str]) -> tuple[list[str], str]:
    """The same with what else has to be given, as far as that is seen."""
    flags = [each for each in (facts.resume_flag(), *(facts.of_model or ())[:1]) if isinstance(each, Flag)]
    for where, other in (facts.needs[each.attribute] for each in flags if each.attribute in facts.needs):
        if other.name not in words:
            why += f"; {where} ends it without {other.name}: give that, too"
    if facts.begins_at is None or not flags or facts.trainer is not None or facts.loads:
        return words, why
    where, flag, numbered = facts.begins_at
    if flag in flags or flag.name in words:
        return words, why
    if words and numbered and all(each.count("*") < 2 for each in patterns):  # else which number would it be?
        why += f"; {where} begins at {flag.name}, whatever was loaded: {STEP} stands for the number in the file's name"
        return [*words, *words_of(flag.name, STEP)], why
    return words, f"{why}; {where} begins at {flag.name}, whatever was loaded: give that, too"


def _words(facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> Way:
    """What makes the script go on, and why."""
    if facts.trainer is not None and facts.trainer.resumes == "itself" and facts.trainer.resume_args:
        return Way(
            list(facts.trainer.resume_args), f"{facts.trainer.library} goes on from the folder that it is told of"
        )
    flag = facts.resume_flag()
    other = facts.restored_by
    switch = flag is not None and not flag.takes_value
    counts = (each for each in facts.flags if each.takes_value and NUMBERED.search(each.attribute))
    # What it loads as the flags are needs no number where it is saved under a name of its own.
    saved = {str(Path(each.folder, each.pattern)) for each in facts.saves if "*" not in each.pattern}
    itself = any(flag in each.flags and str(Path(each.glob)) in saved for each in facts.seen_loads)
    if flag is not None and switch and not itself and (counted := next(counts, None)) is not None:
        why = (
            f"{flag.where} declares {flag.name}, and {counted.where} {counted.name}, which numbers what it goes on from"
        )
        return Way([flag.name, *words_of(counted.name, STEP)], why)
    if facts.loads and switch and other is not None and other != flag:
        return Way([], f"{facts.loads} looks for it and goes on by itself")
    if flag is not None and switch and other is not None and other != flag:
        # The switch only says how far to go on from what the other flag names.
        path, why, _ = _told(facts, other, folder, patterns)
        return Way([flag.name, *path] if path else [], f"{flag.where} declares {flag.name}; {why}")
    return _told(facts, flag, folder, patterns)


def _told(facts: ScriptFacts, flag: Flag | None, folder: str, patterns: Sequence[str]) -> Way:
    """What the flag, or else the script's library, is given; or why nothing is."""
    if flag is not None:
        if not flag.takes_value:
            return Way([flag.name], f"{flag.where} declares {flag.name}")
        told = _of_several(facts, flag, folder, patterns) or _valued(facts, flag, folder, patterns)
        return _in_folder(told, facts, flag, patterns)
    if facts.trainer is not None and (found := _by_library(facts, facts.trainer)) is not None:
        return found
    return _by_script(facts, folder, patterns)


def _in_folder(told: Way, facts: ScriptFacts, flag: Flag, patterns: Sequence[str]) -> Way:
    """The same where the script puts a folder, as "out/", before the path that a flag is given, or something behind."""
    ending = facts.endings.get(flag.attribute, "")
    anew = (each.pattern for each in facts.saves if ending[:1] == "." and each.pattern.endswith(ending))
    if last := next(filter(LAST.fullmatch, anew), ""):
        why = f"the script puts {ending} behind it, and writes {last} anew with each save"
        return Way(words_of(flag.name, last.removesuffix(ending)), f"{flag.where} declares {flag.name}; {why}")
    if not told.words or STEP in told.words or not ending or ending[:1] in "/~$":
        return told
    if [*patterns] == [f"*{ending}"]:
        why = f"the script puts {ending} behind it; {STEP} stands for the number in the name of what was written last"
        return Way([told.words[0], STEP], why)
    if not ending.endswith("/"):
        return Way([], f"{told.why}, but the script puts {ending} behind it: say what it takes with --resume-arg")
    up = "../" * len([each for each in Path(ending).parts if each != ".."])
    return Way([told.words[0], up + told.words[1]], f"{told.why}; the script puts {ending} before it")


def _of_several(facts: ScriptFacts, flag: Flag, folder: str, patterns: Sequence[str]) -> Way | None:
    """What a flag with a value is given that is no path of the newest file; None where it is."""
    checkpoint = f"{folder}/{patterns[0] if patterns else '*'}"
    declares = f"{flag.where} declares {flag.name}"
    if facts.trainer is not None and facts.trainer.newest and patterns == list(facts.trainer.include):
        path = f"{{newest:{facts.trainer.newest}}}"
        return Way(
            words_of(flag.name, path), f"{declares} with a value; {path} stands for the state that was written last"
        )
    named = [each for seen in facts.seen_loads for each in seen.flags if each.attribute in facts.files]
    if flag.truth and named:
        told, why, _ = _valued(facts, named[0], folder, patterns)
        return Way(
            [*words_of(flag.name, flag.truth), *told] if told else [], f"{declares}, which is True or False; {why}"
        )
    if flag.truth:
        count = {each.name for seen in facts.seen_loads for each in seen.flags if COUNTS.search(each.attribute)}
        which = f", and which file {', '.join(sorted(count))} say: name them with --resume-arg" if count else ""
        return Way([] if count else words_of(flag.name, flag.truth), f"{declares}, which is True or False{which}")
    if stands_for(flag) == STEP and "*" in checkpoint:
        why = f"{declares}; {STEP} stands for the number in the name of what was written last"
        return Way(words_of(flag.name, STEP), why)
    # In a folder that each start makes anew the word finds nothing.
    same = "*" not in str(Path(checkpoint.removesuffix("/**/*")).parent)
    # Hugging Face's Trainer has a folder for each checkpoint.
    numbered = facts.trainer is not None and facts.trainer.marker == "trainer_state.json"
    if flag.attribute in facts.folders and not numbered and "*" not in str(Path(checkpoint).parent):
        return Way(words_of(flag.name, folder), f"{declares}, which names the folder")
    if same and (word := facts.newest.get(flag.attribute)):
        return Way(words_of(flag.name, word), f"{declares}, and {word} makes it look for the newest")
    return None


def _valued(facts: ScriptFacts, flag: Flag, folder: str, patterns: Sequence[str]) -> Way:
    """The path that a flag is given, of the one file among several where that can be told."""
    beside, whole = [*patterns], {each.pattern for each in fixed(facts.saves) if each.whole}
    late = facts.finals if whole - facts.finals else facts.finals - whole  # else the others are models only
    patterns = [each for each in patterns if each not in late] or beside
    patterns = sorted(patterns, key=lambda each: "best" in Path(each).name.lower())  # it may be an old one
    checkpoint = f"{folder}/{patterns[0] if patterns else '*'}"
    declares = f"{flag.where} declares {flag.name}"
    numbered = [each for each in patterns if "*" in Path(each).name]
    apart = len(numbered) > 1 and any("resume" in each for each in facts.files - {flag.attribute})
    several = len(patterns) > 1 and bool(numbered) and (apart or not {*patterns} <= whole)
    if several and not (facts.trainer is not None and facts.trainer.unit) and flag.attribute not in facts.folders:
        one = words_of(flag.name, f"{{newest:{patterns[0]}}}")
        why = f"{declares}, and each save writes several files ({', '.join(patterns)})"
        say = " ".join(f"--resume-arg={shlex.quote(word)}" for word in one)
        return Way([], f"{why}; say which, as in {say}: until then every restart begins anew")
    if "*" not in checkpoint:
        return Way(words_of(flag.name, str(Path(checkpoint))), f"{declares} with a value")
    named = (each.pattern for each in facts.saves if each.folder == folder and "*" not in each.pattern)
    best = any(fnmatchcase(each, patterns[0]) and not LAST.fullmatch(each) for each in named if patterns)
    # The best may be no state to go on from, and is written last; so may be what lies beside them.
    newest = f"{{newest:{only_numbered(patterns[0])}}}" if best else "{newest}"
    newest = f"{{newest:{patterns[0]}}}" if numbered == patterns[:1] and len(beside) > 1 else newest
    return Way(words_of(flag.name, newest), f"{declares} with a value; {newest} stands for what was written last")


def _by_library(facts: ScriptFacts, trainer: TrainerFacts) -> Way | None:
    """What a library that saves for the script is given; None where the script decides otherwise."""
    if trainer.resume_args:
        return Way(list(trainer.resume_args), f"{trainer.library} is given it by the script's parser")
    if trainer.resumes == "itself":
        return Way([], f"the script asks {trainer.library} for its newest checkpoint itself")
    if trainer.resumes:
        return None
    if facts.loads:
        why = f"{facts.loads} looks in the folder by itself, but {trainer.library} is never told to go on"
        return Way([], f"{why}: what the script loads there it begins with, at step 0")
    known = trainer.start[:1] not in (";", "")
    line = f"; for it to go on write {trainer.start}, and call argosy init again" if known else ""
    return Way([], f"the script never tells {trainer.library} to go on, so every restart begins anew{line}")


def _by_script(facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> Way:
    """Where no flag makes it go on: what it does by itself, or the lines to write."""
    if facts.init_from is not None:
        return Way(["--init_from=resume"], f"{facts.init_from} compares init_from with 'resume'")
    if facts.loads:
        return Way([], f"{facts.loads} looks for it and goes on by itself")
    if facts.of_model is not None:
        return _of_model(facts, *facts.of_model, folder, patterns)
    why = "no --resume flag, and nothing that looks for the files, was seen: every restart may begin anew"
    if facts.may_go_on:
        named = "; ".join(facts.may_go_on)
        there = ", or write it into that file" if " of " in named or "--" not in named else ""
        own = f"by its name {named} may make it go on, which was not seen: if it does, name it with --resume-arg{there}"
        why = f"every restart may begin anew; {own}"
    if facts.skipped_turns:
        why = f"{facts.skipped_turns} leaves out each turn whose file is there: a restart takes only the others again"
    if facts.loop is not None and facts.trainer is None:
        return Way([], why, lines=True)
    told = f". {account(facts)}" if facts.seen_loads else ""
    return Way([], f"{why}{'' if facts.may_go_on else '; name what makes the script go on with --resume-arg'}{told}")


def _lines_of(facts: ScriptFacts, folder: str) -> str:
    """What to write for it to go on, around its own loop; "" where none is known."""
    if facts.loop is None or facts.trainer is not None:
        return ""
    lines = facts.loop.lines(str(Path(folder, OURS)), facts.end)
    return f"{TO_WRITE}, and call argosy init again:\n{lines}"


def _of_model(facts: ScriptFacts, flag: Flag, where: str, folder: str, patterns: Sequence[str]) -> Way:
    """Of a flag with the path of a model that the script begins with."""
    checkpoint = f"{folder}/{patterns[0] if patterns else '*'}"
    numbered = [each for each in patterns if "*" in Path(each).name]
    path = str(Path(checkpoint)) if "*" not in checkpoint and len(patterns) == 1 else "{newest}"
    if len(patterns) > 1 and len(numbered) == 1:
        path = f"{{newest:{numbered[0]}}}"
    words = words_of(flag.name, path) if len(numbered) == 1 or len(patterns) < 2 else []
    say = " ".join(f"--resume-arg={shlex.quote(word)}" for word in words)
    why = f"{where} loads what {flag.name} names, but no optimizer's state: a restart begins anew"
    newest = f"; with {say} it begins with the newest model" if words else ""
    return Way([], f"{why}{newest}", lines=True)
