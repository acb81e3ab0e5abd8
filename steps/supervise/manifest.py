"""A user's gang: read, and given the identity of one attempt. Pure functions over plain YAML values."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from argosy.steps.cluster.kinds import kind_of
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.objects import GANG_LABEL
from argosy.steps.gang.manifest import ATTEMPT_LABEL, GangManifest, exclude
from argosy.steps.gang.runtimes import RUNTIMES, job_specs, pod_count, runtime_of

_WORKLOADS = ("JobSet", "Job")
_KINDS = ("PodGroup", "Service", *_WORKLOADS)
"""What a file may hold, at most one of each, in the order of creation."""
NAME_CHARACTERS = 30
_OF_CONTROLLERS = ("job-name", "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name")
_ADDRESS = re.compile(r"ADDR|HOST|ENDPOINT|SERVICE|SUBDOMAIN")


def read_gang(path: Path, namespace: str) -> tuple[GangManifest, str, list[str]]:
    """(the gang with one owner of restarts, its name, what was changed for that: one line each).

    Raises:
        InputError: not a file of YAML, or a gang that cannot be supervised; says which rule it breaks.
    """
    try:
        documents = [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each is not None]
    except OSError as error:
        raise InputError(f"gang = {str(path)!r}: {error.strerror}; give the path of a JobSet or Job") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"gang = {str(path)!r}: not YAML ({' '.join(str(error).split())})") from error
    ordered = _ordered(documents, str(path))
    workload = ordered[-1]
    try:
        _check(workload, str(path))
        changes = list(_one_owner(workload))
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        what = f"{error} is missing" if isinstance(error, KeyError) else f"a field is of the wrong kind ({error})"
        raise InputError(
            f"gang = {str(path)!r}: {workload['kind']}: {what}; kubectl apply --dry-run=server -f tells more"
        ) from error
    given = {str(each["metadata"]["namespace"]) for each in ordered if each["metadata"].get("namespace")}
    if given - {namespace}:
        raise InputError(f"gang = {str(path)!r}: is for namespace {given.pop()}, this is {namespace}; pass -n")
    metadata = workload["metadata"]
    name = str(metadata.get("name") or str(metadata.get("generateName", "gang")).rstrip("-"))
    return GangManifest(ordered, pod_count(workload), 1), name, changes


def _ordered(documents: list[Any], origin: str) -> tuple[dict[str, Any], ...]:
    kinds = [str(each.get("kind")) if isinstance(each, dict) else type(each).__name__ for each in documents]
    for kind in kinds:
        if kind not in _KINDS:
            raise InputError(
                f"gang = {origin!r}: holds a {kind}; a gang is one JobSet or Job, with at most a Service and a "
                f"PodGroup; {_instead(kind)}"
            )
    if sum(kind in _WORKLOADS for kind in kinds) != 1 or len({*kinds}) != len(kinds):
        found = ", ".join(kinds) or "nothing"
        raise InputError(f"gang = {origin!r}: holds {found}; one JobSet or Job is wanted, and of the others one each")
    if any(
        document.get("kind") in _WORKLOADS and runtime_of(document).name not in ("jobset", "job")
        for document in documents
    ):
        raise InputError(f"gang = {origin!r}: holds a Job of Volcano's; an Indexed Job of Kubernetes is wanted")
    for document in documents:
        if not isinstance(document.setdefault("metadata", {}), dict) or not isinstance(document.get("spec"), dict):
            raise InputError(f"gang = {origin!r}: the {document['kind']} has no spec, or its metadata is no mapping")
        try:
            kind_of(document)
        except KeyError as error:
            raise InputError(f"gang = {origin!r}: nobody here speaks {error} (apiVersion, kind)") from None
    return tuple(sorted(documents, key=lambda each: _KINDS.index(each["kind"])))


def _instead(kind: str) -> str:
    if any(kind == runtime.kind.kind for runtime in RUNTIMES):  # applied beside the gang it would train as well
        return f"argosy import makes a run of a {kind}"
    return "apply the rest before, with kubectl"


def _check(workload: Mapping[str, Any], origin: str) -> None:
    for _, job in job_specs(workload):
        pods, done = int(job.get("parallelism", 1)), int(job.get("completions", job.get("parallelism", 1)))
        if not job["template"]["spec"]["containers"]:
            raise ValueError("containers")
        if pods != done or pods < 1:
            raise InputError(
                f"gang = {origin!r}: parallelism {pods} and completions {done}; all pods of a gang run at once, so "
                "write the same number, 1 or more"
            )
    if workload["kind"] == "Job" and workload["spec"].get("completionMode") != "Indexed":
        raise InputError(f"gang = {origin!r}: the Job's pods have no index; write completionMode: Indexed")


def _one_owner(workload: dict[str, Any]) -> Iterator[str]:
    """Nobody but the supervisor restarts anything, and nothing is swept away before it was read."""
    why = "the supervisor restarts"
    if workload["kind"] == "JobSet":
        given = workload["spec"].pop("failurePolicy", None) or {}
        workload["spec"]["failurePolicy"] = {"maxRestarts": 0}
        if given.get("maxRestarts") or given.get("rules"):
            yield f"failurePolicy.maxRestarts {given.get('maxRestarts', 0)} -> 0, no rules: {why}"
    for spec in (workload["spec"], *(job for _, job in job_specs(workload))):
        if spec.pop("ttlSecondsAfterFinished", None) is not None:
            yield "ttlSecondsAfterFinished removed: the gang is deleted when its end has been read"
    for number, (_, job) in enumerate(job_specs(workload)):
        which = workload["spec"]["replicatedJobs"][number]["name"] + ": " if workload["kind"] == "JobSet" else ""
        for field in ("backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy", "podReplacementPolicy"):
            if job.pop(field, None) is not None:
                yield f"{which}{field} removed: {why}"
        if job.get("backoffLimit"):
            yield f"{which}backoffLimit {job['backoffLimit']} -> 0: {why}"
        job["backoffLimit"] = 0
        pod = job["template"]["spec"]
        if pod.get("restartPolicy", "Never") != "Never":
            yield f"{which}restartPolicy {pod['restartPolicy']} -> Never: {why}"
        pod["restartPolicy"] = "Never"


def rendered(
    manifest: GangManifest, name: str, attempt: int, excluded: tuple[str, ...], labels: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The documents of one attempt, all called ``name``; host names in them that the user wrote follow."""
    documents = [copy.deepcopy(dict(each)) for each in manifest.documents]
    workload = documents[-1]
    old = str(workload["metadata"].get("name", ""))
    domain, names = _domain(documents), _names(workload, old, name)
    own = {GANG_LABEL: name, ATTEMPT_LABEL: str(attempt)}
    for document in documents:
        metadata = document["metadata"]
        metadata.pop("generateName", None)
        metadata["labels"] = {**(metadata.get("labels") or {}), **own}
        metadata["name"] = name
        if document["kind"] == "Service":
            document["spec"]["selector"] = {**(document["spec"].get("selector") or {}), GANG_LABEL: name}
            _follow_labels(document["spec"]["selector"], names)
    if (workload["spec"].get("network") or {}).get("subdomain"):
        workload["spec"]["network"]["subdomain"] = name
    for _, job in job_specs(workload):
        metadata = job["template"].setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels, **own}
        pod = job["template"]["spec"]
        if pod.get("subdomain"):
            pod["subdomain"] = name
        if pod.get("schedulingGroup"):
            pod["schedulingGroup"]["podGroupName"] = name
        if old:
            _rename(pod, old, domain, name)
        for part in (metadata["labels"], pod.get("affinity"), pod.get("topologySpreadConstraints")):
            _follow_labels(part, names)
        if excluded:
            exclude(pod, excluded)
    return documents


def _follow_labels(part: Any, names: Mapping[str, str]) -> None:
    """The labels in which controllers put the gang's names, in selectors too; the user's own keep their values, and so
    do these where they name another's Job or JobSet.
    """
    if isinstance(part, dict):
        for key, value in part.items():
            if key in _OF_CONTROLLERS and isinstance(value, str):
                part[key] = names.get(value, value)
            elif key == "values" and part.get("key") in _OF_CONTROLLERS:
                part[key] = [names.get(each, each) for each in value or ()]
            else:
                _follow_labels(value, names)
    for each in part if isinstance(part, list) else ():
        _follow_labels(each, names)


def _names(workload: Mapping[str, Any], old: str, name: str) -> dict[str, str]:
    """What its controller calls it and its Jobs, and will."""
    parts = [f"-{role['name']}-{index}" for role in workload["spec"].get("replicatedJobs") or []
             for index in range(int(role.get("replicas", 1)))]  # fmt: skip
    return {old + part: name + part for part in ("", *parts)} if old else {}


def _domain(documents: list[dict[str, Any]]) -> str:
    """The second part of the host names that the user's pods have: ``trainer-0.DOMAIN``."""
    spec = documents[-1]["spec"]
    pods = [str(job["template"]["spec"].get("subdomain") or "") for _, job in job_specs(documents[-1])]
    services = [str(each["metadata"].get("name", "")) for each in documents if each["kind"] == "Service"]
    given = (spec.get("network") or {}).get("subdomain")
    return str(given or next((text for text in (*pods, *services) if text), "") or documents[-1]["metadata"]["name"])


def _rename(pod: dict[str, Any], old: str, domain: str, name: str) -> None:
    host = re.compile(rf"(?<![\w.-]){re.escape(old)}(-[\w$(){{}}-]+)\.{re.escape(domain)}(?![\w-])")
    service = re.compile(rf"(?:(?<![\w./-])|(?<=://)){re.escape(domain)}(?=:\d|\.svc\b)")

    def follow(text: str) -> str:
        return service.sub(name, host.sub(rf"{name}\1.{name}", text))

    for container in (*(pod.get("initContainers") or []), *pod["containers"]):
        for part in ("command", "args"):
            if container.get(part):
                container[part] = [follow(str(word)) for word in container[part]]
        for item in container.get("env") or []:
            if isinstance(item.get("value"), str):
                named = item["value"] == domain and _ADDRESS.search(item["name"])
                item["value"] = name if named else follow(item["value"])
