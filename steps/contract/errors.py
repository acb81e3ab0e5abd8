"""Errors whose fault lies with input: shown as one clear line, never as a traceback."""

from __future__ import annotations

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode


class InputError(ValueError):
    """A value the user gave breaks a rule.

    The message names the field (or file and line), the value, the rule and the remedy. Command lines print
    it and exit 2.
    """


class StepError(Exception):
    """A step cannot go on, for a cause of the closed list.

    ``quote`` is the line of evidence (may be empty); ``code`` is what the process exits with.
    """

    def __init__(self, cause: Cause, message: str, *, quote: str = "", code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.quote = quote
        self.code = cause.exit_code if code is None else code
