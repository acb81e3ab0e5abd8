"""Step and loss of a plain script, read from what it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from argosy.steps.contract.errors import InputError
from argosy.steps.launch.bars import Bar, Bars

Kind = Literal["own", "line", "batch", "bar", "epoch"]
STRENGTH: dict[Kind, int] = {"own": 5, "line": 4, "batch": 3, "bar": 2, "epoch": 1}
"""What is believed rather: the user's pattern, a step in words, a batch of an epoch, a bar, what may be an epoch."""

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|(?:nan|inf(?:inity)?)\b)"
_LOSS = re.compile(
    # "train_loss=0.4", "Loss_D: 0.4" of a GAN
    r"(?i)(?<!eval_)(?<!val_)(?<!valid_)(?<!test_)(?:loss(?:_?[dg])?|\bmse|\bnll)"
    rf"['\"]?\s*[:=|]?\s*['\"]?(?P<loss>{_NUMBER})"
)
_STEP = re.compile(
    # "step 10/200", "global_step=10", "completed_steps: 10", "iter 10:", "Epoch 1 step 10", "[step:10]", '{"step": 10'
    r"(?i)\b(?:(?:global|completed|current|train(?:ing)?|update|optim(?:izer)?)[_ ]?)?(?:step|iter(?:ation)?)s?"
    r"['\"]?\s*[:=#\[]?\s*(?P<step>\d+)(?:\s*/\s*(?P<end>\d+))?"
)
_EPOCH = re.compile(r"(?i)\bepoch['\"]?\s*[:=#]?\s*\[?\s*(?P<epoch>\d+)(?!\.?\d)(?:\s*/\s*(?P<epochs>\d+))?")
_SUMMARY = "train_runtime"
"""Hugging Face's last line, whose loss is a mean."""
_BATCH = re.compile(
    # "Epoch: [3][  1/40]", "Train: 3 [  50/1251 (4%)]", "Epoch [2/24]: [50/391]", "[2/25][50/391] Loss_D: 0.4"
    r"(?i)(?:\b(?:epoch|train)\w*\s*:?\s*\[?|\[(?=\d+/\d+\]\[.*\bloss_?d))"
    r"(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\]?\s*:?\s*\[\s*(?P<step>\d+)/(?P<end>\d+)"
)
_COUNT = re.compile(r"\[\s*(?P<step>[1-9]\d*)\s*/\s*(?P<end>\d+)\s*\]")
"""``[10/100]``: steps, or epochs."""
_OTHERS = re.compile(r"(?i)\b(?:eval|val|test|rank|fold)")
_LONGEST = 4096
"""Characters that are looked at, at both ends: a page of digits or spaces would cost seconds, in which its rank waits
to print on."""


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """The user's ``progress_pattern``; None for the built-in ones.

    Raises:
        InputError: not a regular expression, or without a group ``step``.
    """
    if not pattern:
        return None
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"progress_pattern = {pattern!r}: not a regular expression: {error}") from error
    if "step" not in compiled.groupindex:
        raise InputError(f"progress_pattern = {pattern!r}: name the step: (?P<step>[0-9]+)")
    return compiled


@dataclass(frozen=True)
class Told:
    """One reading: ``per_epoch`` steps are an epoch, 0: not known."""

    kind: Kind
    step: int
    end: int = 0
    per_epoch: int = 0
    bar: int = 0
    """Which bar it was."""
    relative: bool = False
    """It counts from the start of the process, so after a resume it is another step's."""


class ProgressLines:
    """Reads lines in order; reports a step once, and only when it is greater than the last one.

    Of several words for a step the strongest kind seen so far is read, so that an epoch is never taken for a step.
    When a stronger one appears the count begins anew. A bar tells steps; losses in lines of their own are its.
    """

    def __init__(self, pattern: str = "", restored: int = 0) -> None:
        """``pattern``: the user's own, with named groups ``step`` and perhaps ``loss``; ``restored``: the step that the
        script goes on from, if it does.
        """
        self._own = compile_pattern(pattern)
        self._restored = restored
        self._first_epoch: int | None = None
        self._first_batch = 1
        self._bars = Bars()
        self._last: Told | None = None
        self._epoch = (-1, 0, 0)
        """Of a counter of batches: the epoch, the batch told last, and the steps of the epochs before."""
        self._loss: float | None = None
        """Told in a line without a step."""

    def read(self, line: str) -> dict[str, Any] | None:
        """{"step", "kind", "loss"?, "end_step"?, "per_epoch"?, "relative"?, "anew"?} of a line that tells a new step;
        ``anew``: the count before was of something else.
        """
        own = self._own.search(line) if self._own is not None else None
        if len(line) > _LONGEST:  # a number that is cut would be another
            half = _LONGEST // 2
            line = f"{line[:half].rstrip('0123456789.')} ... {line[-half:].lstrip('0123456789.')}"
        loss = self._loss_in(line, own)
        told = self._told(line, own, loss)
        if told is None:
            if self._own is None and "epoch" in line and _SUMMARY not in line:
                self._keep(loss)
            return None
        before = self._last
        if before is not None and STRENGTH[told.kind] < STRENGTH[before.kind]:
            if before.kind == "bar" and _SUMMARY not in line:
                self._keep(loss)
            return None
        loss, self._loss = (loss, None) if loss is not None else (self._loss, None)
        anew = before is not None and (STRENGTH[before.kind] < STRENGTH[told.kind] or before.bar != told.bar)
        if (
            before is not None
            and not anew
            and told.step <= before.step
            and not (told.step == before.step and loss is not None)
        ):
            return None
        self._last = told
        extra = {"end_step": told.end, "per_epoch": told.per_epoch, "relative": told.relative, "anew": anew}
        given = {key: value for key, value in extra.items() if value}
        return {"step": told.step, "kind": told.kind, **given, **({} if loss is None else {"loss": loss})}

    def _keep(self, loss: float | None) -> None:
        """A loss in a line of its own is that of the bar's next state."""
        if loss is not None:
            self._loss = loss
            self._bars.lost()

    def _told(self, line: str, own: re.Match[str] | None, loss: float | None) -> Told | None:
        if self._own is not None:
            return None if own is None else _own(own)
        bar = self._bars.read(line)
        if loss is None and not _LOSS.search(line):
            return None if bar is None else self._bar(bar)
        if bar is not None:
            self._bars.lost()
        if (found := _BATCH.search(line)) and bar is None:
            return self._batch(found)
        if found := _STEP.search(line):
            return self._line(found, _EPOCH.search(line))
        if bar is not None:
            return self._bar(bar)
        if found := _EPOCH.search(line):
            return Told("epoch", int(found["epoch"]), int(found["epochs"] or 0))
        before = line[: told.start()] if (told := _LOSS.search(line)) else line
        if len(counts := list(_COUNT.finditer(line))) == 1 and not _OTHERS.search(before):
            return Told("epoch", int(counts[0]["step"]), int(counts[0]["end"]))
        return None

    def _bar(self, bar: Bar) -> Told:
        return Told("bar", bar.step, bar.end, bar.per_epoch, self._bars.number, bar.relative)

    def _batch(self, found: re.Match[str]) -> Told:
        per_epoch, epochs = int(found["end"]), int(found["epochs"] or 0)
        epoch, step = int(found["epoch"]), int(found["step"])
        self._first_batch = min(self._first_batch, step)
        step += 1 - self._first_batch
        if self._first_epoch is None:
            # "2/24" counts epochs from 1, a bare number mostly from 0; one goes on in the epoch of what is restored.
            goes_on = bool(self._restored and per_epoch) and self._restored // per_epoch == epoch
            self._first_epoch = 0 if epoch == 0 or not epochs or goes_on else 1
        return Told("batch", (epoch - self._first_epoch) * per_epoch + step, epochs * per_epoch, per_epoch)

    def _line(self, found: re.Match[str], epoch: re.Match[str] | None) -> Told:
        step, end = int(found["step"]), int(found["end"] or 0)
        if epoch is None:
            return Told("line", step, end)
        now, last, before = self._epoch
        if int(epoch["epoch"]) > now >= 0 and step <= last:
            before += last + 1 if step == 0 else last  # it counts the batches of an epoch
        self._epoch = (int(epoch["epoch"]), step, before)
        return Told("line", step + before, end if before == 0 else 0, relative=before > 0)

    @staticmethod
    def _loss_in(line: str, own: re.Match[str] | None) -> float | None:
        text = own.groupdict().get("loss") if own is not None else (_LOSS.search(line) or {"loss": None})["loss"]
        try:
            return float(text) if text else None
        except ValueError:
            return None


def _own(found: re.Match[str]) -> Told | None:
    groups = found.groupdict()
    try:
        return Told("own", int(groups["step"]), int(groups.get("end") or 0))
    except (TypeError, ValueError):
        return None
