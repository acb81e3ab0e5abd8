"""Whom the ranks dial: the master's address, the rendezvous endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.rendezvous.services import other_service, talks
from argosy.workflows.manifests.address import Address
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.injected import has_master
from argosy.workflows.manifests.labels import narrows_to_one
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.names import PodNames, names_made, pod_names
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.service import service
from argosy.workflows.manifests.workload import Workload

_OWN = re.compile(r"\$\{?HOSTNAME\}?|\$\(hostname[^)]*\)|`hostname[^`]*`")
_SETS_ADDRESS = ("TrainJob", "TrainingRuntime", "ClusterTrainingRuntime")


def _names(workload: Workload) -> list[tuple[Role, PodNames]]:
    pairs = [(role, pod_names(workload, role)) for role in workload.roles if role.template]
    return [(role, names) for role, names in pairs if names is not None]


def dialled(workload: Workload, bundle: Bundle) -> Iterator[tuple[Launch, Given, Address]]:
    """The commands that dial a name, with the place that says so."""
    for each in talks(workload, bundle):
        master = each.master
        if master is not None and not master[1].loopback and not master[1].ip:
            yield each, *master


@rule("REND010", Level.WARNING, on=Workload)
def no_such_pod(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A name that is meant to be one of the workload's pods, and is none."""
    if workload.document.metadata["ownerReferences"]:
        return  # whoever made the pod makes its Service, too
    own = _names(workload)
    for _, given, address in dialled(workload, bundle):
        if workload.family == "pod" and _bare(address, workload, bundle):
            yield Problem(
                given.node,
                f"{address.host} is the name of a Pod, and a pod's name is no DNS name",
                "write a headless Service, and hostname and subdomain in the Pod; dial HOSTNAME.SUBDOMAIN",
                inside=given.inside,
            )
            continue
        if _random(workload, address) and service(bundle, address.host, workload.document) is None:
            yield Problem(
                given.node,
                f"the pods of a Job that is not Indexed have random names, and none is {address.host}",
                "write completionMode: Indexed, and a subdomain with a headless Service of its name",
                level=Level.WARNING,
                inside=given.inside,
            )
            continue
        meant = [names for _, names in own if names.looks_like(address.host) or address.service in names.subdomains]
        if not meant or service(bundle, address.host, workload.document) is not None:
            continue
        what = _wrong(address, meant, [names for _, names in own], bundle, workload)
        if what:
            best = next((each for each in meant if each.looks_like(address.host)), meant[0])
            # A host alone may be a Service of another file, and what stands behind it a namespace.
            sure = address.service and (
                any(address.service in each.subdomains for each in meant) or len(address.labels) > 1 + address.qualified
            )
            level = None if sure and (address.qualified or len(address.labels) > 1) else Level.NOTE
            yield Problem(given.node, what, f"write {best.first}", level=level, inside=given.inside)


def _bare(address: Address, workload: Workload, bundle: Bundle) -> bool:
    """Whether a Pod's own name is dialled, and no Service has it."""
    pod = bundle.find("Pod", address.host, workload.document) if len(address.labels) == 1 else None
    if pod is None or workload.document.name == address.host:
        return False
    return service(bundle, address.host, workload.document) is None


def _random(workload: Workload, address: Address) -> bool:
    """Whether the name is written as an Indexed Job's pods are named, and the Job is not Indexed."""
    name, document = workload.document.metadata["name"], workload.document
    if document.kind != "Job" or workload.family != "job" or name.open or not name.text:
        return False
    mode = document.spec["completionMode"]
    return mode.text != "Indexed" and not mode.open and bool(re.fullmatch(re.escape(name.text) + r"-\d+", address.host))


def _wrong(address: Address, meant: list[PodNames], own: list[PodNames], bundle: Bundle, workload: Workload) -> str:
    if address.qualified and len(address.labels) == 2 and any(address.labels[1] in each.subdomains for each in meant):
        return f"{'.'.join(address.labels)}.svc is a Service {address.host} in a namespace {address.labels[1]}"
    exact = [names for names in own if names.has(address.host)]
    if not exact:
        if _elsewhere(address, workload, bundle):
            return ""
        if not address.service and not any(names.per_pod for names in meant):
            return ""  # a name without a second part may be a Service that is not among the files
        return f"no pod of this {workload.document.kind} is named {address.host}"
    if any(names.per_pod or not names.subdomains for names in exact):
        return ""
    if not address.service and not any(names.searched for names in exact):
        return f"{address.host} alone is a name that only its own pod knows"
    if address.service and not any(address.service in names.subdomains for names in exact):
        return f"the pods' subdomain is {exact[0].subdomains[0]}, not {address.service}"
    return ""


@rule("REND011", Level.ERROR, on=Workload)
def itself(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Every pod dials itself."""
    for each in bundle.launches(workload):
        if not each.several_nodes or _alone(each, workload):
            continue
        nodes = each.nodes
        given, master = each.master_given, each.master
        if given is not None:
            own = master[1].host if master is not None and master[1].loopback else _own_name(each, given)
            if own:
                yield Problem(
                    given.node,
                    f"every pod dials itself at {own}: the {nodes[2] if nodes else 'several'} nodes never meet",
                    "write the DNS name of the pod with rank 0",
                    inside=given.inside,
                )
        elif each.torch and not _set_by_operator(workload) and each.option("standalone") is None:
            told = each.variable("MASTER_ADDR")
            if told is None and _unknown(each, bundle):
                continue
            node, inside = (nodes[0].node, nodes[0].inside) if nodes is not None else (each.process.node, "")
            ignored = " (it does not read MASTER_ADDR)" if told is not None else ""
            yield Problem(
                node,
                f"{each.program} of several nodes is not told whom to dial and takes 127.0.0.1{ignored}: every pod "
                "waits for the others at its own address",
                "give --master-addr, or --rdzv-backend=c10d with --rdzv-endpoint",
                level=Level.WARNING
                if workload.document.kind == "PyTorchJob" or workload.family == "other"
                else None,  # a fork's operator, or one that is not known, may tell it
                inside=inside,
            )


def _set_by_operator(workload: Workload) -> bool:
    document = workload.document
    if document.kind == "PyTorchJob":
        return has_master(document) or bool(document.spec["elasticPolicy"])
    return document.kind in _SETS_ADDRESS


def _alone(launch: Launch, workload: Workload) -> bool:
    """Whether the command may run in one pod only: the first role's single pod, a branch of a script."""
    if workload.family in ("argo", "pod") or workload.total == 1:
        return True
    first = launch.role is workload.roles[0] and launch.role.replicas == 1
    text = launch.process.node.text if launch.process.in_shell else ""
    return first or re.search(r"\b(if|case)\b|\[\[? ", text) is not None


def _own_name(launch: Launch, given: Given) -> str:
    """The pod's own name or address, written as a variable; ``""`` when it is none."""
    match = _OWN.search(given.written)
    if match is not None:
        return match[0]
    for name in re.findall(r"\$[({]?([A-Za-z_]\w*)", given.written):
        found = launch.environment.get(name)
        path = found.node.at("valueFrom.fieldRef.fieldPath").text if found is not None and found.how == "env" else ""
        if path in ("metadata.name", "status.podIP", "status.podIPs"):
            return f"${name} (its own {path})"
    return ""


def _unknown(launch: Launch, bundle: Bundle) -> bool:
    """Whether the address may come from a ConfigMap that is not among the files."""
    for source in launch.container.node["envFrom"]:
        name = source.at("configMapRef.name").text
        if not name or bundle.config_map(name, launch.container.pod.document) is None:
            return True
    return False


@rule("REND012", Level.WARNING, on=Workload)
def any_of_them(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The master's name is a Service that stands for several pods."""
    for each, given, address in dialled(workload, bundle):
        found = service(bundle, address.host, workload.document)
        backend = each.backend if each.torch else "static"
        if (
            found is None
            or backend is None
            or backend.startswith("etcd")
            or any(address.service in names.subdomains for _, names in _names(workload))
        ):
            continue
        held = sum(
            _replicas(role) for role in workload.roles if role.template and found.selects(workload, role, bundle)
        )
        if held > 1 and not narrows_to_one(found.selector):
            yield Problem(
                given.node,
                f"the Service {address.host} stands for {held} pods, so a rank reaches any of them, not rank 0",
                _first(workload),
                inside=given.inside,
            )


def _replicas(role: Role) -> int:
    return role.replicas if role.replicas is not None else 1


def _first(workload: Workload) -> str:
    known = next((names.first for _, names in _names(workload) if names.subdomains), "")
    return (
        f"write {known}" if known else "write the name of one pod, or let the Service select one pod by its index label"
    )


@rule("REND013", Level.NOTE, on=Workload)
def unknown_service(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Service that nobody makes, as far as the files show."""
    own = _names(workload)
    for _, given, address in dialled(workload, bundle) if workload.family != "argo" else ():
        name = address.service or address.host
        if any(
            names.has(address.host) or names.looks_like(address.host) or name in names.subdomains for _, names in own
        ):
            continue
        if _random(workload, address):
            continue
        known = (service(bundle, each, workload.document) for each in (name, address.host))
        if any(known) or _elsewhere(address, workload, bundle) or len(address.labels) > 3:
            continue
        yield Problem(
            given.node,
            f"the ranks dial {'.'.join(address.labels)}, and no Service {name} is among the files given",
            f"add a headless Service {name} that selects the pods with the name that is dialled",
            level=Level.WARNING if other_service(workload, bundle) or _near_its_own(address, workload) else None,
            inside=given.inside,
        )


def _near_its_own(address: Address, workload: Workload) -> bool:
    """Whether a controller makes the pods' names, and one is dialled that is like them and none of them."""
    own = any(names.made and not names.per_pod for _, names in _names(workload))
    return own and address.host.startswith(f"{workload.document.name}-")


def _elsewhere(address: Address, workload: Workload, bundle: Bundle) -> bool:
    return any(each is not workload and names.has(address.host) for each, names in bundle.pod_names_of_all)


@rule("REND014", Level.ERROR, on=Workload)
def names_switched_off(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A JobSet without DNS names, a Volcano Job without its ``svc`` plugin, the node's own resolver."""
    for each, given, address in dialled(workload, bundle):
        own_pod = any(names.has(address.host) for _, names in _names(workload))
        if (own_pod or service(bundle, address.host, workload.document)) and _asks_the_node(each, workload):
            yield Problem(
                each.role.pod.spec["hostNetwork"],
                f"hostNetwork without dnsPolicy: ClusterFirstWithHostNet asks the node's resolver, which does not know "
                f"{'.'.join(address.labels)}",
                "write dnsPolicy: ClusterFirstWithHostNet",
                level=Level.WARNING,
            )
            return
        if not own_pod:
            continue
        if workload.family == "jobset" and workload.spec.at("network.enableDNSHostnames").flag is False:
            yield Problem(
                workload.spec.at("network.enableDNSHostnames"),
                f"the JobSet makes no DNS names for its pods, and the ranks dial {'.'.join(address.labels)}",
                "write enableDNSHostnames: true, or leave it out",
            )
            return
        own = service(bundle, address.service, workload.document)
        if workload.family == "volcano" and not names_made(workload.document) and own is None:
            yield Problem(
                given.node,
                f"{'.'.join(address.labels)} exists only with the plugin svc, which the Job does not have",
                "write plugins: {svc: []}",
                inside=given.inside,
            )
            return


def _asks_the_node(launch: Launch, workload: Workload) -> bool:
    spec = launch.role.pod.spec
    policy = spec["dnsPolicy"]
    on_host = spec["hostNetwork"].flag is True and policy.text in ("", "ClusterFirst") and not policy.open
    return on_host and workload.family in ("job", "jobset", "pod", "other")
