"""Batch arithmetic: from the micro batch to the effective batch and the learning rate."""

from __future__ import annotations

from math import gcd, lcm
from typing import Annotated, Self

from pydantic import Field, model_validator

from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Number, WholeNumber


class Batch(Table):
    """``[batch]``: handed to the script as ARGOSY_EFFECTIVE_BATCH_SIZE, ARGOSY_LEARNING_RATE and so on."""

    micro_batch_size: Annotated[WholeNumber, Field(ge=1)] = Field(description="Samples per rank and micro step, count.")
    accumulation_steps: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=1, description="Micro steps per optimizer step, count."
    )
    base_learning_rate: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="Learning rate that is right at base_batch_size. Unset: none is computed."
    )
    base_batch_size: Annotated[WholeNumber, Field(ge=1)] | None = Field(
        default=None, description="Effective batch that base_learning_rate belongs to, samples."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.base_learning_rate is None) != (self.base_batch_size is None):
            absent = "base_learning_rate" if self.base_learning_rate is None else "base_batch_size"
            remedy = "give base_learning_rate and base_batch_size, or neither"
            raise Refusal("is required: the linear rule needs both", remedy, field=absent)
        return self

    def effective_batch_size(self, world_size: int) -> int:
        """Samples per optimizer step over all ranks."""
        return self.micro_batch_size * self.accumulation_steps * world_size

    def check_elastic(self, fewest: int, most: int, nproc_per_node: int) -> None:
        """Accept a batch that each number of nodes can make with whole micro steps.

        Raises:
            Refusal: one cannot; the field is relative to the run.
        """
        effective = self.effective_batch_size(most * nproc_per_node)
        for nodes in range(fewest, most + 1):
            if effective % (self.micro_batch_size * nodes * nproc_per_node):
                whole = lcm(*(each // gcd(each, most) for each in range(fewest, most + 1)))
                remedy = f"write accumulation_steps = {whole} or a multiple of it, or give" if whole <= 1024 else "give"
                raise Refusal(
                    f"the effective batch of {effective} samples would not stay the same with {nodes} of {most} nodes",
                    f"{remedy} gang.nnodes one number",
                    field="batch.accumulation_steps",
                    value=self.accumulation_steps,
                )

    def learning_rate(self, world_size: int) -> float | None:
        """By the linear rule: base_learning_rate x effective batch / base_batch_size; None if not declared."""
        if self.base_learning_rate is None or self.base_batch_size is None:
            return None
        return self.base_learning_rate * self.effective_batch_size(world_size) / self.base_batch_size

    def describe(self, world_size: int) -> str:
        """The arithmetic on one line."""
        effective = self.effective_batch_size(world_size)
        text = (
            f"batch: {self.micro_batch_size} samples x {self.accumulation_steps} micro steps x {world_size} ranks "
            f"= {effective} per optimizer step"
        )
        rate = self.learning_rate(world_size)
        if rate is None:
            return text
        rule = f"{self.base_learning_rate:g} x {effective}/{self.base_batch_size}"
        return f"{text}; learning rate {rule} = {rate:g} (linear rule)"
