"""How long things may take."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Seconds


class Deadlines(Table):
    """``[deadlines]``: how long is too long."""

    run_seconds: Annotated[Seconds, Field(ge=0)] = Field(
        default=0, description="Time limit of the whole workflow, seconds; 0: none."
    )
    placement_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        default=900,
        description="Once a gang is admitted, every pod must have its node within this time, seconds; waiting in a "
        "queue does not count.",
    )
    check_in_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        default=600, description="All nodes must have checked in within this time, seconds."
    )
    heartbeat_seconds: Annotated[Seconds, Field(ge=2)] = Field(
        default=60, description="Silence after which a node counts as lost, seconds."
    )
    hang_seconds: Annotated[Seconds, Field(ge=0)] = Field(
        default=1800,
        description="Time without a step that counts as a hang, seconds; 0: never. Where no "
        "step of the script is read (see progress_pattern): without a save.",
    )
    on_stall: Literal["observe", "act"] = Field(
        default="observe",
        description="A stall is a pause between steps of stall_seconds at least, ten times as long as any before, "
        "once 20 pauses were seen. observe says so; act takes it for a hang, long before hang_seconds: also a first "
        "evaluation that takes so long, once.",
    )
    stall_seconds: Annotated[Seconds, Field(ge=2)] = Field(
        default=120, description="Shortest pause between steps that is a stall, seconds."
    )
    on_slow_rank: Literal["observe", "act"] = Field(
        default="observe",
        description="A slow rank works 1.25 times as long as the others in step after step, for a minute and 90 steps "
        "at least, in a script that calls argosy.report in every rank. observe names it; act starts again without its "
        "node where another is there, once for a rank.",
    )
    grow_seconds: Annotated[Seconds, Field(ge=0)] = Field(
        default=300,
        description="An elastic gang that has fewer nodes than nnodes looks for the others so often, seconds, and is "
        "made anew when some are back; 0: it keeps its size until something else ends it. With placement none only.",
    )
    grace_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        default=60, description="Time for a clean save after a stop was asked for, seconds."
    )
