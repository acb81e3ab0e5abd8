"""The gang's manifest: read, checked, and given an identity. Pure functions over plain YAML values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from argosy.steps.contract.errors import InputError

GANG_LABEL = "argosy.dev/gang"
ATTEMPT_LABEL = "argosy.dev/attempt"


@dataclass(frozen=True)
class GangManifest:
    """A JobSet with one replicated job; ``nnodes`` pods, one per node."""

    document: Mapping[str, Any]
    nnodes: int
    nproc_per_node: int


def read_manifest(path: Path) -> GangManifest:
    """Read a JobSet from a YAML file.

    Raises:
        InputError: no such file, not YAML, not a JobSet of one replicated job with parallelism = completions.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"gang = {str(path)!r}: {error.strerror}; give the path of the gang manifest") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"gang = {str(path)!r}: not YAML ({reason}); compile the run again") from error
    return check_manifest(document, str(path))


def check_manifest(document: Any, origin: str) -> GangManifest:
    """Make sure that ``document`` (from ``origin``) is a gang that can be supervised.

    Raises:
        InputError: it is not; says which rule it breaks.
    """
    kind = document.get("kind") if isinstance(document, dict) else type(document).__name__
    if kind != "JobSet":
        raise InputError(f"gang = {origin!r}: kind is {kind!r}; a JobSet is wanted")
    try:
        jobs = document["spec"]["replicatedJobs"]
        job = job_spec(document)
        parallelism, completions = int(job["parallelism"]), int(job.get("completions", job["parallelism"]))
        container = main_container(document)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"gang = {origin!r}: {error!r} is missing or wrong in the JobSet; compile again") from error
    if len(jobs) != 1 or parallelism != completions or parallelism < 1:
        raise InputError(
            f"gang = {origin!r}: {len(jobs)} replicated jobs, parallelism {parallelism}, completions {completions}; "
            "a gang is one replicated job whose parallelism equals its completions"
        )
    return GangManifest(document, parallelism, _nproc(container))


def _nproc(container: Mapping[str, Any]) -> int:
    words = [str(word) for word in [*container.get("command", []), *container.get("args", [])]]
    for word in words:
        if word.startswith("--nproc-per-node="):
            return int(word.partition("=")[2])
    return 1


def job_spec(document: Mapping[str, Any]) -> dict[str, Any]:
    """``spec`` of the batch Job inside."""
    spec: dict[str, Any] = document["spec"]["replicatedJobs"][0]["template"]["spec"]
    return spec


def pod_spec(document: Mapping[str, Any]) -> dict[str, Any]:
    """``spec`` of the pod template inside."""
    spec: dict[str, Any] = job_spec(document)["template"]["spec"]
    return spec


def main_container(document: Mapping[str, Any]) -> dict[str, Any]:
    """The container named ``main``, or the only one."""
    containers = pod_spec(document)["containers"]
    found: dict[str, Any] = next((item for item in containers if item.get("name") == "main"), containers[0])
    return found


def with_identity(
    manifest: GangManifest, *, name: str, attempt: int, nnodes: int, env: Mapping[str, str], excluded: tuple[str, ...]
) -> dict[str, Any]:
    """The manifest as it is created: name, labels, environment, excluded nodes, number of nodes; nothing else."""
    document: dict[str, Any] = copy.deepcopy(dict(manifest.document))
    labels = {GANG_LABEL: name, ATTEMPT_LABEL: str(attempt)}
    metadata = document.setdefault("metadata", {})
    metadata.pop("generateName", None)
    metadata["name"] = name
    metadata["labels"] = {**metadata.get("labels", {}), **labels}
    job = job_spec(document)
    job["parallelism"] = job["completions"] = nnodes
    template = job["template"]
    template.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    # Not the init containers: a vendor's daemon beside the ranks needs neither the channel nor its token.
    for container in pod_spec(document)["containers"]:
        kept = [item for item in container.get("env", []) if item["name"] not in env]
        container["env"] = kept + [{"name": key, "value": value} for key, value in env.items()]
    if excluded:
        _exclude(pod_spec(document), excluded)
    return document


def _exclude(pod: dict[str, Any], nodes: tuple[str, ...]) -> None:
    rule = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(nodes)}
    affinity = pod.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    wanted = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # Terms are alternatives: the rule must stand in each of them.
    for term in wanted.setdefault("nodeSelectorTerms", []) or [{}]:
        term.setdefault("matchExpressions", []).append(rule)
        if term not in wanted["nodeSelectorTerms"]:
            wanted["nodeSelectorTerms"].append(term)


def excluded_nodes(document: Mapping[str, Any]) -> set[str]:
    """Nodes that every alternative of the required node affinity leaves out by name."""
    affinity = pod_spec(document).get("affinity", {}).get("nodeAffinity", {})
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
