"""Is a checkpoint that a script writes complete? Nobody tells us, so everything that can be asked is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.folder_part import SETTLED_SECONDS
from argosy.steps.launch.units import Contents, Unit, contents, late_files, step_in
from argosy.steps.launch.whole_files import Ages, Signature, globbed, looks_whole, open_for_writing, proves_itself

REST_SECONDS = 0.2
MOST_SECONDS = 30.0
"""What comes after a unit is waited for no longer."""
_POINTER_BYTES = 512
_WORD = re.compile(r"[^\s\"'{}\[\],:]+")
_WRITTEN_LAST = (("*.distcp", ".metadata"), ("training_args.bin", "trainer_state.json"))
"""Of formats that everybody uses: where the first is, the second comes last (torch's distributed checkpoints, and
Hugging Face's Trainer), in the same folder.
"""
_NUMBER = re.compile(r"(?<=[A-Za-z0-9])[-_.]?\{rank[^}]*\}")
"""Left out by some libraries where there is one rank, with what divides it from the name: ``rng_state.pth``."""
_SHARD = re.compile(rb"__\d+_\d+\.distcp")
"""So torch names the files of distributed checkpoints; ``.metadata``, a pickle that nobody here loads, lists them."""


@dataclass(frozen=True)
class Flaw:
    """Why a unit cannot be committed now; ``busy``: it is being written, which is no fault."""

    text: str
    busy: bool = False


class Completeness:
    """The rules of one node: what every one of ``ranks`` has to leave, and what is written last."""

    def __init__(
        self,
        args: LaunchArgs,
        folder: Path,
        ranks: Sequence[int],
        of_others: Signature | None = None,
        *,
        lone: bool = False,
    ) -> None:
        """``of_others``: restored files that, as long as they are so, other nodes save. ``lone``: the whole gang is one
        rank.
        """
        self.of_others = of_others or {}
        self._args = args
        self._folder = folder
        self._marker = args.checkpoint_marker
        self._first = 0 in ranks
        """Rank 0 writes where these do: what only it writes has to be here, and not on other nodes' disks."""
        self._ages = Ages(folder)
        self._alone: Signature = {}
        """Files that were all of a checkpoint, as they were seen first."""
        self._delays: dict[str, tuple[int, int]] = {}
        """Files that a save writes last: when that was, and how long after the unit before it, in ns."""
        self._expected = [
            (rank, (glob.format(rank=rank), *([_NUMBER.sub("", glob)] if lone else [])))
            for glob in args.checkpoint_expect
            for rank in ranks
        ]

    def flaw(
        self, found: Contents, unit: Unit, ranks_run: Callable[[], bool], *, ended: bool = False, newest: bool = True
    ) -> Flaw | None:
        """What is wrong with the unit; None: it is whole. ``ended``: every rank has ended well. ``newest`` False: an
        older unit that goes along, so no marker needs to name it.

        The order matters: a rank that was killed begins to end before its files are closed, so whether the ranks run
        is asked after whether somebody has the files open.
        """
        if not unit.files:
            return Flaw("it has no files")
        pointers = self.pointers(found) if unit.name and newest else {}
        late = self.late(found, unit) if newest else {}
        awaited = self._awaited(found, unit, late) if newest and not ended else ""
        if busy := self._busy(unit.files, {**pointers, **late}, ended) or awaited:
            return Flaw(busy, busy=True)
        missing = self._missing(unit) or self._unfinished(unit) or self._scattered(unit)
        missing = missing or self._unmarked(unit, newest) or self._elsewhere(found, unit, pointers)
        if missing:
            return Flaw(missing)
        torn = next((name for name in unit.files if not self._whole(unit, name)), None)
        torn = torn or next((name for name in late if not looks_whole(self._folder / name)), None)
        if torn is not None:
            return Flaw(f"{torn} is cut off or empty")
        if not self._unchanged(unit):
            # Its marker may have come after we listed it, and files with it.
            return Flaw("it has just changed", busy=True)
        return None if ended or ranks_run() else Flaw("a rank of this node has ended")

    def flaw_at_end(self, found: Contents, unit: Unit) -> str:
        """What is wrong with the newest unit, or with what lies beside it, once every rank has ended well."""
        flaw = self.flaw(found, unit, lambda: True, ended=True)
        if flaw is not None:
            return flaw.text
        torn = set(found.beside) - set(self.beside(found, unit, ended=True))
        cut = next((name for name in sorted(torn) if found.beside[name][0]), None)
        return f"{cut} beside it is cut off" if cut and unit.name else ""

    def _unchanged(self, unit: Unit) -> bool:
        now = contents(self._folder, self._args)
        return any(other.name == unit.name and other.files == unit.files for other in now.units) or (
            not unit.name and now.beside == unit.files
        )

    def rested(self, unit: Unit) -> float:
        """For how many seconds nobody has written to it."""
        return self._ages.youngest(unit.files)

    def _busy(self, files: Signature, others: Signature, ended: bool) -> str:
        """``others``: what lies beside and belongs to it."""
        together = {**files, **others}
        age = self._ages.youngest(together)
        if not ended and (age < SETTLED_SECONDS or (age < REST_SECONDS and not self._seen_whole(files, others))):
            return "it has just changed"
        writing = sorted(open_for_writing(self._folder, together))
        return f"{writing[0]} is open for writing" if writing else ""

    def _seen_whole(self, files: Signature, others: Signature) -> bool:
        """One file that is seen to be whole needs no more rest than its copy: a small script may save ten a second.

        It must have been alone twice: the first save of a script may have written one of its files, and not the next.
        """
        if len(files) != 1 or self._expected:
            return False
        ((name, state),) = files.items()
        again = self._alone.setdefault(name, state) != state or bool(others)
        return again and all(proves_itself(self._folder / each) for each in (name, *others))

    def late(self, found: Contents, unit: Unit) -> Signature:
        """What came after the unit, but for what other nodes save."""
        late, written = late_files(found, unit), unit.written
        late = {name: state for name, state in late.items() if state != self.of_others.get(name)}
        for name, (_, mtime, _) in late.items():
            before, delay = self._delays.get(name, (0, 0))
            self._delays[name] = mtime, min(delay, mtime - written) if before == mtime else mtime - written
        return late

    def without_late(self, found: Contents, unit: Unit) -> Contents:
        """The folder without these: a file that is written all the time holds up no unit for ever."""
        late = self.late(found, unit)
        return replace(found, beside={name: state for name, state in found.beside.items() if name not in late})

    def _awaited(self, found: Contents, unit: Unit, late: Signature) -> str:
        """A file that came after the unit before is waited for twice as long as it took: till then it is the old one.
        One that came later than half way to this unit follows none.
        """
        written, rested = unit.written, self.rested(unit)
        for name, (mtime, delay) in self._delays.items():
            is_old = name not in late and found.beside.get(name, (0, 0, 0))[1] == mtime
            if is_old and delay < written - mtime and rested < min(2 * delay / 1e9, MOST_SECONDS):
                return f"{name} is not written yet"
        return ""

    def beside(self, found: Contents, unit: Unit, *, ended: bool = False) -> Signature:
        """Of the files beside the units those that rest and are whole: they go along with a unit. So do the pointers
        and what came after the unit, always: one that is written anew since it was judged makes its copy fail, for
        without it nobody could go on.
        """
        writing = open_for_writing(self._folder, found.beside)
        always = self.pointers(found) | self.late(found, unit)
        return always | {
            name: state
            for name, state in found.beside.items()
            if name not in writing
            and (ended or self._ages.of(name, state) >= REST_SECONDS)
            and looks_whole(self._folder / name)
        }

    def pointers(self, found: Contents) -> Signature:
        """Of the files beside the units those that say which unit is the last. A ``latest`` that only another node's
        rank writes stands here as it was restored, and says nothing of what came after.
        """
        own = {name: state for name, state in found.beside.items() if self.of_others.get(name) != state}
        return {name: state for name, state in own.items() if _is_pointer(name) and state[0] <= _POINTER_BYTES}

    def _base(self, unit: Unit) -> Path:
        inside = self._folder / unit.name
        return inside if unit.name and inside.is_dir() else self._folder

    def _missing(self, unit: Unit) -> str:
        base = self._base(unit)
        for rank, globs in self._expected:
            paths = (path.relative_to(self._folder).as_posix() for each in globs for path in globbed(base, each))
            if not any(path in unit.files for path in paths):
                return f"there is no {globs[0]} of rank {rank}"
        return ""

    def _unfinished(self, unit: Unit) -> str:
        for name in unit.files if unit.name and self._first else ():
            path = self._folder / name
            for first, last in _WRITTEN_LAST:
                if fnmatchcase(path.name, first) and not path.with_name(last).is_file():
                    return f"{name} is there, but not yet {last}"
        return ""

    def _scattered(self, unit: Unit) -> str:
        """Half of a distributed checkpoint can never be loaded: without ``writers = "every"`` all must be here."""
        if self._args.checkpoint_writers == "every":
            return ""
        for name in unit.files:
            path = self._folder / name
            for shard in _shards(path) if path.name == ".metadata" else ():
                if path.relative_to(self._folder).with_name(shard).as_posix() not in unit.files:
                    where = 'where other nodes write to their own disks, checkpoint.writers = "every" brings all of it'
                    return f"{name} names {shard}, which is not here; {where}"
        return ""

    def _unmarked(self, unit: Unit, newest: bool) -> str:
        if not self._marker or any(path.is_file() for path in globbed(self._base(unit), self._marker)):
            return ""
        beside = [path for path in globbed(self._folder, self._marker) if path.is_file()]
        if unit.name and (any(_names(path, unit) for path in beside) or (beside and not newest)):
            return ""
        return f"{beside[0].name} names another" if beside else f"its marker {self._marker} is not there"

    def _elsewhere(self, found: Contents, unit: Unit, pointers: Signature) -> str:
        """A script that goes on from the unit that ``latest`` names must find that one."""
        for name, (size, _, _) in pointers.items():
            path = self._folder / name
            if not size or (_names_any(path, found) and not _names(path, unit)):
                return f"{name} names another"
        return ""

    def _whole(self, unit: Unit, name: str) -> bool:
        path = self._folder / name
        empty_marker = self._marker and unit.files[name][0] == 0 and path in globbed(self._base(unit), self._marker)
        return bool(empty_marker) or looks_whole(path)


def _shards(metadata: Path) -> list[str]:
    try:
        return sorted({name.decode() for name in _SHARD.findall(metadata.read_bytes())})
    except OSError:
        return []  # it has gone meanwhile, which the last look at the folder sees


def _is_pointer(name: str) -> bool:
    return "/" not in name and name.startswith(("latest", "last"))


def _said(path: Path) -> list[str]:
    """What a pointer says, of each path its last part: one name, or of JSON and the like its words."""
    try:
        text = path.read_bytes()[:_POINTER_BYTES].decode().strip()
    except (OSError, UnicodeDecodeError):
        return []
    words = _WORD.findall(text) if text[:1] in ("{", "[", '"') else [text]
    return [word.rstrip("/").rpartition("/")[2] for word in words]


def _names(path: Path, unit: Unit) -> bool:
    said, entries = _said(path), {unit.name, *(name.partition("/")[0] for name in unit.files)}
    return any(unit.step == int(word) if word.isascii() and word.isdigit() else word in entries for word in said)


def _names_any(path: Path, found: Contents) -> bool:
    """A unit that is there, or one name that is a step or looks like those that are: {"loss": 3} names none."""
    said = _said(path)
    is_number = len(said) == 1 and said[0].isascii() and said[0].isdigit()
    return is_number or any(step_in(word) is not None for word in said) or any(_names(path, u) for u in found.units)
