"""How checkpoints are made and how many stay."""

from __future__ import annotations

import posixpath
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Line, RelativePath, WholeNumber


class Checkpoint(Table):
    """``[checkpoint]``: committed, verified, and restored after a failure."""

    mode: Literal["checkpointer", "opaque"] = Field(
        default="checkpointer",
        description="checkpointer: the script uses argosy.Checkpointer. opaque: one rank writes files into a folder "
        "and knows nothing of argosy.",
    )
    path: RelativePath = Field(
        default="",
        description="opaque: folder the script writes its checkpoint to, relative to the code folder. Required.",
    )
    include: tuple[RelativePath, ...] = Field(
        default=(), description="opaque: globs below path of the files that form a checkpoint. Empty: every file."
    )
    resume_args: tuple[Line, ...] = Field(
        default=(),
        description="opaque: arguments added to the script's when a checkpoint was restored. {newest} in them stands "
        "for the file, or the folder below path, that was written last; {path} for the only file, or for path.",
    )
    every_steps: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=0, description="checkpointer: steps between saves for Checkpointer.due, steps; 0: the script decides."
    )
    keep: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=3, description="Verified checkpoints that are kept, count; 0: all."
    )
    end_step: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=0,
        description="Step that the last verified checkpoint must have reached, steps; 0: the one marked final.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.mode == "opaque":
            if not self.path:
                raise Refusal("is required in opaque mode", "name the folder the script writes to", field="path")
            if posixpath.normpath(self.path) == "." and not self.include:
                raise Refusal(
                    "is the folder of the code: without include the script itself would count as a checkpoint",
                    'name the files, as in include = ["*.pt"], or a folder of their own',
                    field="path",
                    value=self.path,
                )
            if self.every_steps:
                raise Refusal(
                    "has no effect in opaque mode: the script saves when it likes",
                    "remove it, or set the interval in the script's own args",
                    field="every_steps",
                    value=self.every_steps,
                )
            return self
        for field in ("path", "include", "resume_args"):
            if value := getattr(self, field):
                remedy = 'remove it, or write mode = "opaque"'
                raise Refusal("has an effect in opaque mode only", remedy, field=field, value=value)
        return self
