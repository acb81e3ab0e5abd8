"""How often is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.duration import seconds
from argosy.workflows.lint.view.monitor import monitor

_OFTEN: Final = 5


@rule("MON008", Level.ERROR, on=Document)
def longer_than_the_interval(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Prometheus refuses a timeout above the interval."""
    del bundle
    found = monitor(document)
    for endpoint in found.endpoints if found is not None else ():
        interval, timeout = (seconds(endpoint[key].text) for key in ("interval", "scrapeTimeout"))
        if interval is not None and timeout is not None and timeout > interval:
            yield Problem(
                endpoint["scrapeTimeout"],
                f"scrapeTimeout: {endpoint['scrapeTimeout'].text} is longer than the interval of "
                f"{endpoint['interval'].text}: the operator leaves this monitor out",
                "make it at most as long as the interval",
            )


@rule("MON009", Level.NOTE, on=Document)
def too_often(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Every series of every rank, every second."""
    del bundle
    found = monitor(document)
    for endpoint in found.endpoints if found is not None else ():
        interval = seconds(endpoint["interval"].text)
        if interval is not None and interval < _OFTEN:
            yield Problem(
                endpoint["interval"],
                f"an interval of {endpoint['interval'].text}: DCGM's own counters change every 30 s by default, and "
                "every rank has thousands of series",
                "read every 15s to 60s",
            )
