"""The places that a script saves into, once what changes from one checkpoint to the next is part of the glob."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class SavedAt:
    """Where a checkpoint is written: a folder relative to the working directory and a glob.

    ``whole``: more than the model goes into it. ``unless``: the flag without which nothing is saved here.
    ``library``: whose ranks all write into it, each a ``rank_file`` ("": one rank writes). ``passing``: it is removed
    when the training has ended well.
    """

    folder: str
    pattern: str
    where: str
    whole: bool = False
    unless: str = ""
    library: str = ""
    rank_file: str = ""
    passing: bool = False


def fixed(places: Sequence[SavedAt]) -> tuple[SavedAt, ...]:
    """With folders that do not change: a folder per checkpoint (``out/checkpoint-*``) becomes part of the glob.

    All that such a folder holds belongs to the checkpoint, unless the files themselves are numbered, or it is not named
    like one: then it is the folder of a run, where logs lie that are open as long as it trains. A folder of which
    nothing is known is left out.
    """
    found: dict[tuple[str, str], SavedAt] = {}
    of_runs = {each.folder for each in places if "*" in each.pattern.removesuffix("/**/*")}
    of_runs |= {each.folder for each in places if "**" not in each.pattern and not of_save(each.folder)}
    for each in places:
        parts = each.folder.split("/")
        at = next((index for index, part in enumerate(parts) if "*" in part), len(parts))
        if parts[:1] == ["*"]:
            continue
        named = next((index for index, part in enumerate(parts) if "*" in part and of_save(part)), at)
        tree = [*parts[at : named + 1], "**/*"] if at < len(parts) else [each.pattern]
        below = [*parts[at:], each.pattern] if each.folder in of_runs else tree
        folder, glob = "/".join(parts[:at]) or ".", "/".join(below)
        found.setdefault((folder, glob), replace(each, folder=folder, pattern=glob))
    told = [_numbered(each, [*found.values()]) for each in found.values()]
    return tuple(each for each in told if not any(_covers(other, each) for other in told))


def _numbered(each: SavedAt, others: Sequence[SavedAt]) -> SavedAt:
    """With a number at its end, where ``step_*.pt`` would be ``step_*_ema.pt``, too: another kind of file."""
    first, _, end = each.pattern.rpartition("*")
    kind = re.compile(rf"{re.escape(first)}\*[_.-][A-Za-z]\w*{re.escape(end)}")
    alike = any(other.folder == each.folder and kind.fullmatch(other.pattern) for other in others)
    return replace(each, pattern=f"{first}*[0-9]{end}") if alike and first and end else each


def of_save(folder: str) -> bool:
    """Whether what is numbered in the path of a folder is a checkpoint by its name, and not a run."""
    numbered = [part for part in folder.split("/") if "*" in part]
    return any(re.search(r"(?i)checkpoint|ckpt|step|epoch|iter|save|snapshot", part) for part in numbered)


def _covers(other: SavedAt, each: SavedAt) -> bool:
    """Whether the one glob has all that the other has, and says no less of it."""
    more = other.pattern != each.pattern and fnmatchcase(each.pattern, other.pattern)
    return other.folder == each.folder and more and other.unless == each.unless and other.whole >= each.whole
