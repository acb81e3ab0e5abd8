"""A taint that pods accept."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import LabelKey, LabelValue, Seconds


class Toleration(Table):
    """``[[gang.tolerations]]``: a taint that the gang's pods accept."""

    key: LabelKey = Field(default="", description="Key of the taint; empty with operator Exists: every taint.")
    operator: Literal["Equal", "Exists"] = Field(default="Equal", description="Equal compares value; Exists does not.")
    value: LabelValue = Field(default="", description="Value of the taint, for operator Equal.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        default="", description="Effect of the taint; empty: all."
    )
    seconds: Annotated[Seconds, Field(ge=0)] | None = Field(
        default=None, description="With NoExecute: how long the pod stays, seconds. Unset: for ever."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.operator == "Exists" and self.value:
            raise Refusal("must be empty with operator Exists", "remove it", field="value", value=self.value)
        if self.operator == "Equal" and not self.key:
            raise Refusal("is required with operator Equal", "name the taint's key", field="key")
        if self.seconds is not None and self.effect != "NoExecute":
            raise Refusal("has an effect with NoExecute only", "remove it", field="seconds", value=self.seconds)
        return self

    def manifest(self) -> dict[str, Any]:
        """As Kubernetes has it."""
        fields = {"key": self.key, "operator": self.operator, "value": self.value, "effect": self.effect}
        limit = {} if self.seconds is None else {"tolerationSeconds": self.seconds}
        return {name: value for name, value in fields.items() if value} | limit
