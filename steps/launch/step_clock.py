"""Which step belongs to the files that a script saved? Their names and contents first, then what it printed."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from operator import sub
from statistics import median
from typing import Literal

from argosy.steps.launch.file_step import FileStep

_KEPT = 10_000
_LATE_SECONDS = 0.05
"""So late a word may be read that was printed before the save began."""
_BURST_SECONDS = 1.0
"""What a script prints without flushing is read so late."""
_SURE = ("own", "line", "report")
"""Kinds of words that are believed against a number in a name."""
_CLEARLY = 2.0
"""So many times nearer the word after a save is than the one before, and than words are to each other, to belong to it.
"""
_RECENT = 10
"""Words before a save that tell how far steps lie apart; between two of them something else may have been done."""
Source = Literal["name", "file", "print", "count"]


@dataclass(frozen=True)
class Word:
    """Rank 0 finished ``step``, told at ``when`` (seconds since 1970); ``end``: the last one, 0: not known."""

    step: int
    when: float
    kind: str = "line"
    end: int = 0
    per_epoch: int = 0
    relative: bool = False


@dataclass(frozen=True)
class Label:
    """The step of a commit, and what tells it; ``told``: what the script's words had come to by then (None: it has told
    none), ``relative`` when they count from the start of the process.
    """

    step: int
    source: Source
    told: int | None = None
    relative: bool = False


class StepClock:
    """The steps that rank 0 told, and when."""

    def __init__(self, resume_step: int) -> None:
        """``resume_step``: of what was restored, 0 for nothing."""
        self._restored = resume_step
        self._last = 0
        """Of the last commit of this restart."""
        self._words: deque[Word] = deque(maxlen=_KEPT)
        self._stride = 0
        self._saved_at = 0
        """What had been told at the commit before."""

    @property
    def last(self) -> int:
        """Step of the last commit, or of what was restored."""
        return self._last or self._restored

    @property
    def is_mute(self) -> bool:
        """Whether no step was ever told."""
        return not self._words

    def tell(self, word: Word, *, anew: bool = False) -> None:
        """A step was told; ``anew``: the words before were of something else."""
        if anew:
            self._words.clear()
            self._stride = self._saved_at = 0
        while self._words and self._words[-1].when > word.when:  # the clock was set back: files are of the new time
            self._words.pop()
        if self._words:
            self._stride = max(self._stride, word.step - self._words[-1].step)
        self._words.append(word)

    def has_moved(self, changed: float) -> bool:
        """Whether two words told before ``changed`` differ: training goes on, whatever it counts."""
        steps = [word.step for word in self._words if word.when <= changed]
        return len(steps) > 1 and steps[-1] > steps[0]

    def committed(self, label: Label) -> None:
        """Take note that a checkpoint was committed with this label."""
        self._last = label.step
        self._saved_at = label.told or 0

    def label(self, known: FileStep, began: float, changed: float) -> Label:
        """``known``: what the files tell; they were written from ``began`` to ``changed``, seconds since 1970.

        Within a restart steps never go back.
        """
        word = self._nearest(began, changed)
        told, relative = (None, False) if word is None else (word.step, word.relative)
        alike = known.step is not None and word is not None and self._counts_alike(known.step, word, began, changed)
        if known.step is not None and self._plausible(known, word, alike):
            told = known.step if alike else told
            return Label(max(known.step, self._last), "file" if known.source == "file" else "name", told, relative)
        if word is not None and self._believed(word):
            step = max(self._of_epoch(word, known.epoch, began, changed), self._last)
            return Label(step, "print", step, relative)
        if known.epoch is not None and known.epoch > self.last:
            return Label(known.epoch, "file", told, relative)
        return Label(self.last + 1, "count", told, relative)

    def at_the_end(self, known: FileStep) -> Label | None:
        """Of the step told last, where the files name it as their epoch, or the next: it may have been read after they
        were written. While more may come it could be the next one's, of a script that counts what it prints from 0.
        """
        word = self._words[-1] if self._words else None
        if word is None or known.step is not None or known.epoch is None or word.step < self.last:
            return None
        if known.epoch - word.step not in (0, 1) or not self._believed(word):
            return None
        return Label(word.step, "print", word.step, word.relative)

    def _counts_alike(self, step: int, nearest: Word, began: float, changed: float) -> bool:
        """Whether the words count as the files do: the nearest word is not further from ``step`` than two of them lie
        apart, or that very number was told about then, for words of quick steps are read in bursts.
        """
        if nearest.step - self._stride <= step <= nearest.step + max(1, self._stride):
            return True
        about = (word for word in self._words if began - _BURST_SECONDS <= word.when <= changed + _BURST_SECONDS)
        return any(word.step == step for word in about)

    def _nearest(self, began: float, changed: float) -> Word | None:
        """The word that belongs to a save: a script tells the step and saves, or saves and tells it. The one after
        belongs to it when it came at once: not a step's time later, whatever else was done before the save.
        """
        words = list(self._words)
        after = bisect_right(words, began, key=lambda word: word.when)
        before, later = words[after - 1] if after else None, words[after] if after < len(words) else None
        if later is None or changed >= later.when > began + _LATE_SECONDS:
            return before  # words came while it was written: it is saved beside the training
        if before is None:
            return later if later.when <= began + _LATE_SECONDS else None
        recent = list({word.step: word.when for word in words[max(0, after - _RECENT) : after]}.values())
        apart = median(map(sub, recent[1:], recent)) if len(recent) > 1 else math.inf
        late = later.when - (changed if later.when > changed else began)
        return later if _CLEARLY * late < min(began - before.when, apart) else before

    def _believed(self, word: Word) -> bool:
        """A bar is, when it has advanced since the save before, and did not merely come to its end."""
        if word.kind != "bar":
            return word.kind != "epoch" or word.step > self.last
        return word.step > self._saved_at and not (self._saved_at == 0 and word.step == word.end and not word.per_epoch)

    def _plausible(self, known: FileStep, word: Word | None, alike: bool) -> bool:
        """Names may count tokens or samples: where the script tells steps in words, twice at least, a name's number is
        not further ahead of them than they lie apart. A number alone is ``alike``: near them.
        """
        if known.source == "number":
            return alike or word is None or word.relative
        if known.source == "file" or word is None or word.kind not in _SURE or self._stride == 0 or word.relative:
            return True
        return known.step is not None and known.step <= max(word.step + self._stride, self._words[-1].step)

    def _of_epoch(self, word: Word, epoch: int | None, began: float, changed: float) -> int:
        """A save that names its epoch was made at an epoch's end, after the last batch that was told; where batches are
        quick, ``word`` may be of the next epoch already, and the end lies between what was told when the save began.
        Saves that follow each other within a look are seen as one, which began with the first of them: then the end
        lies between what was told when it began and when it changed last.
        """
        if epoch is None or not word.per_epoch:
            return word.step
        ends = (epoch * word.per_epoch, (epoch + 1) * word.per_epoch)
        told = max((each.step for each in self._words if each.when <= began), default=word.step)
        if (between := next((end for end in ends if told <= end <= word.step), 0)) > 0:
            return between
        if (next_end := next((end for end in ends if word.step <= end < word.step + word.per_epoch), 0)) > 0:
            return next_end
        latest = max((each.step for each in self._words if each.when <= changed + _LATE_SECONDS), default=0)
        return max((end for end in ends if word.step < end <= latest), default=word.step)
