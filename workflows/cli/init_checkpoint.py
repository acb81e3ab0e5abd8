"""The ``[checkpoint]`` that ``argosy init`` writes, and the fields of a run.toml with the reason of each."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.init_refused import STEP, is_empty, refused, stands_for, words_of
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.flags import Flag
from argosy.workflows.script.saves import DCP, SavedAt, fixed
from argosy.workflows.script.values import OUTSIDE

LAST = re.compile(r"(checkpoint|ckpt|last|latest|current)(_?(checkpoint|ckpt|model))?\.\w+(\.tar)?")
"""So is the file called, among others that are numbered or the best, that each save writes anew."""
MAYBE = re.compile(r"^(resume|restore|restart|continue|reload|load)(_from)?(_checkpoint|_ckpt|_path|_model)?$")
"""So is a flag called of which it was not seen what the script does with it."""
CALLBACKS = {"transformers": "HFCallback", "lightning": "LightningCallback"}
"""What argosy.integrations has for a library."""


@dataclass
class Guess:
    """The fields of the run.toml so far, and why each was chosen."""

    lines: list[str] = field(default_factory=list)
    why: list[tuple[str, str]] = field(default_factory=list)

    def put(self, key: str, value: str | int | list[str], why: str) -> None:
        """Add ``key = value`` and its reason (none: self-evident)."""
        self.lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
        if why:
            self.why.append((self.lines[-1], why))


def put_checkpoint(
    guess: Guess,
    facts: ScriptFacts,
    opaque: str | None,
    include: tuple[str, ...],
    resume_arg: tuple[str, ...],
    ranks: tuple[int, int],
) -> None:
    """Write ``[checkpoint]``: what was given, else what the script shows.

    Raises:
        InputError: nothing shows where it saves, or --opaque names no folder below.
    """
    if opaque is None and facts.checkpointer is not None:
        guess.lines += ["", "[checkpoint]"]
        guess.put("mode", "checkpointer", f"{facts.checkpointer} uses argosy.Checkpointer")
        return
    trainer = facts.trainer
    if trainer is not None and opaque is None and trainer.folder is None:
        raise InputError(
            f"SCRIPT: {trainer.where}: {trainer.library} saves where only a run could tell; {trainer.remedy}"
        )
    folder, patterns, why = _saved(facts, opaque, include)
    guess.lines += ["", "[checkpoint]"]
    guess.put("mode", "opaque", "the script writes its own checkpoint files")
    guess.put("path", folder, why)
    if patterns:
        guess.put("include", patterns, "")
    if trainer is None and opaque is None and not include:
        _say_what_is_left(guess, facts, folder, patterns)
    if trainer is not None:
        if trainer.unit:
            guess.put(
                "unit", list(trainer.unit), "each of them is a checkpoint of its own; what lies beside goes along"
            )
        expect = trainer.expect if ranks != (1, 1) else ()
        _completeness(guess, trainer.library, expect, trainer.marker, ranks)
        if callback := CALLBACKS.get(trainer.library.partition(".")[0]):
            told = "each step, exactly, where its printed progress is read otherwise; not required"
            guess.why.append((f"callbacks=[argosy.integrations.{callback}()]", told))
    elif saved := next((each for each in fixed(facts.saves) if _is_of_library(each, folder)), None):
        known = saved.library == DCP and ranks[0] == 1  # by .metadata, which comes last
        _completeness(guess, saved.library, () if known else (saved.rank_file,), "", ranks)
    arguments, because = _resume(facts, resume_arg, folder, patterns)
    if arguments:
        guess.put("resume_args", arguments, because)
    else:
        guess.why.append(("no resume_args", because))


def _is_of_library(saved: SavedAt, folder: str) -> bool:
    return saved.folder == folder and bool(saved.library) and not saved.unless


def _say_what_is_left(guess: Guess, facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> None:
    """What the script saves elsewhere, or beside the states that it goes on from: a final model may be among it."""
    kept = [str(Path(folder, pattern)) for pattern in patterns]
    told = {str(Path(each.folder, each.pattern)): each.where for each in fixed(facts.saves)
            if not each.unless and not is_empty(each.folder)}  # fmt: skip
    left = {path: where for path, where in told.items() if not any(fnmatchcase(path, one) for one in kept)}
    if left:
        above = os.path.commonpath([str(Path(path).parent) for path in (*kept, *left)]) if _inside(left) else ""
        names = [os.path.relpath(path, above or ".") for path in (*kept, *left)]
        words = " ".join(f"--include {shlex.quote(name)}" for name in names)
        lines = ", ".join(f"{where}: {path}" for path, where in left.items())
        keep = (
            f"keep it too with --opaque {above or '.'} {words}" if _inside(left) else "it lies outside the run's folder"
        )
        guess.why.append((f"not kept ({lines})", keep))


def _inside(paths: Iterable[str]) -> bool:
    return not any(path.startswith(OUTSIDE) for path in paths)


def _completeness(guess: Guess, library: str, expect: tuple[str, ...], marker: str, ranks: tuple[int, int]) -> None:
    """When a checkpoint is whole: known for the files that the library writes."""
    nodes, _ = ranks
    if expect:
        guess.put("expect", list(expect), f"{library} writes such a file for each rank")
    if marker and nodes == 1:
        guess.put("marker", marker, f"{library} writes it last")
    if expect and nodes > 1:
        guess.put("writers", "every", "the ranks of each node write to a disk of their own")
        guess.put("reshard", "all", f"{library} reads files of the first node everywhere")


def _saved(facts: ScriptFacts, opaque: str | None, include: tuple[str, ...]) -> tuple[str, list[str], str]:
    if opaque is not None:
        if opaque.startswith("/") or ".." in opaque.split("/") or not opaque.strip() or not opaque.isprintable():
            raise InputError(f"--opaque {opaque!r}: name a folder below the one the script runs in, as in --opaque out")
        known = _kinds(facts, [each for each in fixed(facts.saves) if each.folder == str(Path(opaque))])
        usual = [] if facts.trainer is None else list(facts.trainer.include)
        patterns = list(include) or known or usual
        if not patterns and str(Path(opaque)) == ".":
            raise InputError("--opaque .: say which files there are checkpoints, as in --include 'ckpt_*.pt'")
        why = "" if patterns else "every file in it is taken for a part of the checkpoint; fewer with --include GLOB"
        return str(Path(opaque)), patterns, why
    if facts.trainer is not None and facts.trainer.folder is not None:
        why = f"{facts.trainer.where}: {facts.trainer.library} saves there"
        patterns = list(include or facts.trainer.include)
        if not patterns and facts.trainer.folder == ".":
            patterns = list(facts.trainer.include_here)
        return facts.trainer.folder, patterns, why
    usable = [each for each in fixed(facts.saves) if not (each.folder.startswith(OUTSIDE) or is_empty(each.folder))]
    if not usable:
        raise refused(facts)
    if all(each.unless for each in usable):
        flag = facts.flag(usable[0].unless)
        say = " ".join(words_of(flag.name, "VALUE")) if flag.takes_value else flag.name
        raise InputError(
            f"SCRIPT: {usable[0].where} saves only with {flag.name}, so a killed run could not resume; "
            f"say it after --, as in `argosy init SCRIPT -- {say}`"
        )
    usable = [each for each in usable if not each.unless]
    first = usable[0]
    patterns = list(include) or _kinds(facts, [each for each in usable if each.folder == first.folder])
    return _with_beside(facts, first.folder, patterns, f"{first.where} saves there")


def _with_beside(facts: ScriptFacts, folder: str, patterns: list[str], why: str) -> tuple[str, list[str], str]:
    """The files, too, that it reads beside the checkpoint when it goes on, as long as {newest} is none of them."""
    flag = facts.resume_flag()
    newest = flag is not None and flag.takes_value and "*" in f"{folder}/{patterns[0] if patterns else '*'}"
    for path, where in () if newest else facts.beside.items():
        above, name = str(Path(path).parent), Path(path).name
        if folder != above and folder.startswith(f"{above}/"):
            patterns = [f"{os.path.relpath(folder, above)}/{each}" for each in patterns]
            folder = above
        if folder == above and not any(fnmatchcase(name, each) for each in patterns):
            patterns, why = [*patterns, name], f"{why}; {where} reads {name} to go on"
    return folder, patterns, why


def _kinds(facts: ScriptFacts, places: Sequence[SavedAt]) -> list[str]:
    """The globs; only those of whole states where the newest file is what the script is told to go on from."""
    flag = facts.resume_flag()
    whole = [each for each in places if each.whole]
    newest = flag is not None and flag.takes_value and any("*" in each.pattern for each in places)
    last = [each for each in whole if LAST.fullmatch(Path(each.pattern).name)]
    if newest and len(whole) > 1 and last and not facts.newest.get(flag.attribute if flag else ""):
        return [each.pattern for each in last[:1]]
    newest = newest and (flag is None or stands_for(flag) != STEP)  # a number names all files that bear it
    return [each.pattern for each in (whole if whole and newest else places)]


def _resume(facts: ScriptFacts, given: tuple[str, ...], folder: str, patterns: Sequence[str]) -> tuple[list[str], str]:
    if given:
        return list(given), ""
    flag = facts.resume_flag()
    other = facts.restored_by
    if flag is not None and not flag.takes_value and facts.enough:
        return [flag.name], f"{flag.where} declares {flag.name}; {facts.enough} takes what was saved then"
    if flag is not None and not flag.takes_value and other is not None and other != flag:
        # The switch only says how far to go on from what the other flag names.
        path, why = _told(facts, other, folder, patterns)
        return [flag.name, *path] if path else [], f"{flag.where} declares {flag.name}; {why}"
    return _told(facts, flag, folder, patterns)


def _told(facts: ScriptFacts, flag: Flag | None, folder: str, patterns: Sequence[str]) -> tuple[list[str], str]:
    """What the flag is given, or why nothing is."""
    checkpoint = f"{folder}/{patterns[0] if patterns else '*'}"
    if flag is not None and flag.truth:
        which = f", and which file {', '.join(facts.numbers)} say: name them with --resume-arg" if facts.numbers else ""
        words = [] if facts.numbers else words_of(flag.name, "True")
        return words, f"{flag.where} declares {flag.name}, which is True or False{which}"
    whole = {each.pattern for each in facts.saves if each.whole}
    states = {each.unless: each.where for each in facts.saves if each.whole}
    if flag is not None and flag.takes_value and states and "" not in states:
        needed, where = next(iter(states.items()))
        return [], f"{where} saves what {flag.name} goes on from only with {needed}; say it after --"
    if flag is not None and flag.takes_value and stands_for(flag) == STEP and "*" in checkpoint:
        why = f"{flag.where} declares {flag.name}; {STEP} stands for the number in the name of what was written last"
        return words_of(flag.name, STEP), why
    # In a folder that each start makes anew the word finds nothing.
    same = "*" not in str(Path(checkpoint.removesuffix("/**/*")).parent)
    if flag is not None and flag.attribute in facts.folders and "*" not in str(Path(checkpoint).parent):
        return words_of(flag.name, folder), f"{flag.where} declares {flag.name}, which names the folder"
    if flag is not None and same and (word := facts.newest.get(flag.attribute)):
        return words_of(flag.name, word), f"{flag.where} declares {flag.name}, and {word} makes it look for the newest"
    if flag is not None and flag.takes_value and len(patterns) > 1 and "*" in checkpoint and not {*patterns} <= whole:
        one = words_of(flag.name, f"{folder}/FILE")
        why = f"{flag.where} declares {flag.name}, and each save writes several files ({', '.join(patterns)})"
        return [], f"{why}; say which, as in {' '.join(f'--resume-arg={word}' for word in one)} with {{step}} in FILE"
    if flag is not None and not flag.takes_value:
        return [flag.name], f"{flag.where} declares {flag.name}"
    if flag is not None and "*" not in checkpoint:
        return words_of(flag.name, str(Path(checkpoint))), f"{flag.where} declares {flag.name} with a value"
    if flag is not None:
        why = f"{flag.where} declares {flag.name} with a value; {{newest}} stands for what was written last"
        return words_of(flag.name, "{newest}"), why
    if (trainer := facts.trainer) is not None and trainer.resume_args:
        return list(trainer.resume_args), f"{trainer.library} is given it by the script's parser"
    if trainer is not None and trainer.resumes == "itself":
        return [], f"the script asks {trainer.library} for its newest checkpoint itself"
    if trainer is not None and not trainer.resumes and facts.loads:
        why = f"{facts.loads} looks in the folder by itself, but {trainer.library} is never told to go on"
        return [], f"{why}: what the script loads there it begins with, at step 0"
    if trainer is not None and not trainer.resumes:
        why = f"the script never tells {trainer.library} to go on, so every restart begins anew"
        return [], f"{why}; let it, and name the flag with --resume-arg"
    if facts.init_from is not None:
        return ["--init_from=resume"], f"{facts.init_from} compares init_from with 'resume'"
    if facts.loads:
        return [], f"{facts.loads} looks for it and goes on by itself"
    if facts.asked_for is not None:
        return [], _asked_for(facts, str(Path(checkpoint)))
    if facts.of_model is not None:
        flag, where = facts.of_model
        path = str(Path(checkpoint)) if "*" not in checkpoint else "{newest}"
        say = " ".join(f"--resume-arg={shlex.quote(word)}" for word in words_of(flag.name, path))
        why = f"{where} loads what {flag.name} names, but no optimizer's state: a restart begins anew"
        return [], f"{why}; with {say} it begins with the newest model"
    maybe = next((each for each in facts.flags if each.takes_value and MAYBE.search(each.attribute)), None)
    if maybe is not None and trainer is None:
        return [], f"{maybe.where} declares {maybe.name}; if the script goes on with it, name it with --resume-arg"
    why = "no --resume flag, and nothing that looks for the files, was seen: every restart may begin anew"
    return [], f"{why}; name what makes the script go on with --resume-arg"


def _asked_for(facts: ScriptFacts, path: str) -> str:
    """Of a setting that no flag gives: where to write what it goes on from."""
    name, where = facts.asked_for or ("", "")
    key, file = next(((key, file) for key, file in facts.keys.items() if key.rpartition(".")[2] == name), (name, ""))
    what = facts.newest.get(name) or (path if "*" not in path else "the newest")
    place = f"{key} of {file}" if file else name
    way = "write" if file else "where its settings hold it, write"
    return f"{where} goes on from what {place} names, which no flag was seen to give; {way} {what} there for a resume"
