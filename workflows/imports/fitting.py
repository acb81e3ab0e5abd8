"""What a run does not take is taken out again, and said by the name that it has in the manifest."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.word import FILL_IN
from argosy.workflows.spec.refusal import Refusal, as_input_error
from argosy.workflows.spec.run import TrainingRun

NO_IMAGE: Final = "write.your/image:here"
_ROUNDS: Final = 500
_NEEDED: Final = ("name", "script", "module", "gang.nnodes")


def fit(draft: Draft, account: Account, near: Node) -> TrainingRun:
    """The run; fields that it refuses are left to the author.

    Raises:
        InputError: what no run can be without is wrong.
    """
    for _ in range(_ROUNDS):
        try:
            return TrainingRun.model_validate(draft.data())
        except ValidationError as error:
            _take_out(error, draft, account, near)
    raise AssertionError("more fields are wrong than a run has")


def _take_out(error: ValidationError, draft: Draft, account: Account, near: Node) -> None:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"] if part != "[key]"]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, Refusal) and cause.field:
        place += cause.field.split(".")
    why = str(as_input_error(error, TrainingRun)).partition(" (also wrong: ")[0]
    if place[:1] == ["args"] and len(place) == 2 and place[1].isdigit():
        # An argument that is left out would make the next one the value of the option before it.
        node = draft.replace("args", int(place[1]), FILL_IN)
        draft.note("args", f"write a value in place of {FILL_IN}")
        account.by_hand(node if node is not None else near, f"{why}; write it in place of {FILL_IN}", "args")
        return
    taken = draft.take_out(place) if ".".join(place) not in _NEEDED else None
    if taken is None:
        raise as_input_error(error, TrainingRun) from None
    path, node = taken
    if path == "image":
        draft.put("image", NO_IMAGE)
        draft.note("image", "write your image: the manifest's was not one")
    if node is not None:
        account.take_back(node)
        account.by_hand(node, why)
    else:
        account.advise(near, why)
