"""How a trained checkpoint is judged."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from argosy.workflows.spec.entry import check_entry
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.resources import Resources
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import (
    Bytes,
    Line,
    ModuleName,
    Number,
    RelativePath,
    Seconds,
    StoreUri,
    quantity,
)


def _check_metric(name: str) -> str:
    if not name or not all(part.isalnum() for part in name.replace("-", "_").replace(".", "_").split("_") if part):
        raise Refusal("must be the name of a number", "use letters, digits, '_', '-' and '.'")
    return name


class Evaluation(Table):
    """``[evaluation]``: a script of yours that writes numbers to $ARGOSY_METRICS_PATH; then the gate decides."""

    script: RelativePath = Field(
        default="", description="Evaluation script, relative to the code folder; or give module."
    )
    module: ModuleName = Field(default="", description="Evaluation module (python -m); or give script.")
    args: tuple[Line, ...] = Field(default=(), description="Arguments of the evaluation script.")
    metric: Annotated[Line, AfterValidator(_check_metric)] = Field(
        description="Name of the number the gate compares, a key of the JSON object the script writes."
    )
    direction: Literal["min", "max"] = Field(description="min: less is better; max: more is better.")
    floor: Number | None = Field(
        default=None, description="Worst value that passes, in the metric's own unit. Unset: no floor."
    )
    baseline: Literal["pointer", "none"] = Field(
        default="pointer",
        description="pointer: must not be worse than what is promoted now; none: only the floor counts.",
    )
    dataset_uri: StoreUri = Field(
        default="",
        description="Prefix of the held-out data, fetched whole; kept in [dataset.cache] where that is a claim that "
        "may be written. Empty: none.",
    )
    timeout_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        default=3600, description="Time limit of the evaluation script, seconds."
    )
    shm_size: Bytes = Field(
        default="1Gi", description="Size of /dev/shm in the evaluation pod, bytes; counts towards its memory."
    )
    resources: Resources = Field(default=Resources(), description="What the evaluation pod asks of its node.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_entry(self.script, self.module)
        if self.floor is None and self.baseline == "none":
            raise Refusal(
                "every number would pass: there is no floor and no baseline",
                'write floor = ..., or baseline = "pointer"',
                field="baseline",
                value=self.baseline,
            )
        if quantity(self.shm_size) > quantity(self.resources.memory):
            raise Refusal(
                f"/dev/shm counts towards the pod's memory (resources.memory = {self.resources.memory!r})",
                "raise resources.memory or lower shm_size",
                field="shm_size",
                value=self.shm_size,
            )
        return self
