"""Labels of nodes, and what Kueue has to know of them, for a gang that asks for a rack, a pool or spot nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.kinds import NODE, RESOURCE_FLAVOR, TOPOLOGY
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs

_TOPOLOGIES = "https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/"


def labels(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether nodes have what the gang selects them by, and what its racks are told by."""
    wanted = [(key, str(value)) for key, value in (needs.pod.get("nodeSelector") or {}).items()]
    wanted += [(key, "") for key in needs.topology]

    def look() -> Iterator[Check]:
        nodes = [each["metadata"].get("labels") or {} for each in api.list(NODE)["items"]]
        for key, value in wanted:
            named = f"{key}={value}" if value else key
            here = [each[key] for each in nodes if key in each and (not value or each[key] == value)]
            detail = f"on {len(here)} of {len(nodes)} nodes"
            if not value and here:
                detail += f", {len({*here})} of its values"
            remedy = "" if here else f"kubectl label node NODE {key}={value or 'NAME'}; or take it out of the run"
            yield Check("ok" if here else "missing", f"label {named}", detail, remedy)

    if wanted:
        yield from asked("labels of nodes", "kubectl get nodes --show-labels", look)


def kueue(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether Kueue knows the level that the gang asks for."""
    if needs.queue and needs.topology:
        yield from asked("Kueue topology", "kubectl get topologies.kueue.x-k8s.io", partial(_levels, api, needs))


def _levels(api: Api, needs: Needs) -> Iterator[Check]:
    """A Topology has the level, and a ResourceFlavor refers to it: without either Kueue never admits the gang."""
    known = {each["metadata"]["name"]: _level_labels(each) for each in api.list(TOPOLOGY)["items"]}
    used = {(each.get("spec") or {}).get("topologyName") for each in api.list(RESOURCE_FLAVOR)["items"]}
    for label in needs.topology:
        what = f"Kueue topology with {label}"
        having = sorted(name for name, levels in known.items() if label in levels)
        if not having:
            listed = ", ".join(sorted(known)) or "none"
            remedy = f"a Topology with nodeLabel: {label} among its levels, and a ResourceFlavor with it: {_TOPOLOGIES}"
            yield Check("missing", what, f"no Topology has this level; there are: {listed}", remedy)
        elif not used & {*having}:
            remedy = f"a ResourceFlavor of the queue with topologyName: {having[0]}: {_TOPOLOGIES}"
            yield Check("missing", what, f"no ResourceFlavor refers to {', '.join(having)}", remedy)
        else:
            yield Check("ok", what, f"level of {', '.join(having)}")


def _level_labels(topology: Mapping[str, Any]) -> list[str]:
    return [str(each.get("nodeLabel")) for each in (topology.get("spec") or {}).get("levels") or []]
