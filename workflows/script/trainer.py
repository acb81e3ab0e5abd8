"""What is known of a library that saves for a script, and how the script starts it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from argosy.workflows.script.domain import Unknown
from argosy.workflows.script.source import Source, argument, last_name
from argosy.workflows.script.values import Values

RAY_TRAIN = "Ray Train"
_NEWEST = "get_last_checkpoint"


@dataclass(frozen=True)
class TrainerFacts:
    """``folder`` None: where it saves cannot be read, and ``remedy`` says what to do; ``where``: the place.

    ``include``, ``expect`` and ``marker`` are those of ``[checkpoint]``; ``expect`` holds for several ranks only.
    ``resume_args``: what makes it go on, where the script itself declares no flag for that; ``resumes`` False: the
    script never asks the library to go on.
    """

    library: str
    where: str
    folder: str | None
    remedy: str = ""
    lacks: str = "saves where only a run could tell"
    """What keeps it from a checkpoint, where there is no folder."""
    lines: str = ""
    """What makes it save into one folder and go on, by place."""
    include: tuple[str, ...] = ()
    include_here: tuple[str, ...] = ()
    """Where it saves beside the code."""
    unit: tuple[str, ...] = ()
    expect: tuple[str, ...] = ()
    marker: str = ""
    newest: str = ""
    """The glob of its states, where what names the newest holds a path of the machine that wrote it."""
    resume_flags: tuple[str, ...] = ()
    resume_args: tuple[str, ...] = ()
    resumes: str = ""
    start: str = ""
    """The line to write where the script never asks it to go on."""
    devices: int | None = None
    args: tuple[str, ...] = ()
    """Without which it does not train."""


def certain(values: Values, place: ast.expr) -> str | None:
    """A folder of which everything is known."""
    found = values.folder(place)
    return None if found is None or "*" in found else found


def surely(source: Source, values: Values) -> Sequence[ast.Call]:
    """The calls that a run comes to, where it was followed as far as a training; else all."""
    come_to = values.machine.calls
    trained = any(last_name(call.func) == "train" and call in come_to for call in source.calls)
    made = any(last_name(call.func).endswith("Trainer") and call in come_to for call in source.calls)
    return [call for call in source.calls if call in come_to] if trained and made else source.calls


def resumes_by(calls: Sequence[ast.Call], method: str, keyword: str, values: Values | None = None) -> str:
    """ "variable": the script's arguments decide; "itself": it looks for its newest checkpoint; "": never."""
    given = [argument(call, keyword) for call in calls if last_name(call.func) == method]
    found = next((value for value in given if value is not None), None)
    if found is None or (isinstance(found, ast.Constant) and (not found.value or _is_one_file(found.value))):
        return ""
    known = [] if values is None else values.machine.seen.get(found, [])
    names = [each.name for each in known if isinstance(each, Unknown)]
    asked = any(last_name(call.func) == _NEWEST for call in calls)
    looks = any(_NEWEST in name for name in names) if known else asked
    return "itself" if looks or isinstance(found, ast.Constant) or _is_if_there(found) else "variable"


def _is_one_file(value: object) -> bool:
    """Whether each start begins with the same one, as with weights that others have trained."""
    return isinstance(value, str) and not re.search(r"(?i)last|latest|newest|auto|hpc", value)


def _is_if_there(value: ast.expr) -> bool:
    """``"last.ckpt" if os.path.exists("last.ckpt") else None``, as init says to write it."""
    test = value.test if isinstance(value, ast.IfExp) and isinstance(value.body, ast.Constant) else None
    return isinstance(test, ast.Call) and last_name(test.func) in ("exists", "isfile", "is_file")


def started(calls: Sequence[ast.Call], source: Source, method: str, keyword: str, value: str) -> str:
    """The call that starts a training, with what makes it go on, and where it stands."""
    call = next(
        (each for each in calls if last_name(each.func) == method and isinstance(each.func, ast.Attribute)), None
    )
    if call is None:
        return ""
    kept = [ast.unparse(each) for each in (*call.args, *call.keywords) if getattr(each, "arg", "") != keyword]
    return f"{ast.unparse(call.func)}({', '.join([*kept, f'{keyword}={value}'])}) in {source.where(call)}"
