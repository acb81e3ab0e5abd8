"""The ``[checkpoint]`` that ``argosy init`` writes, and the fields of a run.toml with the reason of each."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.init_account import STEP, stands_for, words_of
from argosy.workflows.cli.init_left import elsewhere, not_kept, with_its_parts, with_what_is_read
from argosy.workflows.cli.init_refused import check_restart, is_empty, refused
from argosy.workflows.cli.init_restart import Read, as_restarted, filled
from argosy.workflows.cli.init_resume import LAST, OURS, resume
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.globs import only_numbered
from argosy.workflows.script.places import SavedAt, fixed
from argosy.workflows.script.ranks import EACH_RANK, rank_files
from argosy.workflows.script.saves import DCP
from argosy.workflows.script.values import OUTSIDE
from argosy.workflows.script.writers import NUMBERED

CALLBACKS = {"transformers": "HFCallback", "lightning": "LightningCallback"}
"""What argosy.integrations has for a library."""


_AVERAGE = re.compile(r"(?i)(^|[_.-])(ema|swa|avg|averaged?)(?![a-z])")
"""So is a file called that has another model than the one in training."""


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
    read: Read,
) -> None:
    """Write ``[checkpoint]``: what was given, else what the script shows; ``read``: it, with words behind its own.

    Raises:
        InputError: nothing shows where it saves, or --opaque names no folder below.
    """
    if opaque is None and facts.checkpointer is not None:
        return _put_checkpointer(guess, *facts.checkpointer)
    trainer = facts.trainer
    if opaque is None:
        _accept(facts)
    alone, patterns, why = _saved(facts, opaque, include)
    folder = alone
    if opaque is None and trainer is None and not include and facts.loads and facts.resume_flag() is None:
        folder, patterns = with_its_parts(facts, alone, patterns)
    why = _or_elsewhere(facts, folder, why) if opaque is None and trainer is None else why
    arguments, because = resume(facts, resume_arg, folder, patterns)
    if opaque is None and trainer is None and not include and arguments:
        again = read(filled(arguments, folder, patterns))
        folder, patterns = with_what_is_read(facts, again, alone := folder, patterns)
        arguments, because = resume(facts, resume_arg, folder, patterns)
    if trainer is None:
        arguments, because, more = as_restarted(facts, read, arguments, because, folder, patterns)
        if not include:
            patterns += more
            why = "; ".join([*filter(None, [why]), *(f"{where} reads {name} again" for name, where in more.items())])
    guess.lines += ["", "[checkpoint]"]
    guess.put("mode", "opaque", "the script writes its own checkpoint files")
    guess.put("path", folder, why)
    guess.why += _to_be_made(facts, folder) if trainer is None and opaque is None else []
    parts = folder != alone
    counted = [each for each in patterns if "*" in each.removesuffix("/**/*") and (parts or "/" not in each)]
    if patterns:
        only = "" if parts or EACH_RANK in facts.ranks.node else _only_newest(counted)  # which belong to one save
        cost = f"if the * counts up, each commit holds all files so far{only}"
        guess.put("include", patterns, cost if counted and trainer is None else "")
    if opaque is None and not include:
        guess.why += (not_kept if trainer is None else elsewhere)(facts, folder, patterns)
    if unit := trainer.unit if trainer is not None else [NUMBERED] if patterns == [f"{NUMBERED}/**/*"] else []:
        guess.put("unit", list(unit), "each of them is a checkpoint of its own; what lies beside goes along")
    if trainer is not None:
        expect = trainer.expect if ranks != (1, 1) else ()
        _completeness(guess, trainer.library, expect, trainer.marker, ranks)
        if (callback := CALLBACKS.get(trainer.library.partition(".")[0])) and not facts.tells:
            told = "each step, exactly, where its printed progress is read otherwise; not required"
            guess.why.append((f"callbacks=[argosy.integrations.{callback}()]", told))
    elif saved := next((each for each in _of_our_lines([*fixed(facts.saves)]) if each.folder == folder
                        and each.library and not each.unless), None):  # fmt: skip
        known = saved.library == DCP and ranks[0] == 1  # by .metadata, which comes last
        _completeness(guess, saved.library, () if known else (saved.rank_file,), "", ranks)
    elif ranks != (1, 1):
        _by_rank(guess, patterns, ranks)
    if arguments:
        guess.put("resume_args", arguments, because)
    else:
        guess.why.append(("no resume_args", because))


def _accept(facts: ScriptFacts) -> None:
    """Accept where it saves, and that it may start again there.

    Raises:
        InputError: nothing is kept of it.
    """
    trainer = facts.trainer
    if trainer is not None and trainer.folder is None:
        if trainer.lines:
            click.echo(f"What makes it save into one folder and go on:\n{trainer.lines}", err=True)
        raise InputError(f"SCRIPT: {trainer.where}: {trainer.library} {trainer.lacks}; {trainer.remedy}")
    if trainer is not None and (trainer.folder or "").startswith(OUTSIDE):
        raise InputError(
            f"SCRIPT: {trainer.where}: {trainer.library} saves into {trainer.folder}, outside the folder that it runs "
            "in, which is all that is kept; name a folder below that one there, as in 'out'"
        )
    check_restart(facts)


def _or_elsewhere(facts: ScriptFacts, folder: str, why: str) -> str:
    """The same where what saves there may be given another folder, too, which only a run could tell."""
    unclear = {where for where, _ in facts.unclear_saves}
    doubt = any(each.folder == folder and each.where in unclear for each in facts.saves)
    told = "or elsewhere, which only a run could tell: if so, name that folder with --opaque"
    return f"{why}, {told}" if doubt else why


def _only_newest(globs: Sequence[str]) -> str:
    """The line that stores no older ones; "" where files of one save would not be seen to belong together, or each is a
    result: the model of a fold, or a member of an ensemble.
    """
    if any(re.search(r"(?i)fold|split|member", each) for each in globs):
        return ""
    if len(globs) > 1 and any("epoch" in each or re.search(r"[A-Za-z0-9]\*[^*]*$", each) for each in globs):
        return ""
    # What bears no number, as the one that each save writes anew, lies beside the units and goes along.
    return f"; write unit = {json.dumps([*map(only_numbered, globs)])} below it to store only the newest"


def _put_checkpointer(guess: Guess, where: str, final: bool) -> None:
    guess.lines += ["", "[checkpoint]"]
    guess.put("mode", "checkpointer", f"{where} uses argosy.Checkpointer")
    if not final:
        remedy = "without one a run has not succeeded; give it to the last save, or set checkpoint.end_step"
        guess.why.append(("final=True", f"no save of the script has it: {remedy}"))


def _to_be_made(facts: ScriptFacts, folder: str) -> list[tuple[str, str]]:
    """What is to be said of folders that nothing makes, or that each start does, and of what a start is asked."""
    line = f"os.makedirs({json.dumps(folder)}, exist_ok=True)"
    why = f"only an empty folder travels with the code, so write {line} before it saves"
    found = [(f"nothing seen makes {folder}", why)] if facts.made[0] and folder != "." else []
    if facts.made[1] is not None:
        where, made = facts.made[1]
        found.append(
            (f"{where} makes {made}", "a restart that finds it there ends with an error: give it exist_ok=True")
        )
    if facts.asks:
        found.append((f"{facts.asks} waits for what somebody types", "nobody does in a run: let a flag say it"))
    return found


def _by_rank(guess: Guess, patterns: Sequence[str], ranks: tuple[int, int]) -> None:
    likely = rank_files(patterns)
    if likely and ranks[0] > 1:
        told = f'if each rank writes one, add expect = {json.dumps(likely)} and writers = "every"'
        guess.why.append(("no expect", f"only the first node's files are kept; {told}"))


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


def places(facts: ScriptFacts) -> list[SavedAt]:
    """Where it saves below the folder that it runs in."""
    return [each for each in fixed(facts.saves) if not (each.folder.startswith(OUTSIDE) or is_empty(each.folder))]


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
    usable = places(facts)
    if not usable:
        raise refused(facts)
    if all(each.unless for each in usable):
        flag = facts.flag(usable[0].unless)
        say = " ".join(words_of(flag.name, "VALUE")) if flag.takes_value else flag.name
        raise InputError(
            f"SCRIPT: {usable[0].where} saves only with {flag.name}, so a killed run could not resume; "
            f"say it after --, as in `argosy init SCRIPT -- {say}`"
        )
    usable = _of_our_lines([each for each in usable if not each.unless])
    states = [each for each in fixed(facts.saves) if each.whole]
    if states and facts.resume_flag() is not None and all(each.folder.startswith(OUTSIDE) for each in states):
        raise InputError(
            f"SCRIPT: {states[0].where} saves what it goes on from outside the folder that it runs in "
            f"({states[0].folder}), which is all that is kept; write a folder below that one there"
        )
    # Of several places one that is saved to as it trains, and read again.
    again = {each.glob for each in facts.seen_loads}

    def late(each: SavedAt) -> tuple[bool, ...]:
        unread = again.isdisjoint((each.folder, f"{each.folder}/{each.pattern}"))
        return not each.whole, each.pattern in facts.finals, unread

    first = min(usable, key=late)
    patterns = list(include) or _kinds(facts, [each for each in usable if each.folder == first.folder])
    way = facts.resume_flag()
    if way is not None and way.attribute in facts.newest:
        # None of them is taken for the newest: what is saved once below, at the end, may lie among them.
        below = [each for each in usable if each.folder.startswith(f"{first.folder}/") and "*" not in each.pattern]
        patterns += [os.path.relpath(f"{each.folder}/{each.pattern}", first.folder) for each in below if not include]
    if any(
        flag is not None and flag.attribute in facts.folders - facts.files
        for flag in (facts.resume_flag(), facts.restored_by)
    ):
        # With ** the newest is the folder that they lie in.
        patterns = [re.sub(r"^([^/]*\*[^/]*)/(?!\*\*)", r"\1/**/", each) for each in patterns]
    return first.folder, patterns, f"{first.where} saves there"


def _of_our_lines(usable: list[SavedAt]) -> list[SavedAt]:
    """Where the lines that init gives save the whole state, the folders that ranks write together only hold it up."""
    alone = any(each.pattern == OURS for each in usable)
    return [each for each in usable if not (alone and each.library)]


def _kinds(facts: ScriptFacts, places: Sequence[SavedAt]) -> list[str]:
    """The globs; only those of whole states where the newest file is what the script is told to go on from."""
    flag = facts.resume_flag()
    whole = [each for each in places if each.whole and not _AVERAGE.search(Path(each.pattern).name)]
    newest = flag is not None and flag.takes_value and any("*" in each.pattern for each in places)
    last = [each for each in whole if LAST.fullmatch(Path(each.pattern).name)]
    if newest and len(whole) > 1 and last and not facts.newest.get(flag.attribute if flag else ""):
        return [each.pattern for each in last[:1]]
    # A number names all files that bear it.
    newest = newest and (flag is None or stands_for(flag) != STEP)
    return [each.pattern for each in (whole if whole and newest else places)]
