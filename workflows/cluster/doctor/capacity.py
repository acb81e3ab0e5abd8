"""Whether the cluster's nodes could take the gang."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.kinds import NODE, RESOURCE_QUOTA
from argosy.steps.record.wording import size
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs
from argosy.workflows.manifests.quantity import quantity

Amounts = dict[str, float]


def capacity(api: Api, needs: Needs) -> Iterator[Check]:
    """Nodes that could ever take a pod of the gang, and those that could now; one pod goes on each."""
    if not needs.nnodes:
        return

    def look() -> Iterator[Check]:
        wanted = _requests(needs.pod)
        stated = _stated((needs.pod.get("containers") or [{}])[0])
        asks = ", ".join(f"{name} {text}" for name, text in sorted(stated.items()))
        nodes = api.list(NODE)["items"]
        able = [node for node in nodes if _takes(node, needs.pod) and _fits(_allocatable(node), wanted)]
        what, gang = "capacity", f"the gang wants {needs.nnodes} nodes with {asks} each"
        if len(able) < needs.least:
            remedy = "ask for less (gang.nnodes, gang.resources), see gang.node_selector and tolerations, or add nodes"
            # They may be back at any time, and nothing is wrong with what was asked for.
            away = len(nodes) - sum(map(_is_up, nodes))
            but = f", {away} being cordoned or not Ready" if away else ""
            yield Check("missing", what, f"{gang}; {len(able)} of {len(nodes)} could take one{but}", remedy)
            return
        free = _free(api, able)
        now = sum(_fits(free[node["metadata"]["name"]], wanted) for node in able)
        yield Check("ok", what, f"{gang}; {len(able)} of {len(nodes)} could take one, {now} now")

    yield from asked("capacity", "kubectl describe nodes", look)


def quotas(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether the namespace's quotas could ever hold what the gang begins with; one with scopes is of some pods."""
    if not needs.nnodes:
        return

    def look() -> Iterator[Check]:
        for each in api.list(RESOURCE_QUOTA)["items"]:
            name, spec = each["metadata"]["name"], each.get("spec") or {}
            if spec.get("scopes") or spec.get("scopeSelector"):
                continue
            lacking = _beyond(spec.get("hard") or {}, _of_quota(needs), "the gang and its supervisor want")
            if lacking:
                remedy = "ask for less (gang.nnodes, gang.resources), or for a larger ResourceQuota"
                yield Check("missing", f"quota {name}", f"never enough: {'; '.join(lacking)}", remedy)

    yield from asked("quotas", f"kubectl get resourcequota -n {api.namespace}", look)


def _of_quota(needs: Needs) -> Amounts:
    """What the gang counts for by a quota's names, and the step's pod that is there as long as it."""
    found: Amounts = {}
    for count, pod in ((needs.least, needs.pod), (1, needs.step.get("spec") or {})):
        wanted = {"pods": 1.0, **_requests(pod)}
        wanted |= {f"requests.{name}": amount for name, amount in wanted.items()}
        wanted |= {f"limits.{name}": amount for name, amount in _sums(pod, ("limits",)).items()}
        for name, amount in wanted.items():
            found[name] = found.get(name, 0.0) + count * amount
    return found


def beyond_queue(spec: Mapping[str, Any], needs: Needs) -> list[str]:
    """What the gang wants and all flavors of the ClusterQueue together have not: master and workers may take two.

    Whether Kueue counts a resource that the ClusterQueue does not name stands in Kueue's own configuration.
    """
    room: dict[str, float] = {}
    for group in spec.get("resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for each in flavor.get("resources") or []:
                amount = quantity(str(each.get("nominalQuota"))) or 0.0
                room[each["name"]] = room.get(each["name"], 0.0) + amount
    wanted = {name: needs.nnodes * amount for name, amount in _requests(needs.pod).items()}
    return _beyond(room, wanted)


def beyond_capability(spec: Mapping[str, Any], needs: Needs) -> list[str]:
    """What the gang begins with and Volcano's queue may never use."""
    wanted = {name: needs.least * amount for name, amount in _requests(needs.pod).items()}
    return _beyond(spec.get("capability") or {}, wanted)


def _beyond(room: Mapping[str, Any], wanted: Mapping[str, float], who: str = "the gang wants") -> list[str]:
    found = ((name, wanted[name], quantity(str(room[name])) or 0.0) for name in sorted(wanted) if name in room)
    return [
        f"{name}: {who} {_figure(name, gang)} of {_figure(name, most)}" for name, gang, most in found if gang > most
    ]


def _figure(name: str, amount: float) -> str:
    return size(int(amount)) if re.search("memory|storage|hugepages", name) else f"{amount:g}"


def _takes(node: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    labels = node["metadata"].get("labels") or {}
    chosen = all(labels.get(key) == value for key, value in (pod.get("nodeSelector") or {}).items())
    taints = [each for each in node["spec"].get("taints") or [] if each["effect"] != "PreferNoSchedule"]
    tolerations = pod.get("tolerations") or []
    return _is_up(node) and chosen and all(_bears(tolerations, taint) for taint in taints)


def _is_up(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not node["spec"].get("unschedulable")


def _bears(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    return any(
        each.get("effect") in (None, "", taint["effect"])
        and each.get("key") in (None, "", taint["key"])
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in tolerations
    )


_STATED = ("limits", "requests")
"""A request that is not written is the limit."""


def _requests(pod: Mapping[str, Any]) -> Amounts:
    return _sums(pod, _STATED)


def _sums(pod: Mapping[str, Any], parts: Sequence[str]) -> Amounts:
    """Of the whole pod: its containers' sum, or its largest init container where that is more."""
    found: Amounts = {}
    for container in pod.get("containers") or []:
        for name, amount in _amounts(_stated(container, parts)).items():
            found[name] = found.get(name, 0.0) + amount
    for container in pod.get("initContainers") or []:
        for name, amount in _amounts(_stated(container, parts)).items():
            found[name] = max(found.get(name, 0.0), amount)
    return found


def _stated(container: Mapping[str, Any], parts: Sequence[str] = _STATED) -> dict[str, str]:
    """Of two parts that say different things the last counts."""
    resources = container.get("resources") or {}
    return {name: str(text) for part in parts for name, text in (resources.get(part) or {}).items()}


def _allocatable(node: Mapping[str, Any]) -> Amounts:
    return _amounts((node.get("status") or {}).get("allocatable") or {})


def _amounts(stated: Mapping[str, Any]) -> Amounts:
    return {name: quantity(str(text)) or 0.0 for name, text in stated.items()}


def _fits(room: Mapping[str, float], wanted: Mapping[str, float]) -> bool:
    return all(room.get(name, 0.0) >= amount for name, amount in wanted.items())


def _free(api: Api, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Amounts]:
    free = {node["metadata"]["name"]: _allocatable(node) for node in nodes}
    running = "/api/v1/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed"
    for pod in api.read(running)["items"]:
        room = free.get(pod["spec"].get("nodeName", ""))
        for name, amount in _requests(pod["spec"]).items() if room is not None else ():
            if room is not None and name in room:
                room[name] -= amount
    return free
