"""Keys that were replaced while a pod ran: it keeps those that its Secret held when it began."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode


@contextmanager
def allowed_until_now(still: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Within it the store had been read and written: access that is refused there is worth another pod.

    ``still``: whether what was allowed before is so yet; then the keys are as they were, and another pod helps nobody.
    """
    try:
        yield
    except StepError as error:
        if error.cause != Cause.S3_ACCESS or error.code != ExitCode.CONFIGURATION or still():
            raise
        text = f"{error}; it was allowed until now, and the next pod reads its keys anew"
        raise StepError(error.cause, text, quote=error.quote, code=ExitCode.TRANSIENT) from error
