"""From documents to a run.toml and its account."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.entry import Entry, take_entry
from argosy.workflows.imports.kinds import READERS
from argosy.workflows.imports.pod import take_pod
from argosy.workflows.imports.source import Source, find_workload
from argosy.workflows.imports.variables import take_variables
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.reading import SourceFile
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.quantity import quantity
from argosy.workflows.lint.view.workload import Workload

_LONGEST = 40
_BESIDES = {
    "Service": "the gang has a headless Service of its own",
    "PodGroup": "gang.placement is none for now: nodes are waited for by the channel",
    "ConfigMap": "apply it yourself where a volume or a variable still names it",
    "Secret": "apply it yourself; the run names it",
    "PersistentVolumeClaim": "apply it yourself; the run mounts it",
    "PersistentVolume": "apply it yourself",
    "Namespace": "compile for a namespace with argo submit -n",
    "ServiceAccount": "apply it yourself; the run names it",
    "TrainingRuntime": "what it says is taken into the run",
    "ClusterTrainingRuntime": "what it says is taken into the run",
}


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of it.

    Args:
        kind: ``PyTorchJob``.
        name: the object's.
        data: the run as nested tables.
        toml: the run as text.
    """

    kind: str
    name: str
    data: dict[str, Any]
    toml: str
    account: Account


def convert(files: Sequence[SourceFile], workload: str | None = None, script: str = "", module: str = "") -> Imported:
    """Import the training of some files.

    Args:
        files: what was read.
        workload: its name, where there are several.
        script, module: what is run, where only the image knows.

    Raises:
        InputError: nothing that can be imported is in them, with the reason.
    """
    for file in files:
        for bad in file.unreadable:
            raise InputError(f"{file.name}, line {bad.line}: {bad.message}; {bad.remedy}")
    bundle = Bundle(files)
    chosen = find_workload(bundle, workload)
    draft, account = Draft(), Account()
    _head(chosen.document, draft, account)
    source = READERS[chosen.family](chosen, bundle, account)
    container = _container(source)
    if container.image:
        draft.put("image", container.image.text)
        account.kept(container.image, "image")
    entry = take_entry(source, container, bundle, draft, account, (script, module))
    draft.put("code", "")
    _gang(source, container, entry.ranks if entry is not None else None, draft, account)
    _environment(source, container, entry, bundle, draft, account)
    take_pod(container.pod, container, draft, account)
    _same_in_all(source, account)
    _sizes(draft, account, container.node)
    _deadline(chosen, draft, account)
    _besides(bundle, chosen.document, account)
    account.close([document.root for document in bundle.documents if document.host is None])
    name = chosen.document.name
    head = f"Imported from {chosen.document.kind} {name} ({chosen.document.file})."
    return Imported(chosen.document.kind, name, draft.data(), draft.toml(head), account)


def _head(document: Document, draft: Draft, account: Account) -> None:
    root, metadata = document.root, document.metadata
    account.known(root["apiVersion"], root["kind"], root["status"])
    name = _slug(document.name or document.kind.lower())
    draft.put("name", name)
    node = metadata["name"] or metadata["generateName"]
    if name == document.name:
        account.kept(node, "name")
    else:
        account.changed(node, f"a run's name has at most {_LONGEST} of a-z, 0-9 and '-': {name}", "name")
    if metadata["namespace"]:
        account.changed(metadata["namespace"], f"argo submit -n {metadata['namespace'].text} names the namespace")
    for kind in ("labels", "annotations"):
        for key, value in metadata[kind].entries.items():
            queue = key.startswith("kueue.x-k8s.io/")
            why = "gang.placement is none for now: no queue admits it" if queue else f"a run has no {kind} of its own"
            account.lost(value, why)


def _slug(text: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
    return slug if slug[:1].isalpha() else f"train-{slug}"[:_LONGEST].strip("-")


def _container(source: Source) -> Container:
    found = source.training[0].pod.main if source.training else None
    if found is None:
        document = source.workload.document
        raise InputError(
            f"{document.kind} {document.name!r} ({document.file}, line {document.spec.line}): it has no "
            "pod with a container; name the manifest that has its containers"
        )
    return found


def _gang(source: Source, container: Container, told: int | None, draft: Draft, account: Account) -> None:
    low, high = source.nodes
    draft.put("gang.nnodes", high if low == high else f"{low}:{high}")
    gpus = container.gpus or 0
    ranks = source.ranks_per_node or told or gpus or 1
    if gpus and ranks > gpus:
        account.changed(container.limits, f"{ranks} ranks on {gpus} GPUs: one rank per GPU", "gang.nproc_per_node")
        ranks = gpus
    draft.put("gang.nproc_per_node", ranks)


def _environment(
    source: Source, container: Container, entry: Entry | None, bundle: Bundle, draft: Draft, account: Account
) -> None:
    assigned = entry.assignments if entry is not None else {}
    place = entry.process.node if entry is not None else container.node
    take_variables(container, assigned, place, bundle, draft, account)
    starter = source.starts.pod.main if source.starts is not None else None
    for item in starter.node["env"] if starter is not None else []:
        account.changed(item, "variables of the launcher's own pod reach no rank")


def _same_in_all(source: Source, account: Account) -> None:
    first, *others = source.training
    for role in others:
        _compare(first.template, role.template, first.name, account)
        account.known(role.template, *(node for node in role.template.walk() if node.is_mapping or node.is_list))


def _compare(one: Node, other: Node, name: str, account: Account) -> None:
    if other.is_mapping and one.is_mapping:
        for key, value in other.entries.items():
            _compare(one[key], value, name, account)
    elif other.is_list and one.is_list and len(other.items) == len(one.items):
        for left, right in zip(one.items, other.items, strict=True):
            _compare(left, right, name, account)
    elif other.data != one.data:
        account.lost(other, f"differs from {name}: every node of a gang runs the same, and {name}'s is taken")


def _sizes(draft: Draft, account: Account, place: Node) -> None:
    """``/dev/shm`` counts towards the memory, so it must fit."""
    shared, memory = draft.get("gang.shm_size"), draft.get("gang.resources.memory")
    size = quantity(shared) if shared else None
    limit = quantity(memory) if memory else None
    if size is not None and limit is None:
        guess = f"{max(4, round(2 * size / 2**30))}Gi"
        draft.put("gang.resources.memory", guess)
        account.by_hand(place["resources"], f"no memory limit was given: gang.resources.memory = {guess} is a guess")
    elif size is not None and limit is not None and size > limit:
        draft.put("gang.shm_size", memory)
        account.changed(
            place["resources"], "/dev/shm counts towards the memory limit and cannot exceed it", "gang.shm_size"
        )
    elif limit is None:
        account.by_hand(place["resources"], "no memory limit was given: write gang.resources.memory (2Gi otherwise)")


def _deadline(workload: Workload, draft: Draft, account: Account) -> None:
    for place in (workload.spec, workload.spec["runPolicy"], workload.roles[0].job):
        seconds = place["activeDeadlineSeconds"]
        if seconds.number:
            draft.put("deadlines.run_seconds", seconds.number)
            account.kept(seconds, "deadlines.run_seconds")


def _besides(bundle: Bundle, chosen: Document, account: Account) -> None:
    for document in bundle.documents:
        if document.root.yaml is chosen.root.yaml or document.host is not None:
            continue
        what = f"{document.kind or 'an object without a kind'} {document.name}".strip()
        why = _BESIDES.get(document.kind)
        if why is not None:
            account.changed(document.root, f"{what}: {why}")
        else:
            account.lost(document.root, f"{what}: no part of a run; apply it yourself")
