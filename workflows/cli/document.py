"""Facts of a compiled workflow that the command line needs before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from argosy.steps.contract.errors import InputError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def mappings(root: Any) -> Iterator[Mapping[str, Any]]:
    """Every map in a document, each once, however often aliases name it."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping | list) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Mapping):
            yield node
        waiting.extend(node.values() if isinstance(node, Mapping) else node)


def claim_mounts(document: Mapping[str, Any], state_dir: Path) -> dict[str, str]:
    """Mount path -> folder of every PersistentVolumeClaim in a workflow, as the engine lays them out here."""
    claims: dict[str, str] = {}
    mounts: list[tuple[str, str]] = []
    for node in mappings(document):
        claim, name = node.get("persistentVolumeClaim"), node.get("name")
        if isinstance(claim, Mapping) and isinstance(name, str):
            claims[name] = str(claim.get("claimName"))
        path = node.get("mountPath")
        if isinstance(path, str) and isinstance(name, str) and not node.get("subPath"):
            mounts.append((path, name))
    return {path: str(state_dir / "volumes" / claims[name]) for path, name in mounts if name in claims}


def annotation(document: Mapping[str, Any], key: str) -> str:
    """An annotation of the workflow; "" when it has none."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return str(annotations.get(key, "")) if isinstance(annotations, Mapping) else ""


def parameters(document: Mapping[str, Any]) -> dict[str, str]:
    """Workflow parameters and their defaults ("" for none)."""
    spec = document.get("spec")
    arguments = spec.get("arguments") if isinstance(spec, Mapping) else None
    listed = arguments.get("parameters") if isinstance(arguments, Mapping) else None
    found = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return {str(each.get("name")): str(each.get("value", "")) for each in found}


def gpu_requests(document: Mapping[str, Any]) -> int:
    """The most GPUs that any one container asks for, those of the gang manifest inside included."""
    most = 0
    for node in mappings(document):
        data = node.get("data")
        if isinstance(data, str) and "gpu" in data:
            most = max(most, gpu_requests(_inner(data)))
        limits = node.get("limits")
        for name, wanted in limits.items() if isinstance(limits, Mapping) else ():
            if str(name).endswith("/gpu") and str(wanted).isdigit():
                most = max(most, int(str(wanted)))
    return most


def _inner(data: str) -> dict[str, Any]:
    try:
        return {"documents": list(yaml.load_all(data, _LOADER))}
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}


def read_workflow(data: bytes) -> dict[str, Any]:
    """A workflow that was checked before; {} when it is none."""
    try:
        found = yaml.load(data, _LOADER)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_resolved(data: bytes, files: Sequence[Path]) -> dict[str, Any]:
    """A workflow that was checked before, with what it gets from the WorkflowTemplates in ``files``."""
    from argosy.workflows.engine.document import assemble, read_sources

    try:
        document = assemble(*read_sources(data, files))
    except InputError:
        return read_workflow(data)
    return {"metadata": document.metadata, "spec": document.spec, "references": document.scopes}
