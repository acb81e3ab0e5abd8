"""Schedules as CronWorkflows read them."""

from __future__ import annotations

import calendar
import time

import pytest

from argosy.steps.contract.cron import check_cron, next_time
from argosy.steps.contract.errors import InputError

FRIDAY = calendar.timegm((2026, 2, 27, 12, 0, 30))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", "2026-02-27 12:01"),
        ("*/15 * * * *", "2026-02-27 12:15"),
        ("0 2 * * *", "2026-02-28 02:00"),
        ("5,10 0-3/2 * * *", "2026-02-28 00:05"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 * * 0", "2026-03-01 00:00"),
        ("0 0 13 * 1", "2026-03-02 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
    ],
)
def test_the_next_time(text: str, expected: str) -> None:
    assert time.strftime("%Y-%m-%d %H:%M", time.gmtime(next_time(check_cron(text), FRIDAY))) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "* * * * 0-7",
        "0 0 30 2 *",
        "60 * * * *",
        "* * 0 * *",
        "*/0 * * * *",
        "a * * * *",
        "5-1 * * * *",
        "- * * * *",
        "@daily",
    ],
)
def test_what_is_no_schedule(text: str) -> None:
    """A 7 was Sunday here and nothing that Argo's cron takes; 30 February compiled, and then no watch would begin."""
    with pytest.raises(InputError, match="schedule"):
        check_cron(text)
