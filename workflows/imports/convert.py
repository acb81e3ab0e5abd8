"""From documents to a run.toml and its account."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.steps.contract.errors import InputError
from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.entry import Entry, take_entry
from argosy.workflows.imports.fitting import NO_IMAGE, fit
from argosy.workflows.imports.head import take_head
from argosy.workflows.imports.kinds import READERS
from argosy.workflows.imports.placement import take_placement
from argosy.workflows.imports.pod import take_pod
from argosy.workflows.imports.resources import fit_sizes
from argosy.workflows.imports.source import Source, find_workload
from argosy.workflows.imports.suggestions import suggest
from argosy.workflows.imports.variables import take_variables
from argosy.workflows.imports.volumes import take_back_volumes
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.reading import SourceFile
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.spec.run import TrainingRun

_BESIDES: Final = {
    "Service": "ranks meet over argosy's channel",
    "PodGroup": "the supervisor makes one for every gang: see gang.placement",
    "ConfigMap": "apply it yourself where a volume or a variable still names it",
    "Secret": "apply it yourself; the run names it",
    "PersistentVolumeClaim": "apply it yourself; the run mounts it",
    "PersistentVolume": "apply it yourself",
    "StorageClass": "apply it yourself",
    "Namespace": "argo submit -n names the namespace",
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
        run: the run.
        toml: the run as text.
    """

    kind: str
    name: str
    run: TrainingRun
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
        for bad in (each for each in file.unreadable if not each.lossless):
            raise InputError(f"{file.name}, line {bad.line}: {bad.message}; {bad.remedy}")
    bundle = Bundle(files)
    chosen = find_workload(bundle, workload)
    draft, account = Draft(), Account([root for file in files for root in file.roots])
    document = chosen.document
    take_head(document, draft, account)
    source = READERS[chosen.family](chosen, bundle, account)
    container = _container(source)
    _image(container, draft, account)
    entry = take_entry(source, container, bundle, draft, account, (script, module))
    draft.put("code", "")
    take_pod(container.pod, container, draft, account)
    _gang(source, container, entry, draft, account)
    take_placement(source, bundle, draft, account)
    take_variables(container, entry.assignments if entry is not None else {}, bundle, draft, account)
    _same_in_all(source, account)
    fit_sizes(draft, account, container.node)
    _deadline(chosen, draft, account)
    suggest(container.pod, container, draft, account)
    _besides(bundle, document, account, several=source.nodes[1] > 1)
    run = fit(draft, account, container.node)
    take_back_volumes(container.pod, container, draft, account)
    first, *others = source.training
    account.close([role.template for role in others])
    for role in others:
        account.mirror(first.template, role.template)
    account.close()
    head = [f"Imported from {document.kind} {document.name or document.kind.lower()} ({document.file})."]
    return Imported(document.kind, document.name, run, draft.toml(head), account)


def _container(source: Source) -> Container:
    found = source.training[0].pod.main if source.training else None
    if found is None:
        document = source.workload.document
        raise InputError(
            f"{document.kind} {document.name!r} ({document.file}, line {document.spec.line}): it has no "
            "pod with a container; name the manifest that has its containers"
        )
    return found


def _image(container: Container, draft: Draft, account: Account) -> None:
    if container.image.is_scalar:
        account.kept(container.image, "image")
        draft.put("image", container.image.text, container.image)
    else:
        draft.put("image", NO_IMAGE)
        draft.note("image", "write your image: the manifest names none")
        account.by_hand(container.image, "it is no text")


def _gang(source: Source, container: Container, entry: Entry | None, draft: Draft, account: Account) -> None:
    low, high = source.nodes
    told = re.fullmatch(r"(\d{1,5}):(\d{1,5})", entry.nodes) if entry is not None else None
    if told is not None and low == high == int(told[2]) and 1 <= int(told[1]) < high:
        low = int(told[1])
    draft.put("gang.nnodes", high if low == high else f"{low}:{high}")
    gpus = container.gpus or 0
    ranks = _ranks(source, entry, gpus, high)
    if gpus and ranks > gpus:
        account.advise(container.node, f"{ranks} ranks on {gpus} GPUs: one rank per GPU", "gang.nproc_per_node")
        ranks = gpus
    alone = entry is not None and entry.launch.launcher == "python" and not entry.command.inside
    if entry is not None and alone and not source.ranks_per_node and ranks > 1:
        why = f"one process has {gpus} GPUs today: nproc_per_node = {ranks} starts one on each"
        account.advise(entry.launch.head[0].node, why, "gang.nproc_per_node")
    draft.put("gang.nproc_per_node", ranks)
    if launcher := source.launcher or (entry.launch.runs_with if entry is not None else ""):
        draft.put("gang.launcher", launcher)
    elsewhere = source.starts.pod.main if source.starts is not None else None
    if elsewhere is not None:
        account.changed(elsewhere.node["env"], "of the launcher's own variables, mpirun -x passes some on")
        for key in ("command", "args"):
            account.changed(container.node[key], "no sshd: argosy's launch starts the ranks in it")


def _ranks(source: Source, entry: Entry | None, gpus: int, nodes: int) -> int:
    """Ranks of a node: what the kind says, else the launcher's options, else its GPUs."""
    for text in (source.ranks_per_node, entry.ranks if entry is not None else ""):
        if re.fullmatch(r"[1-9]\d{0,3}", text):
            return int(text)
        if text in ("auto", "gpu"):
            return gpus or 1
        if text == "cpu":
            return 1
    if entry is not None and entry.total and nodes:
        return max(1, entry.total // nodes)
    return gpus or 1


def _same_in_all(source: Source, account: Account) -> None:
    first, *others = source.training
    for role in others:
        _compare(first.template, role.template, first.name, account)


def _compare(one: Node, other: Node, name: str, account: Account) -> None:
    if other.is_mapping and one.is_mapping:
        for key, value in other.entries.items():
            _compare(one[key], value, name, account)
    elif other.key == "env" and other.is_list and one.is_list:
        held = {each["name"].text: each for each in one}
        for each in other:
            variable = each["name"].text
            if variable not in held or held[variable].data != each.data:
                told = f"{name} has another value" if variable in held else f"{name} has none"
                account.lost(
                    each, f"{variable} differs: every node of a gang runs the same, and {told}, which is taken"
                )
        for variable in held.keys() - {each["name"].text for each in other}:
            account.advise(held[variable], f"{variable} is set in {name} only; every node of the gang gets it", "env")
    elif other.is_list and one.is_list and len(other.items) == len(one.items):
        for left, right in zip(one.items, other.items, strict=True):
            _compare(left, right, name, account)
    elif other.data != one.data:
        account.lost(other, f"every node of a gang runs the same, and {name}'s is taken, where this differs")


def _deadline(workload: Workload, draft: Draft, account: Account) -> None:
    for place in (workload.spec, workload.spec["runPolicy"], workload.roles[0].job):
        seconds = place["activeDeadlineSeconds"]
        if seconds.number is not None and seconds.number > 0:
            draft.put("deadlines.run_seconds", seconds.number, seconds)
            account.kept(seconds, "deadlines.run_seconds")


def _of_one_node(claim: Document) -> bool:
    modes = [each.text for each in claim.spec["accessModes"]]
    return bool(modes) and set(modes) <= {"ReadWriteOnce", "ReadWriteOncePod"}


def _besides(bundle: Bundle, chosen: Document, account: Account, *, several: bool) -> None:
    for document in bundle.documents:
        if document.root.yaml is chosen.root.yaml or document.host is not None:
            continue
        what = f"{document.kind or 'an object without a kind'} {document.name}".strip()
        why = _BESIDES.get(document.kind)
        if document.kind == "PersistentVolumeClaim" and _of_one_node(document) and several:
            why = "ReadWriteOnce is for one node, and the nodes of the gang all mount it: make it ReadWriteMany"
            account.by_hand(document.root, f"{what}: {why}")
        elif why is not None:
            account.changed(document.root, f"{what}: {why}")
        else:
            account.lost(document.root, f"{what}: no part of a run; apply it yourself")
