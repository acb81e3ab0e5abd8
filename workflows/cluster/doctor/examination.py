"""All checks, in the order in which one would look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.workflows.cluster.doctor import bucket, capacity, rehearsal, rights, started, things, topology, versions
from argosy.workflows.cluster.doctor.check import Check
from argosy.workflows.cluster.doctor.needs import Needs, needs_of


def examine(
    api: Api, workflow: Mapping[str, Any] | None, account: str, trigger: Sequence[Mapping[str, Any]] = ()
) -> Iterator[Check]:
    """Each thing once; without a workflow what every run needs, for the service account ``account``.

    ``trigger``: the documents that start the run by itself.
    """
    needs = Needs(accounts=(account,)) if workflow is None else needs_of(workflow)
    first = versions.server(api)
    yield first
    if first.state != "ok":
        return
    found = list(versions.namespace(api))
    yield from found
    yield from versions.kinds(api, needs)
    yield from versions.trigger(api, trigger)
    if any(each.state == "missing" for each in found):
        return
    yield from rights.yours(api)
    yield from rights.accounts(api, needs)
    yield from rights.trigger(api, trigger)
    if workflow is not None:
        yield from started.trigger(api, workflow, trigger)
    for look in (things.secrets, things.claims, things.queue, things.priority_classes, things.network, things.images):
        yield from look(api, needs)
    if workflow is not None:
        yield from bucket.bucket(api, workflow)
    yield from topology.labels(api, needs)
    yield from topology.kueue(api, needs)
    yield from capacity.capacity(api, needs)
    yield from capacity.quotas(api, needs)
    if workflow is not None:
        yield from rehearsal.rehearsal(api, workflow, needs)
