"""BATCH: the arithmetic of ranks, and of the batch that they share."""

from __future__ import annotations

from argosy.workflows.lint.rules.batch import deepspeed, megatron

__all__ = ["deepspeed", "megatron"]
