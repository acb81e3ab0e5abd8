"""What every row of the list of causes says."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.restart_rule import RestartRule
from argosy.steps.contract.trait import Trait
from argosy.steps.contract.weight import Weight


class CauseRow(StrEnum):
    """An id; its exit code; what it is; what a person does; when to start again; the weight of a report of it; traits.

    The exit code is that of the first occurrence; the ledger may escalate it (the same node twice: 71, and so on).
    """

    exit_code: ExitCode
    meaning: str
    remedy: str
    restart: RestartRule
    weight: Weight
    """How much a process or the supervisor is believed that reports this cause by name."""
    traits: Trait

    def __new__(  # noqa: D102
        cls,
        name: str,
        exit_code: ExitCode = ExitCode.TRANSIENT,
        meaning: str = "",
        remedy: str = "",
        restart: RestartRule = RestartRule.BY_CODE,
        weight: Weight = Weight.ROOT,
        traits: Trait = Trait.NONE,
    ) -> Self:
        # Type checkers take a look-up, Cause("hang"), for this call: hence a default for every column.
        row = str.__new__(cls, name)
        row._value_ = name
        row.exit_code, row.meaning, row.remedy = exit_code, meaning, remedy
        row.restart, row.weight = restart, weight
        row.traits = traits | Trait.NEW_PODS if restart == RestartRule.ACCESS else traits
        return row
