"""How long things may take."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import WholeNumber


class Deadlines(Table):
    """``[deadlines]``: all in seconds."""

    run_seconds: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=0, description="Time limit of the whole workflow, seconds; 0: none."
    )
    check_in_seconds: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=600, description="All nodes must have checked in within this time, seconds."
    )
    heartbeat_seconds: Annotated[WholeNumber, Field(ge=2)] = Field(
        default=60, description="Silence after which a node counts as lost, seconds."
    )
    hang_seconds: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=1800, description="Time without a step that counts as a hang, seconds; 0: never."
    )
    grace_seconds: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=60, description="Time for a clean save after a stop was asked for, seconds."
    )
