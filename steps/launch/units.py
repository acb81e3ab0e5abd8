"""Which checkpoints lie in a script's folder: each numbered entry is one, or all files together are one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.whole_files import Signature, newest_change, signature

_WORDS = "checkpoint|ckpt|global_?step|step|iteration|iter|epoch"
_NAME = re.compile(rf"(?!tmp|temp)(?:[A-Za-z0-9][\w=.+-]*[-_=.])?(?:{_WORDS})s?[-_=]?\d+(?:\.ckpt|\.pt)?", re.A | re.I)
"""checkpoint-500, global_step500, iter_0000500, epoch=1-step=10.ckpt; not tmp-checkpoint-500."""
_STEP = re.compile(r"(?<![A-Za-z])(?:checkpoint|ckpt|global_?step|step|iteration|iter)s?[-_=]?(\d+)", re.A | re.I)
_EPOCH = re.compile(r"(?<![A-Za-z])epochs?[-_=]?(\d+)", re.A | re.I)
_RANK = re.compile(r"(?i)(?:rank|node|worker|proc|part|shard)[-_=]?\d+")
_LAST = re.compile(r"(?i)(?<![a-z])(?:last|latest)(?![a-z])")
"""What libraries call the file that a restart goes on from; a best model or a replay buffer says nothing of a save."""
_LONE = re.compile(r"(?<![A-Za-z0-9.])(\d+)(?![A-Za-z0-9]|\.\d)")


@dataclass(frozen=True)
class Unit:
    """One checkpoint: the files of a numbered folder, the files of one step, or (name "") all there are."""

    name: str
    files: Signature
    step: int | None

    @property
    def order(self) -> tuple[int, float]:
        """Sorts by age: the step in the name where it has one, then the time."""
        return (-1 if self.step is None else self.step, newest_change(self.files))

    @property
    def written(self) -> int:
        """When its files last changed, in ns since 1970; 0 without files."""
        return max((mtime for _, mtime, _ in self.files.values()), default=0)

    @property
    def epoch(self) -> int | None:
        """The greatest that its name tells, or those of its files."""
        return _epoch({path.partition("/")[0] for path in self.files})


@dataclass(frozen=True)
class Contents:
    """What lies in a folder: the checkpoints, oldest first, and the matching files that belong to none."""

    units: tuple[Unit, ...]
    beside: Signature

    @property
    def files(self) -> Signature:
        """All of them."""
        return {**self.beside, **{name: state for unit in self.units for name, state in unit.files.items()}}


def step_in(name: str) -> int | None:
    """The step that a name tells: 500 for ``checkpoint-500``; None when it tells none, or several."""
    found = {int(number) for number in _STEP.findall(name)}
    return found.pop() if len(found) == 1 else None


def is_later(name: str, than: str) -> bool:
    """Whether the names of two units tell that the one comes after the other; where both name an epoch, that is what
    counts first: the steps may count anew in each.
    """
    mine, other = _number(name), _number(than)
    if mine is None or other is None:
        return False
    epoch, others = _epoch({name}), _epoch({than})
    return mine > other if epoch is None or others is None else (epoch, mine) > (others, other)


def _epoch(names: Iterable[str]) -> int | None:
    return max((int(number) for name in names for number in _EPOCH.findall(name)), default=None)


def is_numbered(name: str) -> bool:
    """Whether a unit's name tells its place among others."""
    return _number(name) is not None


def _number(name: str) -> int | None:
    step, numbers = step_in(name), re.findall(r"\d+", name)
    return int(numbers[0]) if step is None and len(numbers) == 1 else step


def numbers_in(name: str) -> list[int]:
    """The numbers that stand for themselves in a file's name: [100] for ``optim_000100_rank3.pt``, [] for ``v2.pt``."""
    return [int(number) for number in _LONE.findall(_RANK.sub("", name.rpartition("/")[2]))]


def contents(folder: Path, args: LaunchArgs) -> Contents:
    """The folder as it is now."""
    groups: dict[str, Signature] = {}
    beside: Signature = {}
    for path, state in signature(folder, args.checkpoint_include).items():
        name = unit_of(path, args.checkpoint_unit)
        (groups.setdefault(name, {}) if name else beside)[path] = state
    units = sorted((Unit(name, files, step_in(name)) for name, files in groups.items()), key=lambda unit: unit.order)
    if all(unit.step is not None and unit.epoch is not None for unit in units):
        units.sort(key=lambda unit: unit.epoch or 0)  # the steps may count anew in each
    if not units and not args.checkpoint_unit and beside:
        return Contents((Unit("", beside, None),), {})
    return Contents(tuple(units), beside)


def late_files(found: Contents, unit: Unit) -> Signature:
    """Of the files beside the unit the last ones of its kind that were written after it: Lightning's ``last.ckpt``,
    which holds all that a restart reads, follows the file that is named by its step, or alone where that is no better.
    """
    kinds, written = {_kind(name) for name in unit.files} - {""} if unit.name else set(), unit.written
    return {
        name: state
        for name, state in found.beside.items()
        if state[1] > written and _kind(name) in kinds and _LAST.search(name.partition("/")[0])
    }


def _kind(name: str) -> str:
    return PurePosixPath(name.partition("/")[0]).suffix


def unit_of(path: str, globs: Sequence[str]) -> str:
    """Name of the unit that a file belongs to; "" when it lies beside them."""
    top, inside, _ = path.partition("/")
    if not (any(fnmatchcase(top, glob) for glob in globs) if globs else inside and _NAME.fullmatch(top)):
        return ""
    # Files of one step belong together, whichever rank's or part's name they bear (model_100.pt and optim_100.pt).
    step = step_in(top)
    if step is None and not inside and "epoch" not in top.lower() and len(numbers := numbers_in(top)) == 1:
        step = numbers[0]
    return top if inside or step is None else f"step={step}"


def is_unit(name: str, globs: Sequence[str]) -> bool:
    """Whether a folder of this name, directly below the checkpoint folder, is a checkpoint of its own."""
    return bool(unit_of(f"{name}/x", globs))
