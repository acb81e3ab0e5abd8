"""The gang's manifest: read, checked, and given an identity. Pure functions over plain YAML values.

A gang is a workload, who makes its pods (runtimes.py: a JobSet of one replicated job, an Indexed Job, …), and what has
to be there before they are: a PodGroup that places all of them or none, a headless Service that gives the pods of a Job
their names.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from argosy.steps.cluster.containers import main_of
from argosy.steps.cluster.kinds import COSCHEDULING_GROUP, VOLCANO_POD_GROUP
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.objects import COSCHEDULING_GROUP as GROUP_LABEL
from argosy.steps.contract.objects import GANG_LABEL, KAI_QUEUE, KUEUE_QUEUE, SPARES_ANNOTATION, VOLCANO_GROUP
from argosy.steps.gang.runtimes import RUNTIMES, Runtime, find_runtime, job_specs, runtime_of

ATTEMPT_LABEL = "argosy.dev/attempt"
_COMPANIONS = ("PodGroup", "Service", "TrainingRuntime")
"""What may stand beside the workload, at most once each, in the order in which it must be created."""
_ONLY_BESIDE = {"Service": "job", "TrainingRuntime": "trainjob"}


@dataclass(frozen=True)
class GangManifest:
    """``nnodes`` pods, one per node, and ``spares`` more; ``documents`` in the order of creation, the workload last."""

    documents: tuple[Mapping[str, Any], ...]
    nnodes: int
    nproc_per_node: int
    launcher: str = "torchrun"
    spares: int = 0

    @property
    def workload(self) -> Mapping[str, Any]:
        """Who makes the pods: the JobSet, Job, …"""
        return self.documents[-1]

    @property
    def runtime(self) -> Runtime:
        """How it makes them."""
        return runtime_of(self.workload)

    @property
    def placement(self) -> Literal["none", "native", "kueue", "volcano", "coscheduling", "kai"]:
        """Who makes the placement all-or-nothing."""
        if self.runtime.name == "volcano":
            return "volcano"
        if self.documents[0]["kind"] == "PodGroup":
            return _placement_of(self.documents[0])
        labels = self.workload.get("metadata", {}).get("labels", {})
        return "kueue" if KUEUE_QUEUE in labels else "kai" if KAI_QUEUE in labels else "none"


def read_manifest(path: Path) -> GangManifest:
    """Read a gang from a YAML file of one or several documents.

    Raises:
        InputError: no such file, not YAML, or what :func:`check_manifest` refuses.
    """
    try:
        documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each is not None]
    except OSError as error:
        raise InputError(f"gang = {str(path)!r}: {error.strerror}; give the path of the gang manifest") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"gang = {str(path)!r}: not YAML ({reason}); compile the run again") from error
    return check_manifest(documents, str(path))


def check_manifest(documents: Sequence[Any], origin: str) -> GangManifest:
    """Make sure that ``documents`` (from ``origin``) are a gang that can be supervised.

    Raises:
        InputError: they are not; says which rule they break.
    """
    ordered = _in_order(documents, origin)
    workload = ordered[-1]
    kind = workload["kind"]
    try:
        runtime = runtime_of(workload)
        pods = runtime.pods_in(ordered)
        nnodes = runtime.nodes(pods)
        container = main_container(pods)
        jobs = len(job_specs(workload))
        spares = int(workload.get("metadata", {}).get("annotations", {}).get(SPARES_ANNOTATION, 0))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"gang = {origin!r}: {error!r} is missing or wrong in the {kind}; compile again") from error
    if jobs != 1:
        raise InputError(f"gang = {origin!r}: {jobs} replicated jobs; a gang is one")
    if runtime.name == "job" and workload["spec"].get("completionMode") != "Indexed":
        raise InputError(f"gang = {origin!r}: the Job's pods have no index; write completionMode: Indexed")
    if not 0 <= spares < nnodes:
        raise InputError(
            f"gang = {origin!r}: {SPARES_ANNOTATION} is {spares} of {nnodes} pods; write 0 to {nnodes - 1}"
        )
    nproc = int(_option(container, "nproc-per-node", "1"))
    return GangManifest(ordered, nnodes - spares, nproc, _option(container, "launcher"), spares)


def _in_order(documents: Sequence[Any], origin: str) -> tuple[Mapping[str, Any], ...]:
    kinds = [each.get("kind") if isinstance(each, dict) else type(each).__name__ for each in documents]
    makers = [isinstance(each, dict) and find_runtime(each) is not None for each in documents]
    strange = next((k for k, makes in zip(kinds, makers, strict=True) if not makes and k not in _COMPANIONS), None)
    if strange is not None or sum(makers) != 1 or len({*kinds}) != len(kinds):
        found = repr(strange) if strange is not None else ", ".join(map(repr, kinds)) or "nothing"
        known = ", ".join(each.kind.kind for each in RUNTIMES)
        raise InputError(
            f"gang = {origin!r}: kind is {found}; one of {known} is wanted, with at most one each of "
            f"{', '.join(_COMPANIONS)}"
        )
    maker = kinds[makers.index(True)]
    runtime = runtime_of(documents[makers.index(True)])
    for kind, wanted in _ONLY_BESIDE.items():
        if kind in kinds and runtime.name != wanted:
            raise InputError(f"gang = {origin!r}: a {maker} makes a {kind} of its own, or needs none; leave it out")
    order = (*_COMPANIONS, maker)
    return tuple(sorted(documents, key=lambda each: order.index(each["kind"])))


def _option(container: Mapping[str, Any], name: str, default: str = "") -> str:
    words = [str(word) for word in [*container.get("command", []), *container.get("args", [])]]
    return next((word.partition("=")[2] for word in words if word.startswith(f"--{name}=")), default)


def pod_spec(workload: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
    """``spec`` of the template of the pod with this index."""
    spec: dict[str, Any] = runtime_of(workload).template(workload, index)["spec"]
    return spec


def main_container(workload: Mapping[str, Any]) -> dict[str, Any]:
    """Of the first pod."""
    found: dict[str, Any] = main_of(pod_spec(workload)["containers"])
    return found


def with_identity(
    manifest: GangManifest,
    *,
    name: str,
    attempt: int,
    nnodes: int,
    env: Mapping[str, str],
    excluded: tuple[str, ...],
    labels: Mapping[str, str] | None = None,
) -> list[dict[str, Any]]:
    """The documents as they are created, in that order; nothing but identity is changed.

    Every object is named ``name`` and it and the pods are labelled with it and ``attempt``; ``labels`` are further
    ones, for the pods only. Pods get ``env``, stay off the nodes ``excluded`` and are ``nnodes`` and the spares; the
    Service selects them, they are of its domain and of the PodGroup, which wants all of them.
    """
    documents = [copy.deepcopy(dict(each)) for each in manifest.documents]
    own = {GANG_LABEL: name, ATTEMPT_LABEL: str(attempt)}
    for document in documents:
        metadata = document.setdefault("metadata", {})
        metadata.pop("generateName", None)
        metadata["name"] = name
        metadata["labels"] = {**metadata.get("labels", {}), **own}
    runtime = manifest.runtime
    runtime.set_nodes(documents, nnodes + manifest.spares)
    if runtime.holder is not None:
        documents[-1]["spec"]["runtimeRef"]["name"] = name
    for template in runtime.templates(runtime.pods_in(documents)):
        template.setdefault("metadata", {}).setdefault("labels", {}).update({**(labels or {}), **own})
        # Not the init containers: a vendor's daemon beside the ranks needs neither the channel nor its token.
        for container in template["spec"]["containers"]:
            kept = [item for item in container.get("env", []) if item["name"] not in env]
            container["env"] = kept + [{"name": key, "value": value} for key, value in env.items()]
        for companion in documents[:-1]:
            _join(companion, template, name, nnodes)
        if excluded:
            exclude(template["spec"], excluded)
    return documents


def _join(companion: dict[str, Any], template: dict[str, Any], name: str, nnodes: int) -> None:
    spec, metadata = companion.setdefault("spec", {}), template["metadata"]
    if companion["kind"] == "Service":
        spec["selector"] = {GANG_LABEL: name}
        template["spec"]["subdomain"] = name
    elif companion["kind"] == "PodGroup":
        match _placement_of(companion):
            case "coscheduling":
                spec["minMember"] = nnodes
                metadata["labels"][GROUP_LABEL] = name
            case "volcano":
                spec["minMember"] = min(spec.get("minMember", nnodes), nnodes)
                metadata.setdefault("annotations", {})[VOLCANO_GROUP] = name
            case "native":
                spec["schedulingPolicy"] = {"gang": {"minCount": nnodes}}
                template["spec"]["schedulingGroup"] = {"podGroupName": name}


def _placement_of(group: Mapping[str, Any]) -> Literal["native", "volcano", "coscheduling"]:
    """Whose PodGroup it is; without an apiVersion Kubernetes' own."""
    version = group.get("apiVersion")
    if version == VOLCANO_POD_GROUP.api_version:
        return "volcano"
    return "coscheduling" if version == COSCHEDULING_GROUP.api_version else "native"


def exclude(pod: dict[str, Any], nodes: tuple[str, ...]) -> None:
    """Keep pods of this ``spec`` off the nodes, beside whatever it asks for already."""
    require(pod, {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(nodes)})


def require(pod: dict[str, Any], rule: dict[str, Any]) -> None:
    """A rule for the labels of the nodes that pods of this ``spec`` go to, beside whatever it asks for already."""
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    wanted = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # Terms are alternatives: the rule must stand in each of them.
    for term in wanted.setdefault("nodeSelectorTerms", []) or [{}]:
        term.setdefault("matchExpressions", []).append(rule)
        if term not in wanted["nodeSelectorTerms"]:
            wanted["nodeSelectorTerms"].append(term)


def excluded_nodes(workload: Mapping[str, Any]) -> set[str]:
    """Nodes that every alternative of the required node affinity leaves out by name."""
    affinity = pod_spec(workload).get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    sets = [
        {
            node
            for rule in term.get("matchExpressions", [])
            if rule["key"] == "kubernetes.io/hostname" and rule["operator"] == "NotIn"
            for node in rule["values"]
        }
        for term in terms
    ]
    return set.intersection(*sets) if sets else set()
