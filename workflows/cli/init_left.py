"""What a script saves beside what ``argosy init`` takes for its checkpoints."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.init_refused import is_empty
from argosy.workflows.script.facts import ScriptFacts
from argosy.workflows.script.places import fixed
from argosy.workflows.script.values import OUTSIDE


def with_its_parts(facts: ScriptFacts, folder: str, patterns: list[str]) -> tuple[str, list[str]]:
    """The same with what each save numbers in a folder beside it: what goes on by itself may read both; and with what
    a script leaves that removes its checkpoints when it has ended.

    Raises:
        InputError: it leaves nothing.
    """
    left = _left(facts, folder, patterns)
    above = (_above(folder, patterns, left) or ".") if left and _inside(left) else ""
    passing = next((each.where for each in fixed(facts.saves) if each.passing and each.folder == folder), "")
    if passing and not above:
        raise InputError(
            f"SCRIPT: {passing} removes {folder} when it has ended, and nothing else is saved that would be left; "
            "save the model, too, as in model.save('out/model.keras'), or give it delete_checkpoint=False"
        )
    numbered = above not in ("", ".") and all("*" in Path(each).name for each in (*patterns, *left))
    if not (numbered or passing):
        return folder, patterns
    kept = [os.path.relpath(Path(folder, each), above) for each in patterns]
    return above, [*kept, *(os.path.relpath(each, above) for each in left)]


def with_what_is_read(
    facts: ScriptFacts, again: ScriptFacts, folder: str, patterns: list[str]
) -> tuple[str, list[str]]:
    """The same with what a start that goes on, ``again``, was seen to read of other folders that are saved into."""
    read = {*again.opened[0]} - {*facts.opened[0]}
    found = [each for each in _left(facts, folder, patterns) if any(fnmatchcase(path, each) for path in read)]
    above = _above(folder, patterns, found) if found else ""
    if above in ("", ".", folder):
        return folder, patterns
    kept = [os.path.relpath(each, above) for each in (*_paths(folder, patterns), *found)]
    return above, kept


def _left(facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> dict[str, str]:
    """What the script saves elsewhere, or beside the states that it goes on from, by path, and where it does."""
    kept = _paths(folder, patterns)
    told = {str(Path(each.folder, each.pattern)): each.where for each in fixed(facts.saves)
            if not each.unless and not is_empty(each.folder)}  # fmt: skip
    covered = {path for path in told for one in (*kept, *told) if path != one and fnmatchcase(path, one)}
    return {path: where for path, where in told.items() if path not in {*covered, *kept}}


def _paths(folder: str, patterns: Sequence[str]) -> list[str]:
    return [
        str(Path(folder, pattern.replace("/**/", "/") if pattern[-5:] != "/**/*" else pattern)) for pattern in patterns
    ]


def _above(folder: str, patterns: Sequence[str], left: Collection[str]) -> str:
    """The folder that all of them lie in; "" where some lie outside the run's."""
    if not _inside(left):
        return ""
    above = os.path.commonpath([str(Path(path).parent) for path in (*_paths(folder, patterns), *left)])
    while "*" in above:
        above = os.path.dirname(above)
    return above


def not_kept(facts: ScriptFacts, folder: str, patterns: Sequence[str]) -> list[tuple[str, str]]:
    """It, and how to keep it, too: a final model may be among it."""
    if left := _left(facts, folder, patterns):
        above = _above(folder, patterns, left)
        names = [os.path.relpath(path, above or ".") for path in (*_paths(folder, patterns), *left)]
        words = " ".join(f"--include {shlex.quote(name)}" for name in names)
        lines = ", ".join(f"{where}: {path}" for path, where in left.items())
        keep = (
            f"keep it too with --opaque {above or '.'} {words}" if _inside(left) else "it lies outside the run's folder"
        )
        return [(f"not kept ({lines})", keep)]
    return []


def elsewhere(facts: ScriptFacts, folder: str, _patterns: Sequence[str]) -> list[tuple[str, str]]:
    """What a trainer's script saves beside the trainer's folder, of which the last commit holds all."""
    paths = {each.where: os.path.normpath(Path(each.folder, each.pattern.removesuffix("**/*")))
             for each in fixed(facts.saves) if not (each.unless or is_empty(each.folder))}  # fmt: skip
    left = [f"{where}: {path}" for where, path in paths.items() if not Path(path).is_relative_to(folder)]
    found = (f"not kept ({', '.join(left)})", f"save it below {folder}, as in {folder}/final")
    return [found] if left and folder != "." else []


def _inside(paths: Iterable[str]) -> bool:
    return not any(path.startswith(OUTSIDE) for path in paths)
