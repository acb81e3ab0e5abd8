"""Megatron's division of the ranks, and of the batch among them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Launch
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.manifests.world import ranks_of

_PARALLEL: Final = ("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size")


@rule("BATCH003", Level.ERROR, on=Workload)
def divides(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The ranks divided by tensor, pipeline and context parallelism."""
    for each in bundle.launches(workload):
        options = _options(each)
        ranks = ranks_of(each, workload, bundle)
        if not any(name in options for name in _PARALLEL) or ranks is None:
            continue
        sizes = [options.get(name, 1) for name in _PARALLEL]
        if None in sizes:
            continue
        model = 1
        for size in sizes:
            model *= size or 1
        if ranks % model:
            name = next(name for name in _PARALLEL if name in options)
            yield Problem(
                each.process.node,
                f"{ranks} ranks do not divide into models of {' x '.join(map(str, sizes))} = {model} ranks "
                "(tensor x pipeline x context parallel): Megatron stops at its start",
                "take sizes whose product divides the number of ranks",
                inside=f"--{name}" if each.process.in_shell else "",
            )
            continue
        yield from _batch(each, options, ranks // model)


def _batch(launch: Launch, options: dict[str, int | None], replicas: int) -> Iterator[Problem]:
    whole, micro = options.get("global-batch-size"), options.get("micro-batch-size")
    if whole and micro and whole % (micro * replicas):
        yield Problem(
            launch.process.node,
            f"global-batch-size {whole} is no multiple of micro-batch-size {micro} x {replicas} data-parallel replicas"
            ": Megatron stops at its start",
            f"take a multiple of {micro * replicas}",
            inside="--global-batch-size" if launch.process.in_shell else "",
        )


def _options(launch: Launch) -> dict[str, int | None]:
    """The numbers among all options, of the script too; None for one that is filled in later."""
    found: dict[str, int | None] = {}
    words = launch.process.words
    for index, word in enumerate(words):
        if word.startswith("--"):
            name, given, value = word[2:].partition("=")
            value = value if given else (words[index + 1] if index + 1 < len(words) else "")
            filled = launch.filled_in(value)
            found[name.replace("_", "-")] = int(filled) if filled and re.fullmatch(r"[1-9]\d{0,8}", filled) else None
    return found
