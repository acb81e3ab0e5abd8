"""Where the gang's pods are placed: near each other, and on which kind of capacity."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import LabelKey, LabelValue, WholeNumber
from argosy.workflows.spec.toleration import Toleration


class Topology(Table):
    """``[gang.topology]``: all pods of the gang in one rack, block or zone."""

    required: LabelKey = Field(
        default="",
        description="Label of the nodes that names their rack or block: all pods go into one, or none is placed.",
    )
    preferred: LabelKey = Field(
        default="", description="The same where there is room in one; else pods go where they can."
    )

    def check(self, placement: str) -> None:
        """Accept what ``placement`` can do.

        Raises:
            Refusal: both with Kueue, which takes one; any with Volcano, which knows no labels. The field is relative
                to the gang.
        """
        if placement == "kueue" and self.required and self.preferred:
            remedy = "keep one of required and preferred"
            raise Refusal("Kueue takes one level", remedy, field="topology.preferred", value=self.preferred)
        if placement in ("volcano", "kai") and (label := self.required or self.preferred):
            what = {"volcano": "tiers of HyperNodes", "kai": "a Topology of its own"}[placement]
            reason = (
                f"cannot go with placement = {placement!r}, whose scheduler counts in {what}, not in labels of nodes"
            )
            raise Refusal(reason, "write its annotations into gang.pod.annotations", field="topology", value=label)


class Spot(Table):
    """``[gang.spot]``: nodes that may be taken away, until they were too often; then nodes that may not."""

    label: LabelKey = Field(
        min_length=1,
        description="Label of the provider's on spot nodes: cloud.google.com/gke-spot, karpenter.sh/capacity-type.",
    )
    value: LabelValue = Field(default="true", description="Value of the label on spot nodes; no other node has it.")
    tolerations: tuple[Toleration, ...] = Field(
        default=(), description="Taints of the spot nodes, which the pods accept for as long as they go there."
    )
    preemptions: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=3,
        description="After so many endings with preempted_evicted gangs go to nodes that are not spot, count.",
    )

    def supervised(self) -> dict[str, Any]:
        """What the supervisor takes out of the manifest, and when."""
        tolerations = [each.manifest() for each in self.tolerations]
        return {**self.model_dump(include={"label", "value", "preemptions"}), "tolerations": tolerations}

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.value:
            raise Refusal("is what spot nodes are told by", 'write it, for example "true"', field="value")
        return self
