"""What is said of each commit of a script's files: its step, and whether it is progress."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.launch.file_step import FileStep, file_step, further
from argosy.steps.launch.step_clock import Label, StepClock, Word
from argosy.steps.launch.units import Unit, numbers_in
from argosy.steps.launch.whole_files import Signature, newest_change

PROGRESS = "progress"
"""In a root's ``meta``: how many commits before it, and it, were progress."""
BEFORE = "before"
"""In a root's ``meta``: of the last commits that were progress the first digits of what they hold, and its own."""
_DIGITS, _MOST = 8, 500
Content = Mapping[str, str]
"""Path -> SHA-256."""


class Labelling:
    """Of one restart's commits, in order.

    Progress is new content from a later save, whatever it is called: a commit renews the budget for restarts, so a
    script that saves the restored state again and then crashes must not have it for that. What the first save after a
    restore holds is later when its files name a later step or training had moved; the second is in any case. What was
    committed at any time before is where the run has been: a script that reads nothing back comes by there each time.
    """

    def __init__(
        self,
        folder: Path,
        restored: Checkpoint | None,
        found: Unit | None = None,
        globs: Sequence[str] = (),
        late: Signature | None = None,
    ) -> None:
        """``restored``: what the script found in the folder, as the unit ``found`` and what came ``late`` to it;
        ``globs`` of the files.
        """
        self._folder, self._globs = folder, globs
        self._clock = StepClock(0 if restored is None else restored.step)
        self._restored = restored
        self._progress = 0 if restored is None else progress_of(restored)
        self._before = [] if restored is None else _before(restored)
        self._contents = [] if restored is None else [{file.path: file.sha256 for file in restored.files}]
        self._hashed: tuple[Content | None, str] = (None, "")
        self._saves = 0
        self._late = 0.0
        """When what came after the unit was written."""
        self._label = Label(0 if restored is None else restored.step, "file")
        self._found = None if restored is None or found is None else (found.name, found.files)
        self._committed = None if self._found is None else (self._found[0], {**self._found[1], **(late or {})})
        """The unit that was committed last, with that label."""
        self._seen: dict[str, tuple[Signature, float, bool]] = {}
        """Unit -> its files when they were looked at last, since when they change, and whether they did just then."""

    def tell(self, word: Word, *, anew: bool) -> None:
        """Take note that rank 0 finished a step."""
        self._clock.tell(word, anew=anew)

    def look(self, units: Iterable[Unit]) -> None:
        """The folder was looked at; called often, so that it is known when a save began."""
        for unit in units:
            files, began, changing = self._seen.get(unit.name, ({}, 0.0, False))
            changed = unit.files != files
            if changed and not changing:
                # A file that is written anew is empty for an instant, and has the time of the save before still.
                old = {state[1] for state in files.values()}
                began = min([time.time(), *(state[1] / 1e9 for state in unit.files.values() if state[1] not in old)])
            self._seen[unit.name] = (dict(unit.files), began, changed)

    def label(self, unit: Unit, late: Signature | None = None, *, final: bool = False) -> Label:
        """The step of these files, and of what came ``late``; ``final``: every rank has ended, no more is told."""
        late = late or {}
        self._late = newest_change(late)
        if final and (label := self._clock.at_the_end(self._told(unit, late))) is not None:
            return label
        if self._committed == (unit.name, {**unit.files, **late}):
            return self._label
        self.look([unit])
        known = self._told(unit, late)
        if known.source == "file" and not self._is_as_found(unit):
            known = max(known, self._rewritten(unit) or known, key=lambda each: each.step or 0)
        told = (known.epoch or 0) if known.step is None else known.step
        if told <= self._label.step and self._clock.is_mute and self._is_no_further(unit):
            return self._label
        began, changed = self._seen[unit.name][1], newest_change(unit.files)
        name, files = self._committed or ("", {})
        if late and name == unit.name and unit.files.items() <= files.items():  # they alone were written
            began = changed = self._late
        return self._clock.label(known, began, changed)

    def _told(self, unit: Unit, late: Signature) -> FileStep:
        return further(self._folder, unit, late) or file_step(self._folder, unit, self._globs)

    def _is_no_further(self, unit: Unit) -> bool:
        """Whether no file that bears a number was written since the restore, or nothing that was restored if none does:
        a script that had no step left to make writes its model only.
        """
        return self._saves == 0 and self._is_as_found(unit)

    def _is_as_found(self, unit: Unit) -> bool:
        name, files = self._found or (None, {})
        told = [path for path in {**files, **unit.files} if numbers_in(path)] or files
        return name == unit.name and all(files.get(path) == unit.files.get(path) for path in told)

    def _rewritten(self, unit: Unit) -> FileStep | None:
        """What files tell that were restored and are others now: a model beside them may be the best one's."""
        _, files = self._found or (None, {})
        others = {path: state for path, state in unit.files.items() if files.get(path, state) != state}
        if not others or others == unit.files:  # then all of its files have told it already
            return None
        known = file_step(self._folder, replace(unit, files=others), self._globs)
        return known if known.source == "file" and known.step is not None else None

    def is_new(self, content: Content) -> bool:
        """Whether these files were neither restored nor committed last."""
        return content not in self._contents

    def progress(self, unit: Unit, label: Label, *, new: bool, content: Content | None = None) -> int:
        """The count to commit with; ``new``: see :meth:`is_new`. ``content``: None where it is not known."""
        if content and self._digits(content) in self._before:
            return self._progress
        first = self._restored is not None and self._saves == 0
        named = label.source in ("name", "file") and self._restored is not None and label.step > self._restored.step
        later = not first or named or self._clock.has_moved(max(newest_change(unit.files), self._late))
        return self._progress + 1 if new and later else self._progress

    def meta(self, content: Content, progress: int) -> dict[str, Any]:
        """What the commit says for the restarts to come."""
        return {PROGRESS: progress, BEFORE: "".join(self._known(content, progress))}

    def committed(
        self, unit: Unit, label: Label, content: Content, progress: int, late: Signature | None = None
    ) -> None:
        """Take note that the files were committed with this label."""
        self._clock.committed(label)
        self._label, self._committed = label, (unit.name, {**unit.files, **(late or {})})
        self._before = self._known(content, progress)
        self._progress, self._saves = progress, self._saves + 1
        self._contents = [*self._contents[-1:], dict(content)]

    def _digits(self, content: Content) -> str:
        """Of a long list once, however often it is asked for."""
        if content is not self._hashed[0]:
            text = json.dumps(content, sort_keys=True)
            self._hashed = (content, hashlib.sha256(text.encode()).hexdigest()[:_DIGITS])
        return self._hashed[1]

    def _known(self, content: Content, progress: int) -> list[str]:
        """What will have been progress when this is committed."""
        news = [self._digits(content)] if content and progress > self._progress else []
        return [*self._before, *news][-_MOST:]


def _before(checkpoint: Checkpoint) -> list[str]:
    found = str(checkpoint.meta.get(BEFORE, ""))
    return [found[at : at + _DIGITS] for at in range(0, len(found), _DIGITS)]


def progress_of(checkpoint: Checkpoint) -> int:
    """The count of a commit; a Checkpointer's is its step, which the script tells."""
    found = checkpoint.meta.get(PROGRESS)
    return found if isinstance(found, int) else checkpoint.step
