"""Layers of retries around one another: their numbers multiply."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.ranks import alone, argo_template, option, rejoins, together, torch_launch
from argosy.workflows.manifests.workload import Workload

_WITHOUT_END = 1_000_000
"""JobSet's restarts in place ask for a limit that is never reached."""


class Layer(NamedTuple):
    """One layer that starts a failed training again, ``times`` times at most."""

    name: str
    times: int
    node: Node


def _layers(workload: Workload, bundle: Bundle) -> Iterator[Layer]:
    yield from _in_the_pod(workload, bundle)
    spec = workload.spec
    limits = [role.job["backoffLimit"] for role in workload.roles if role.job and not alone(workload, role)]
    if workload.family in ("job", "jobset", "trainer") and limits:
        limit = max(limits, key=lambda node: node.number or 0)
        times = limit.number if limit else 6
        if times is not None and times < _WITHOUT_END:
            yield Layer(f"backoffLimit {times}{'' if limit else ' (the default)'}", times, limit)
    for name, node in (
        ("runPolicy.backoffLimit", spec.at("runPolicy.backoffLimit")),
        ("failurePolicy.maxRestarts", (spec.at("template.spec") or spec).at("failurePolicy.maxRestarts")),
        ("backoffLimit", spec["backoffLimit"] if workload.family == "ray" else Node(None, spec.origin)),
        ("maxRetry", spec["maxRetry"] if workload.family == "volcano" else Node(None, spec.origin)),
    ):
        if node.number is not None:
            yield Layer(f"{name} {node.number}", node.number, node)
    template = argo_template(workload)
    limit = template.at("retryStrategy.limit") if template is not None else Node(None, spec.origin)
    if limit.number is not None:
        yield Layer(f"retryStrategy.limit {limit.number}", limit.number, limit)


def _in_the_pod(workload: Workload, bundle: Bundle) -> Iterator[Layer]:
    elastic = workload.spec.at("elasticPolicy.maxRestarts")
    for role in workload.roles:
        found = torch_launch(role.pod, bundle)
        restarts = found[1].option("max-restarts") if found is not None else None
        if found is not None and restarts and restarts.isdecimal():
            yield Layer(f"torchrun --max-restarts {restarts}", int(restarts), found[1].node)
            return
    if elastic.number is not None:
        yield Layer(f"elasticPolicy.maxRestarts {elastic.number}", elastic.number, elastic)


@rule("RESTART017", Level.NOTE, on=Workload)
def product(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The product of the layers' attempts."""
    if workload.family in ("argo", "pod", "other"):
        return
    layers = [each for each in _layers(workload, bundle) if each.times > 0]
    written = [each for each in layers if each.node.exists]
    if len(layers) < 2 or not written:
        return
    attempts = prod(each.times + 1 for each in layers)
    names = " x ".join(f"{each.name}" for each in layers)
    yield Problem(
        written[-1].node,
        f"{len(layers)} layers of retries multiply: {names} is up to {attempts} starts of a training that cannot "
        "succeed",
        "keep one budget, at the level of the gang, and write 0 at the others",
    )


@rule("RESTART018", Level.WARNING, on=Workload)
def static_restarts(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """With a static rendezvous an agent that starts its ranks again meets nobody."""
    if not together(workload, bundle):
        return
    seen: set[int] = set()
    for role in workload.roles:
        found = torch_launch(role.pod, bundle)
        if found is None or workload.spec["elasticPolicy"]:
            continue
        container, process = found
        restarts = option(process, container, bundle, "max-restarts")
        nodes = option(process, container, bundle, "nnodes") or "1"
        backend = option(process, container, bundle, "rdzv-backend") or "static"
        if not restarts or not restarts.isdecimal() or restarts == "0" or nodes == "1":
            continue
        if backend == "static" and not rejoins(process, container, bundle) and id(process.node.yaml) not in seen:
            seen.add(id(process.node.yaml))
            yield Problem(
                process.node,
                f"--max-restarts={restarts} with a static rendezvous over several pods: the agent of the failed rank "
                "starts its own ranks again, and the other agents know nothing of it",
                "write --max-restarts=0 and restart the gang, or --rdzv-backend=c10d with an endpoint",
                inside="max-restarts" if "max-restarts" in process.node.text else "max_restarts",
            )
