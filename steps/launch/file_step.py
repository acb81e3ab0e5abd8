"""The step of a checkpoint as its own files tell it: by their names, or by what is in them. No torch, and no code of
the files is run: of a pickle only plain values are read, every class and function in it is a dead placeholder.
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import re
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from argosy.steps.launch.units import Unit, numbers_in
from argosy.steps.launch.whole_files import Signature, newest_change

_STEP_KEYS = (
    "global_step", "global_steps", "step", "steps", "num_steps", "iter_num", "iteration", "iterations", "iter",
    "completed_steps", "current_step", "train_step", "num_updates",
)  # fmt: skip
_PARTS = ("trainer", "trainer_state", "state", "progress", "meta", "metadata", "train_state", "engine")
_EPOCH_KEYS = ("epoch", "epochs", "current_epoch")
_SIDE = re.compile(r"(?i)^(?:random_states|rng_state|sched|optim|scaler|sampler|dl_state|dataloader|tokenizer|vocab)")
"""Files whose ``step`` counts something of their own."""
_LARGEST = 32 << 20
"""Of a pickle's values (its tensors lie elsewhere) or a JSON file."""
_MONTH = 30 * 86400.0
_FILES = 8
"""So many files of a checkpoint are looked into, the newest first."""


@dataclass(frozen=True)
class FileStep:
    """``step`` or ``epoch`` (None: not told); ``source`` is ``name``, ``file``, or ``number``: one without a word
    beside it and without siblings, so it may count epochs or saves.
    """

    step: int | None
    epoch: int | None
    source: str


def file_step(folder: Path, unit: Unit, globs: Sequence[str] = ()) -> FileStep:
    """What the unit's names and files tell; a file that cannot be read tells nothing. ``globs``: whose * may count."""
    saved = newest_change(unit.files)
    if unit.step is not None and not is_moment(unit.step, saved):
        return FileStep(unit.step, None, "name")
    newest = sorted(unit.files, key=lambda name: unit.files[name][1], reverse=True)
    epoch = unit.epoch if unit.name else None
    for name in [name for name in newest if not _SIDE.match(PurePosixPath(name).name)][:_FILES]:
        values = _values(folder / name)
        step = next(
            (step for each in (values, *_parts(values)) if (step := _first(each, _STEP_KEYS)) is not None), None
        )
        if step is not None:
            return FileStep(step, _first(values, _EPOCH_KEYS), "file")
        epoch = _first(values, _EPOCH_KEYS) if epoch is None else epoch
    if unit.name.isdecimal() and not is_moment(int(unit.name), saved):
        return FileStep(int(unit.name), None, "number")
    if epoch is None and (named := _numbered(newest)) is not None and not is_moment(named, saved):
        return FileStep(named, None, "name")
    patterns = (re.escape(glob).replace(r"\*", r"(\d+)") for glob in globs if glob.count("*") == 1)
    counted = [int(found[1]) for each in patterns for name in newest[:1] if (found := re.fullmatch(each, name))]
    if epoch is None and counted and not is_moment(counted[0], saved):
        return FileStep(counted[0], None, "number")
    return FileStep(None, epoch, "file")


def further(folder: Path, unit: Unit, late: Signature) -> FileStep | None:
    """What came ``late`` tells, where that is a later step than the unit: one that is no better than the best has no
    name of its own.
    """
    if not late:
        return None
    after = file_step(folder, Unit("", late, None))
    return after if after.source == "file" and (after.step or 0) > (file_step(folder, unit).step or 0) else None


def is_moment(number: int, saved: float) -> bool:
    """Whether a number in a name says when it was made, in seconds to nanoseconds since 1970 or as 20261127: it lies
    within a month of ``saved``, when the files were written (seconds since 1970).
    """
    if number >= 10**9 and any(abs(number / unit - saved) < _MONTH for unit in (1, 10**3, 10**6, 10**9)):
        return True
    return len(str(number)) in (8, 12, 14) and str(number).startswith(time.strftime("%Y%m", time.localtime(saved)))


def _numbered(newest: list[str]) -> int | None:
    """The number by which the newest file differs from its siblings: 20 of ``model_20.pt`` beside ``model_10.pt``."""
    kinds: dict[str, set[int]] = {}
    for name in newest:
        if len(numbers := numbers_in(name)) == 1:
            kinds.setdefault(re.sub(r"\d+", "#", name), set()).update(numbers)
    for name in newest[:1]:
        if len(kinds.get(re.sub(r"\d+", "#", name), ())) > 1:
            return numbers_in(name)[0]
    return None


def _first(values: Mapping[Any, Any], keys: Iterable[str]) -> int | None:
    found = (values[key] for key in keys if isinstance(values.get(key), int) and not isinstance(values[key], bool))
    return next((value for value in found if 0 <= value < 1 << 53), None)


def _parts(values: Mapping[Any, Any]) -> list[Mapping[Any, Any]]:
    """ignite and others keep the count with their trainer."""
    return [values[key] for key in _PARTS if isinstance(values.get(key), Mapping)]


def _values(path: Path) -> Mapping[Any, Any]:
    found: Any = None
    # Whatever is wrong with a foreign file, it only means that it tells no step.
    with contextlib.suppress(Exception):
        if path.suffix == ".json":
            found = json.loads(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
        else:
            found = _Plain(io.BytesIO(_pickled(path))).load()
    return found if isinstance(found, Mapping) else {}


def _pickled(path: Path) -> bytes:
    with path.open("rb") as source:
        head = source.read(2)
        if head[:1] == b"\x80" and path.stat().st_size <= _LARGEST:
            return head + source.read()
    if head != b"PK":
        return b""
    with zipfile.ZipFile(path) as archive:
        entry = next(info for info in archive.infolist() if info.filename.endswith("/data.pkl"))
        return archive.read(entry) if entry.file_size <= _LARGEST else b""


class _Dead(dict[Any, Any]):
    """Stands for every object of a pickle: takes whatever it is given, does nothing."""

    def __init__(self, *_args: Any, **_values: Any) -> None:
        super().__init__()

    def __setstate__(self, _state: Any) -> None:
        """Accept what a pickle sets, and keep nothing."""

    def append(self, _item: Any) -> None:
        """Accept what a pickle sets, and keep nothing."""

    def extend(self, _items: Iterable[Any]) -> None:
        """Accept what a pickle sets, and keep nothing."""

    def add(self, _item: Any) -> None:
        """Accept what a pickle sets, and keep nothing."""

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __hash__(self) -> int:  # type: ignore[override]  # a pickle may use it as a key
        return 0


class _Plain(pickle.Unpickler):
    def find_class(self, _module: str, _name: str) -> Any:
        """No name of a pickle is ever looked up."""
        return _Dead

    def persistent_load(self, _pid: Any) -> Any:
        """A tensor's storage."""
        return _Dead()
