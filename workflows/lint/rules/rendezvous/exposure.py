"""Who else can reach the rendezvous.

The c10d store takes no password and its state is unpickled: whoever reaches the port runs code in every rank
(https://github.com/pytorch/pytorch/blob/main/SECURITY.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.rendezvous.ports import port_of
from argosy.workflows.lint.rules.rendezvous.services import talks
from argosy.workflows.lint.view.labels import labels_of, selects
from argosy.workflows.lint.view.service import Service
from argosy.workflows.lint.view.workload import Role, Workload

_DEFAULT_PORTS = frozenset({29400, 29500, 23456})


@rule("REND070", Level.ERROR, on=Document)
def outside(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The rendezvous port behind a Service that the world outside of the cluster reaches."""
    if document.kind != "Service" or not Service(document).external:
        return
    found = Service(document)
    for workload in bundle.workloads:
        roles = [role for role in workload.roles if role.template and found.selects(workload, role)]
        if not roles or not talks(workload, bundle):
            continue
        told = {port[1] for each in talks(workload, bundle) if (port := port_of(each)) is not None}
        for node, number in found.ports():
            if number in (told or _DEFAULT_PORTS):
                yield Problem(
                    node,
                    f"a {found.spec['type'].text} puts the rendezvous port {number} outside of the cluster: "
                    "its store takes no password and executes what it is sent",
                    "make the Service headless (clusterIP: None), without a type",
                )
                return


@rule("REND071", Level.NOTE, on=Workload)
def on_the_node(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The rendezvous on the node's own network."""
    found = talks(workload, bundle)
    role = next((each.role for each in found if each.role.pod.host_network), None)
    if role is not None:
        yield Problem(
            role.pod.spec["hostNetwork"],
            "the rendezvous listens on the node's own address, where no NetworkPolicy holds: its store takes no "
            "password, and two runs on one node need two ports",
            "firewall the nodes, and give each run a master port of its own",
        )


@rule("REND072", Level.ERROR, on=Document)
def some_ports_only(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A NetworkPolicy that lets ranks reach the rendezvous port and nothing else."""
    if document.kind != "NetworkPolicy":
        return
    for workload in bundle.workloads:
        if not _same_namespace(document, workload) or not (workload.gang or talks(workload, bundle)):
            continue
        role = next(
            (
                each
                for each in workload.roles
                if each.template and _chosen(document.spec["podSelector"], workload, each)
            ),
            None,
        )
        if role is None or (not workload.gpus and not talks(workload, bundle)):
            continue
        closed = _closed(document, workload, role, bundle)
        if closed is not None:
            yield Problem(
                closed,
                "ranks reach each other on these ports only: NCCL and Gloo listen on ports that the kernel chooses, so "
                "the rendezvous succeeds and the first collective hangs",
                "allow all ports between the pods of the run: a from/to rule with their labels and no ports",
            )
            return


def _same_namespace(document: Document, workload: Workload) -> bool:
    one, other = document.namespace, workload.document.namespace
    return not one or not other or one == other


def _closed(document: Document, workload: Workload, role: Role, bundle: Bundle) -> Node | None:
    """The ports of a direction in which no rule lets the ranks reach each other on all ports."""
    types = [each.text for each in document.spec["policyTypes"]]
    for key, peer, kind in (("ingress", "from", "Ingress"), ("egress", "to", "Egress")):
        rules = document.spec[key].items
        if not rules or (types and kind not in types):
            continue
        reaching = [each for each in rules if _reaches(each[peer], workload, role)]
        if not reaching or any(not each["ports"].items or _wide(each) for each in reaching):
            continue
        if not _opened_elsewhere(document, workload, role, bundle, key, peer):
            return reaching[0]["ports"]
    return None


def _reaches(peers: Node, workload: Workload, role: Role) -> bool:
    if not peers.items:
        return True
    return any(_chosen(each["podSelector"], workload, role) for each in peers if each["podSelector"].exists)


def _wide(allowed: Node) -> bool:
    """Whether a rule opens the ephemeral range."""
    for port in allowed["ports"]:
        first, last = port["port"].number, port["endPort"].number
        protocol = port["protocol"].text or "TCP"
        if protocol == "TCP" and (
            not port["port"] or (first is not None and last is not None and last - first > 10000)
        ):
            return True
    return False


def _chosen(selector: Node, workload: Workload, role: Role) -> bool:
    if selector["matchExpressions"]:
        return False
    return selects(selector["matchLabels"], labels_of(workload, role))


def _opened_elsewhere(document: Document, workload: Workload, role: Role, bundle: Bundle, key: str, peer: str) -> bool:
    """Policies add up: another one may open what this one leaves shut."""
    for other in bundle.of_kind("NetworkPolicy"):
        if other is document or not _chosen(other.spec["podSelector"], workload, role):
            continue
        for each in other.spec[key]:
            if _reaches(each[peer], workload, role) and (not each["ports"].items or _wide(each)):
                return True
    return False
