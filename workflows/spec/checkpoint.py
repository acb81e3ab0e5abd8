"""How checkpoints are made and how many stay."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from argosy.workflows.spec.checkpoint_folder import CheckpointFolder
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import LARGEST_COUNT, CheckpointGlob, Line, Number, Seconds, WholeNumber

_OPAQUE_ONLY = (
    "path", "include", "unit", "units_stored", "expect", "marker", "writers", "reshard", "timeout_seconds",
    "resume_args",
)  # fmt: skip
_GLOBS = ("include", "unit", "expect")
_CHECKPOINTER_ONLY = ("every_steps", "failure_hours")


def _check_every_steps(value: Any) -> Any:
    if value != "auto" and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_COUNT):
        raise Refusal('must be a whole number from 0 to 10^15, or "auto"', "write every_steps = 100")
    return value


class Checkpoint(Table):
    """``[checkpoint]``: committed, verified, and restored after a failure."""

    mode: Literal["checkpointer", "opaque"] = Field(
        default="checkpointer",
        description="checkpointer: the script uses argosy.Checkpointer. opaque: ranks write files into a folder "
        "and know nothing of argosy.",
    )
    path: CheckpointFolder = Field(
        default="",
        description="opaque: folder the script writes its checkpoint to, relative to the code folder; or on a volume "
        "that the nodes share (gang.pod.volumes), as in /mnt/shared/{run_id}: {checkpoint} tells the script. Required.",
    )
    include: tuple[CheckpointGlob, ...] = Field(
        default=(), description="opaque: globs below path of the files that form a checkpoint. Empty: every file."
    )
    unit: tuple[CheckpointGlob, ...] = Field(
        default=(),
        description="opaque: globs of files or folders directly below path that are checkpoints of their own; a commit "
        "holds a complete one and the files beside it. Empty: folders named by a step (checkpoint-500, "
        "global_step500, epoch=1-step=10.ckpt); where there are none, all files together are one checkpoint. Files of "
        'one step belong together: unit = ["model_*", "optim_*"] makes model_100.pt and optim_100_rank3.pt one.',
    )
    units_stored: Literal["newest", "all"] = Field(
        default="newest",
        description="opaque: newest: a commit holds the newest complete unit. all: also the older ones that lie there, "
        "stored anew each time (a script that goes back to its best one at the end needs that).",
    )
    expect: tuple[CheckpointGlob, ...] = Field(
        default=(),
        description="opaque: globs within a unit with {rank} in them (or {rank:05d}); a unit is complete when each "
        'matches a file of every rank, as in expect = ["*/zero_pp_rank_{rank}_*.pt"].',
    )
    marker: CheckpointGlob = Field(
        default="",
        description="opaque: glob of the file that the script writes last, in the unit, or beside it with the unit's "
        "name in it. Without it a unit is not complete.",
    )
    writers: Literal["first", "every"] = Field(
        default="first",
        description="opaque: first: the first node commits what lies in path (the only writer, or a volume that all "
        "nodes share). every: each node writes to a disk of its own and gets its own files back; a commit holds the "
        "same unit of all nodes.",
    )
    reshard: Literal["own", "all"] = Field(
        default="own",
        description="opaque, writers every: own: each node restores the files it wrote, and their number must be the "
        "same. all: each node restores the files of all nodes, in one folder.",
    )
    timeout_seconds: Annotated[Seconds, Field(gt=0)] = Field(
        default=300,
        description="opaque, writers every: time for the other nodes to complete a unit, seconds; then it is given up "
        "and the next one is tried.",
    )
    resume_args: tuple[Line, ...] = Field(
        default=(),
        description="opaque: arguments added to the script's when a checkpoint was restored. {newest} in them stands "
        "for the file, or the folder below path, that was written last; {path} for the only file, or for path; {step} "
        "for the number in the newest checkpoint's name, or else the commit's step; {newest:GLOB} for the newest of "
        "the files like GLOB, {step:GLOB} for the number that stands in its name where GLOB has its last *.",
    )
    every_steps: Annotated[int | Literal["auto"], BeforeValidator(_check_every_steps)] = Field(
        default=0,
        description="checkpointer: steps between saves for Checkpointer.due, steps; 0: the script decides. auto: as "
        "many as lose least time, from what a save costs and how often the gang fails.",
    )
    failure_hours: Annotated[Number | None, Field(gt=0, le=10_000_000)] = Field(
        default=None,
        description='every_steps = "auto": expected time between failures of the whole gang, hours. Unset: 1000 '
        "divided by the number of nodes.",
    )
    keep: Annotated[WholeNumber, Field(ge=0)] = Field(
        default=3, description="Verified checkpoints that are kept, count; 0: all."
    )
    peer_copy: bool = Field(
        default=False,
        description="checkpointer: each node also keeps in memory what the node before it saved last, so that a spare "
        "gets a lost node's part from there and not from the store. Takes as much memory again as a node saves, and "
        "sends it over the pods' network once. With gang.spares.",
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
            for field in _CHECKPOINTER_ONLY:
                if value := getattr(self, field):
                    raise Refusal(
                        "has no effect in opaque mode: the script saves when it likes",
                        "remove it, or set the interval in the script's own args",
                        field=field,
                        value=value,
                    )
            self._check_units()
            return self
        if self.failure_hours is not None and self.every_steps not in ("auto", 0):
            raise Refusal(
                f"has no effect with every_steps = {self.every_steps}", 'remove it, or write every_steps = "auto"',
                field="failure_hours", value=self.failure_hours,
            )  # fmt: skip
        for field in _OPAQUE_ONLY:
            if (value := getattr(self, field)) != type(self).model_fields[field].default:
                remedy = 'remove it, or write mode = "opaque"'
                raise Refusal("has an effect in opaque mode only", remedy, field=field, value=value)
        return self

    def _check_units(self) -> None:
        globs = {f"{field}.{number}": glob for field in _GLOBS for number, glob in enumerate(getattr(self, field))}
        for field, glob in {**globs, "marker": self.marker or "*"}.items():
            if not _is_glob(glob):
                raise Refusal("is no glob", "name files; '**' stands alone, as in '**/*.pt'", field=field, value=glob)
        for number, glob in enumerate(self.unit):
            if "/" in glob.rstrip("/"):
                rule, remedy = "is not directly below path", 'name the entry itself, as in unit = ["checkpoint-*"]'
                raise Refusal(rule, remedy, field=f"unit.{number}", value=glob)
        for number, glob in enumerate(self.expect):
            if not _names_rank(glob):
                rule, remedy = (
                    "does not name the rank",
                    'write it with {rank} or {rank:05d}, as in "*_rank_{rank}_*.pt"',
                )
                raise Refusal(rule, remedy, field=f"expect.{number}", value=glob)
        if self.writers == "every" and not (self.expect or self.marker):
            raise Refusal(
                "needs expect or marker: nobody else can tell that all ranks of a node have written their files",
                'add expect = ["*rank{rank}*"] with the names that the ranks write, or marker',
                field="writers",
                value=self.writers,
            )
        for field in ("reshard", "timeout_seconds"):
            value = getattr(self, field)
            if self.writers == "first" and value != type(self).model_fields[field].default:
                raise Refusal(
                    "has an effect with writers = every only", 'remove it, or write writers = "every"',
                    field=field, value=value,
                )  # fmt: skip


def _is_glob(text: str) -> bool:
    parts = PurePosixPath(text).parts
    return bool(parts) and not any("**" in part and part != "**" for part in parts)


def _names_rank(glob: str) -> bool:
    try:
        return glob.format(rank=0) != glob.format(rank=1) and ".." not in glob.format(rank=0)
    except (ValueError, KeyError, IndexError, AttributeError, TypeError):
        return False
