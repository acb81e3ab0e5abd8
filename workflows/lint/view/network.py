"""``networking.k8s.io`` NetworkPolicies: who reaches whom.

https://kubernetes.io/docs/concepts/services-networking/network-policies/: policies add up, and a pod for which none of
a direction holds is open in that direction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.labels import selects
from argosy.workflows.lint.view.workload import Role, Workload

if TYPE_CHECKING:
    from argosy.workflows.lint.bundle import Bundle

_MANY: Final = 10_000
"""Ports of a range that is meant for what the kernel chooses: Linux has 28,232 of them."""


@dataclass(frozen=True)
class NetworkPolicy:
    """A NetworkPolicy of the files."""

    document: Document

    def holds_for(self, workload: Workload, role: Role, bundle: Bundle) -> bool:
        """Whether it selects the role's pods."""
        one, other = self.document.namespace, workload.document.namespace
        same = not one or not other or one == other
        return same and _chosen(self.document.spec["podSelector"], workload, role, bundle)

    def pods(self, bundle: Bundle) -> Iterator[tuple[Workload, Role]]:
        """The roles whose pods it selects."""
        selector = self.document.spec["podSelector"]
        if not selector["matchExpressions"]:
            for workload, role in bundle.selected(selector["matchLabels"]):
                if role.template and self.holds_for(workload, role, bundle):
                    yield workload, role

    def closed(self, workload: Workload, role: Role, bundle: Bundle) -> Node | None:
        """What keeps the role's pods from each other: a rule's ``ports``, else the direction; None for nothing."""
        for key, rules in self._directions():
            reaching = [each for each in rules if _reaches(each[_PEERS[key]], workload, role, bundle)]
            if any(_wide(each) for each in reaching) or self._opened_elsewhere(key, workload, role, bundle):
                continue
            if reaching:
                return reaching[0]["ports"]
            held = self.document.spec[key]
            return held if held.exists else self.document.spec
        return None

    def _directions(self) -> Iterator[tuple[str, list[Node]]]:
        types = {each.text for each in self.document.spec["policyTypes"]}
        spec = self.document.spec
        if not types or "Ingress" in types:
            yield "ingress", spec["ingress"].items
        if "Egress" in types or (not types and spec["egress"].exists):
            yield "egress", spec["egress"].items

    def _opened_elsewhere(self, key: str, workload: Workload, role: Role, bundle: Bundle) -> bool:
        for document in bundle.of_kind("NetworkPolicy"):
            other = NetworkPolicy(document)
            if document is self.document or not other.holds_for(workload, role, bundle):
                continue
            for each in document.spec[key]:
                if _wide(each) and _reaches(each[_PEERS[key]], workload, role, bundle):
                    return True
        return False


_PEERS: Final = {"ingress": "from", "egress": "to"}


def _reaches(peers: Node, workload: Workload, role: Role, bundle: Bundle) -> bool:
    if not peers.items:
        return True
    return any(_is_them(each, workload, role, bundle) for each in peers)


def _is_them(peer: Node, workload: Workload, role: Role, bundle: Bundle) -> bool:
    """Whether a peer may be the role's own pods; an address range and another namespace's labels may be."""
    if peer["podSelector"].exists:
        return _chosen(peer["podSelector"], workload, role, bundle)
    return peer["namespaceSelector"].exists or peer["ipBlock"].exists


def _wide(rule: Node) -> bool:
    """Whether a rule opens all ports, or the range from which the kernel chooses."""
    if not rule["ports"].items:
        return True
    for port in rule["ports"]:
        first, last = port["port"].number, port["endPort"].number
        if port["protocol"].text in ("", "TCP"):
            if not port["port"]:
                return True
            if first is not None and last is not None and last - first > _MANY:
                return True
    return False


def _chosen(selector: Node, workload: Workload, role: Role, bundle: Bundle) -> bool:
    if selector["matchExpressions"]:
        return False
    return selects(selector["matchLabels"], bundle.labels(workload, role))
