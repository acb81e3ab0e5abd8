"""How often a failure is forgiven, by class."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from argosy.steps.contract.exit_codes import ExitCode
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Number, WholeNumber

CLASSES = {int(code): code.name.lower() for code in ExitCode if code >= ExitCode.USER_BUG}

LONGEST_PAUSE = 24 * 3600


def _check_codes(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    checked: dict[str, int] = {}
    for code, klass in value.items():
        text = str(code)
        if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 255):
            remedy = "name the script's exit code, for example 3"
            raise Refusal("must be an exit code 1 to 255", remedy, field=text, value=code)
        if isinstance(klass, bool) or klass not in CLASSES:
            remedy = "use " + ", ".join(f"{number} ({name})" for number, name in CLASSES.items())
            raise Refusal("must be a class 70 to 78", remedy, field=text, value=klass)
        checked[str(int(text))] = klass
    return checked


class Retry(Table):
    """``[retry]``: failures count until a new checkpoint forgives them, but for a third of one kind at one step."""

    max_same_failure: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=3, description="The same root cause at most so often without a new verified checkpoint, count."
    )
    max_restarts: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=5, description="Restarts at most without a new verified checkpoint, count."
    )
    max_preemptions: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=20, description="Preemptions and lost nodes at most within 6 hours, count."
    )
    nan_losses: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=3,
        description="Losses in a row that became NaN or infinite, count: they end a start, the next one goes on from "
        "before them; twice at the same step the run is stopped. 0: never.",
    )
    nan_skip_steps: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=0,
        description="Where that happened twice at one step, go on once more and pass over the data of so many steps "
        "from there, count; the script asks `argosy.skips(step)`. 0: the run is stopped.",
    )
    backoff_seconds: Annotated[Number, Field(gt=0, le=LONGEST_PAUSE)] = Field(
        default=1.0,
        description="Pause before the second restart without progress in between, doubled each time, seconds; "
        "the first begins at once.",
    )
    backoff_cap_seconds: Annotated[Number, Field(gt=0, le=LONGEST_PAUSE)] = Field(
        default=300.0, description="Longest such pause, seconds."
    )
    supervisor_limit: Annotated[WholeNumber, Field(ge=0, le=100)] = Field(
        default=20, description="Times that Argo starts the train step again after the loss of its pod, count."
    )
    exit_codes: Annotated[dict[str, int], BeforeValidator(_check_codes)] = Field(
        default={},
        description='Exit codes of the script with a meaning: "script\'s code" = class 70 to 78 ("3" = 75: transient).',
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.backoff_cap_seconds < self.backoff_seconds:
            raise Refusal(
                f"is less than the first pause (backoff_seconds = {self.backoff_seconds:g})",
                "raise it, or lower backoff_seconds",
                field="backoff_cap_seconds",
                value=self.backoff_cap_seconds,
            )
        if self.nan_skip_steps and not self.nan_losses:
            rule, remedy = "has no effect with nan_losses = 0", "remove it, or count losses with nan_losses"
            raise Refusal(rule, remedy, field="nan_skip_steps", value=self.nan_skip_steps)
        return self
