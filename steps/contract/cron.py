"""Five fields of cron, as CronWorkflows have them: minute, hour, day of month, month, day of week; UTC."""

from __future__ import annotations

import time

from argosy.steps.contract.errors import InputError

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 6))
_MINUTES = 5 * 366 * 24 * 60


def check_cron(text: str) -> str:
    """``text`` unchanged, if it is a schedule.

    Raises:
        InputError: it has not five fields, one holds something else than numbers, ``*``, ``-``, ``/`` and ``,``, or
            it names a day that never comes.
    """
    next_time(text, 0.0)
    return text


def next_time(text: str, after: float) -> float:
    """The first minute after ``after`` (seconds since 1970) that the schedule names.

    Raises:
        InputError: it is no schedule, or names no minute of the next five years.
    """
    minutes, hours, days, months, weekdays = _parsed(text)
    # As cron has it: where both days are restricted, one of them is enough.
    either = len(days) < 31 and len(weekdays) < 7
    moment = (int(after) // 60 + 1) * 60
    end = moment + _MINUTES * 60
    while moment < end:
        at = time.gmtime(moment)
        on_day, on_weekday = at.tm_mday in days, (at.tm_wday + 1) % 7 in weekdays
        if at.tm_mon not in months or not (on_day or on_weekday if either else on_day and on_weekday):
            moment = (moment // 86400 + 1) * 86400
        elif at.tm_hour not in hours:
            moment = (moment // 3600 + 1) * 3600
        elif at.tm_min not in minutes:
            moment += 60
        else:
            return float(moment)
    raise InputError(f"schedule = {text!r}: names no time of the next five years")


def _parsed(text: str) -> list[set[int]]:
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise InputError(f"schedule = {text!r}: has {len(parts)} fields, cron has five")
    return [_field(text, part, *field) for part, field in zip(parts, _FIELDS, strict=True)]


def _field(text: str, part: str, name: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for piece in part.split(","):
        span, slash, step = piece.partition("/")
        first, dash, last = span.partition("-")
        numbers = [first, *([last] if dash else []), *([step] if slash else [])]
        if span == "*":
            numbers, first, last = numbers[1:], str(low), str(high)
        elif not dash:
            last = str(high) if slash else first
        bounds = [first, last]
        if not all(number.isascii() and number.isdigit() for number in [*numbers, *bounds]) or (
            slash and not int(step)
        ):
            raise InputError(f"schedule = {text!r}: {name} {piece!r} is no number, nor *, a-b or */n")
        if not low <= int(first) <= int(last) <= high:
            raise InputError(f"schedule = {text!r}: {name} {piece!r} is not within {low}-{high}")
        found |= set(range(int(first), int(last) + 1, int(step) if slash else 1))
    return found
