"""Progress bars as tqdm, Keras and Lightning with rich draw them: which of them counts the steps of the training?"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BAR = re.compile(r"^(?P<what>[^|]*?)[:\s]*\d+%\|[^|]*\|\s*(?P<step>\d+)/(?P<end>\d+)\s*\[")
_TRAINS = re.compile(r"(?i)\b(?:train|step|iter|epoch|optim|progress)")
_OTHER = re.compile(
    r"(?i)\b(?:eval|valid|val|test|sanity|predict|map|filter|load|download|fetch|token|group|pack|generat|skip|sav|"
    r"writ|upload|cast|extract|convert|warm)"
)
_EPOCH = re.compile(r"(?i)\bepochs?\s*[:#=\[]?\s*(?P<epoch>\d+)(?:\s*/\s*(?P<epochs>\d+))?")
_KERAS_EPOCH = re.compile(r"Epoch (?P<epoch>\d+)/(?P<epochs>\d+)")
_KERAS = re.compile(r"(?P<step>\d+)/(?P<end>\d+) (?:\[[=>.]+\]|━+) ")
"""Before Keras 3 and since: https://github.com/keras-team/keras/blob/master/keras/src/utils/progbar.py"""

_RICH = re.compile(
    # "Epoch 4/5  ━━━━━━━━ 10/10 0:00:01 • 0:00:00 9.73it/s train_loss: 0.020"
    r"\s*Epoch (?P<epoch>\d+)(?:/(?P<last>-?\d+))?\s+[━╸╺\s]*(?P<step>\d+)/(?P<end>\d+)\s+\d+:\d\d:\d\d •"
)
"""Lightning's, which counts epochs from 0 and names the last: drawn once, at the end, where no terminal is."""


@dataclass(frozen=True)
class Bar:
    """``step`` of ``end`` (0: not known); ``per_epoch``: it is a bar of one epoch's batches, so many; ``relative``: the
    epochs are counted from the start of the process.
    """

    step: int
    end: int
    per_epoch: int = 0
    relative: bool = False


class Bars:
    """Reads lines in order.

    A bar with no words, or with words for training, may count steps; of two without the same end the first does,
    unless it came to its end before any loss was told (it counted what was prepared). A bar that begins again is one
    of an epoch.
    """

    def __init__(self) -> None:
        self.number = 0
        """Which bar is read, counted from 1."""
        self._key: tuple[str, int] | None = None
        self._last = 0
        self._before = 0
        self._loss = False
        self._keras = KerasBars()

    def lost(self) -> None:
        """Take note that a loss was told: the bar that counts now is training's."""
        self._loss = True

    def read(self, line: str) -> Bar | None:
        """The bar that the line shows, when it counts steps and one is done."""
        if keras := self._keras.read(line):
            return keras
        if (rich := _RICH.match(line)) and (int(rich["step"]) or int(rich["epoch"])):
            batches, epochs = int(rich["end"]), max(0, int(rich["last"] or -1) + 1)
            return Bar(int(rich["epoch"]) * batches + int(rich["step"]), epochs * batches, batches)
        found = _BAR.match(line)
        if found is None or ((what := found["what"].strip()) and (_OTHER.search(what) or not _TRAINS.search(what))):
            return None
        step, end = int(found["step"]), int(found["end"])
        if epoch := _EPOCH.search(what):
            number, epochs = int(epoch["epoch"]) - (1 if epoch["epochs"] else 0), int(epoch["epochs"] or 0)
            return Bar(number * end + step, epochs * end, end) if step else None
        key = (re.sub(r"\d+", "#", what), end)
        if key != self._key:
            if self._key is not None and (self._loss or self._last < self._key[1]):
                return None
            self._key, self._last, self._before = key, 0, 0
            self.number += 1
        if step < self._last:
            self._before += end
        self._last = step
        if not step:
            return None
        if self._before:
            return Bar(self._before + step, 0, end, relative=True)
        return Bar(step, end)


class KerasBars:
    """Keras says the epoch in a line of its own, and below it draws a bar of that epoch's batches.

    A bar of another length is that of an evaluation; epochs that begin again are those of another call of fit.
    """

    def __init__(self) -> None:
        self._epoch = self._epochs = self._batches = self._before = 0

    def read(self, line: str) -> Bar | None:
        """The bar that the line shows."""
        if found := _KERAS_EPOCH.fullmatch(line.strip()):
            epoch = int(found["epoch"])
            if epoch <= self._epoch:
                self._before += self._epoch * self._batches
            self._epoch, self._epochs = epoch, int(found["epochs"])
        found = _KERAS.match(line) if self._epoch else None
        if found is None or self._batches not in (0, int(found["end"])):
            return None
        self._batches = int(found["end"])
        step = (self._epoch - 1) * self._batches + int(found["step"])
        if self._before:
            return Bar(self._before + step, 0, self._batches, relative=True)
        return Bar(step, self._epochs * self._batches, self._batches)
