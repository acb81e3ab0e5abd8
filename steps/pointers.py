"""A promotion pointer: the append-only history of what was promoted; its last entry is what counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from argosy.steps.appendlog import AppendLog, read_as
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import pointer_prefix
from argosy.steps.store.base import ObjectStore


@dataclass(frozen=True)
class Promotion:
    """One entry of a pointer's history.

    ``value`` is the metric of the checkpoint, None when nobody measured it; ``previous`` the digest before;
    ``time`` in seconds since 1970; ``rollback`` says that an older checkpoint was brought back.
    """

    pointer: str
    digest: str
    uri: str
    metric: str
    value: float | None
    run_id: str
    workflow: str
    workflow_uid: str
    previous: str
    time: float
    rollback: bool = False
    step: int | None = None


class Pointer:
    """History of one pointer of a run's name."""

    def __init__(self, store: ObjectStore, name: str, pointer: str) -> None:
        """Raises InputError when ``pointer`` cannot be part of a key."""
        if not pointer or not all(letter.isalnum() or letter in "-_." for letter in pointer) or pointer[0] == ".":
            raise InputError(f"pointer = {pointer!r}: use letters, digits, '-', '_' and '.'")
        self.name = pointer
        self._log = AppendLog(store, pointer_prefix(name, pointer))

    def history(self) -> list[Promotion]:
        """All entries, oldest first; entry number ``i + 1`` at index ``i``."""
        return [read_as(Promotion, entry.record) for entry in self._log.entries()]

    def append(self, after: int, promotion: Promotion) -> bool:
        """Move the pointer if it still has ``after`` entries; False when somebody moved it meanwhile."""
        return self._log.append(after + 1, asdict(promotion))


def standing(history: list[Promotion]) -> list[Promotion]:
    """The promotions that a rollback could return to, the current one last: a rollback takes one off."""
    stack: list[Promotion] = []
    for entry in history:
        if entry.rollback:
            del stack[-1:]
        else:
            stack.append(entry)
    return stack
