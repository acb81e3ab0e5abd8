"""What happens to a checkpoint that passed the gate."""

from __future__ import annotations

from pydantic import Field

from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName


class Promotion(Table):
    """``[promotion]``: needs ``[evaluation]``."""

    pointer: KubeName = Field(
        default="production", description="Name of the pointer that is moved to the checkpoint.", min_length=1
    )
