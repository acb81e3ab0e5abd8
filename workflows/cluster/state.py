"""A Workflow object of the API as the state that the local engine writes: one form for all readers."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import RUN_NAME
from argosy.steps.record.reading import moment, text
from argosy.steps.runlog import Event

YAML_SHA256 = "argosy.dev/yaml-sha256"
"""Annotation: digest of the YAML that was submitted."""
UNMADE_SECONDS = 60.0
"""So long a step may be pending without a word of its pod."""
UNNOTICED_SECONDS = 20.0
"""A controller that watches the namespace says Running within one or two."""


def state_of(workflow: Mapping[str, Any]) -> dict[str, Any]:
    """The state; a Workflow that no controller has seen yet has no phase.

    Raises:
        InputError: the controller keeps the nodes in a database.
    """
    metadata, status = _map(workflow, "metadata"), _map(workflow, "status")
    annotations, parameters = facts_of(workflow), _parameters(workflow)
    return {
        "name": text(metadata, "name"),
        "namespace": text(metadata, "namespace"),
        "uid": text(metadata, "uid"),
        "yaml_sha256": str(annotations.get(YAML_SHA256, "")),
        "annotations": annotations,
        "parameters": parameters,
        # Another workflow began the run that a run-id names.
        "taken_up": moment(metadata, "creationTimestamp") if parameters.get("run-id") else None,
        "phase": "Failed" if _unbegun(workflow) else text(status, "phase"),
        "message": text(status, "message") or _held(workflow),
        "progress": text(status, "progress"),
        "started": moment(status, "startedAt"),
        "finished": moment(status, "finishedAt"),
        "nodes": [
            {**each, "message": each["message"] or _unmade(each, metadata)} for each in map(_node, _nodes(status))
        ],
    }


def _held(workflow: Mapping[str, Any]) -> str:
    """Argo lets the pods that run go on and starts no other; its phase stays Running, also when it was told to end."""
    spec, metadata, status = (_map(workflow, each) for each in ("spec", "metadata", "status"))
    told = text(spec, "shutdown")
    if status.get("finishedAt"):
        return ""
    age = time.time() - (moment(metadata, "creationTimestamp") or time.time())
    if not text(status, "phase") and age > UNNOTICED_SECONDS:
        namespace = text(metadata, "namespace")
        return f"No Argo controller has taken it up yet; is there one that watches namespace {namespace}? argosy doctor"
    if spec.get("suspend") is not True:
        return f"Argo was told to end it (shutdown: {told})" if told else ""
    resume = f"argo resume {text(metadata, 'name')} -n {text(metadata, 'namespace')}"
    if told:
        return f"Argo was told to end it (shutdown: {told}), and it is suspended: it ends once it is resumed: {resume}"
    return f"The Workflow is suspended, no further step begins: {resume}"


def _unbegun(workflow: Mapping[str, Any]) -> bool:
    """Argo calls it a success that a Workflow is terminated which waits for a mutex or a semaphore (4.0.7)."""
    status = _map(workflow, "status")
    if text(status, "phase") != "Succeeded" or not text(_map(workflow, "spec"), "shutdown"):
        return False
    root = text(_map(workflow, "metadata"), "name")
    return not any(text(each, "name") == root and text(each, "phase") == "Succeeded" for each in _nodes(status))


def _unmade(node: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Argo, retried before the last pod of a step was gone, takes it for the new one, and looks again when the Workflow
    changes, or in twenty minutes. Of a pod that is there it says why it is pending.
    """
    silent = time.time() - (node["startedAt"] or time.time())
    if (node["type"], node["phase"]) != ("Pod", "Pending") or silent < UNMADE_SECONDS:
        return ""
    wake = f"kubectl label --overwrite -n {text(metadata, 'namespace')} workflow {text(metadata, 'name')}"
    return f"Argo tells of no pod of it: if it has none, wake the Workflow: {wake} argosy.dev/woken=$(date +%s)"


def facts_of(workflow: Mapping[str, Any]) -> dict[str, str]:
    """Annotations of the Workflow, and those that it will have from its template."""
    below = _map(_map(_template(workflow), "workflowMetadata"), "annotations")
    return {**below, **_map(_map(workflow, "metadata"), "annotations")}


def is_ours(metadata: Mapping[str, Any]) -> bool:
    """Whether an object's metadata say that it is a run of ours."""
    return RUN_NAME in _map(metadata, "annotations")


def told_by_nodes(state: Mapping[str, Any]) -> list[Event]:
    """What our steps' outputs say, for a reader who cannot read the event log."""
    found = []
    for node in state["nodes"]:
        kind, fields = _TOLD.get(node["templateName"], ("", {}))
        outputs = node["outputs"]
        values = {field: outputs[name] for field, name in fields.items() if outputs.get(name)}
        if kind and values:
            found.append(Event(node["finishedAt"] or 0.0, kind, "outputs", values))
    return found


_TOLD: dict[str, tuple[str, dict[str, str]]] = {
    "snapshot": ("snapshot_taken", {"dataset_digest": "dataset-digest", "objects": "objects", "bytes": "bytes"}),
    "admit": ("admission", {"decision": "decision", "reason": "reason"}),
    "train": ("train_ended", {"checkpoint_digest": "checkpoint-digest"}),
    "gate": ("gated", {"decision": "decision", "reason": "reason"}),
}


def _parameters(workflow: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for spec in (_template(workflow), _map(workflow, "spec")):
        listed = _map(spec, "arguments").get("parameters")
        for each in listed if isinstance(listed, list) else []:
            found[str(each.get("name"))] = str(each.get("value", each.get("default", "")))
    return found


def _template(workflow: Mapping[str, Any]) -> Mapping[str, Any]:
    return _map(_map(workflow, "status"), "storedWorkflowTemplateSpec")


def _nodes(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    packed = text(status, "compressedNodes")
    nodes = json.loads(gzip.decompress(base64.b64decode(packed))) if packed else status.get("nodes")
    if not nodes and status.get("offloadNodeStatusVersion"):
        raise InputError(
            "the controller keeps this Workflow's nodes in its database, which only the Argo server reads; ask there, "
            "or give the run by its place in the store: argosy status s3://BUCKET/…/runs/RUN_ID"
        )
    yield from nodes.values() if isinstance(nodes, dict) else ()


def _node(node: Mapping[str, Any]) -> dict[str, Any]:
    outputs = _map(node, "outputs")
    listed = outputs.get("parameters")
    reference = _map(node, "templateRef")
    return {
        **{key: text(node, key) for key in ("id", "name", "displayName", "type", "phase", "message", "progress")},
        "templateName": text(node, "templateName") or text(reference, "template"),
        "startedAt": moment(node, "startedAt"),
        "finishedAt": moment(node, "finishedAt"),
        "exitCode": outputs.get("exitCode"),
        "outputs": {str(each.get("name")): str(each.get("value", "")) for each in listed or []},
    }


def _map(record: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = record.get(key)
    return value if isinstance(value, Mapping) else {}
