"""The object's own name, labels and annotations."""

from __future__ import annotations

import re
from typing import Final

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.pod import GROUPED
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node

_LONGEST: Final = 40
_CLUSTERS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_QUEUES: Final = ("kueue.x-k8s.io/", "kai.scheduler/", "scheduling.volcano.sh/", "volcano.sh/")
_KUEUE: Final = {"kueue.x-k8s.io/queue-name": "gang.queue", "kueue.x-k8s.io/priority-class": "gang.queue_priority"}
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def take_head(document: Document, draft: Draft, account: Account) -> None:
    """Write ``name``; account for the rest of the metadata."""
    root, metadata = document.root, document.metadata
    for key in ("apiVersion", "kind"):
        account.changed(root[key], "argosy makes a gang of it: a JobSet that runs torchrun", "gang")
    account.changed(root["status"], "written by the cluster")
    name = slug(document.name or document.kind)
    draft.put("name", name)
    for key in ("name", "generateName"):
        node = metadata[key]
        if name == node.text:
            account.kept(node, "name")
        elif node:
            account.changed(node, f"a run's name has at most {_LONGEST} of a-z, 0-9 and '-': {name}", "name")
    account.changed(metadata["namespace"], "argo submit -n names the namespace")
    for key in (*_CLUSTERS, "ownerReferences", "finalizers"):
        account.changed(metadata[key], "written by the cluster")
    for kind in ("labels", "annotations"):
        for key, value in metadata[kind].entries.items():
            if kind == "labels" and key in _KUEUE and _take_queue(key, value, metadata["labels"], draft):
                account.kept(value, _KUEUE[key])
            elif key.startswith(_QUEUES):
                account.lost(value, GROUPED)
            elif key == _APPLIED:
                account.changed(value, "written by the cluster")
            else:
                account.lost(value, f"a run has no {kind} of its own")


def _take_queue(key: str, value: Node, labels: Node, draft: Draft) -> bool:
    """Whether Kueue's label goes into the run: a priority only beside a queue."""
    if not (_NAME.fullmatch(value.text) and _NAME.fullmatch(labels[next(iter(_KUEUE))].text)):
        return False
    draft.put("gang.placement", "kueue")
    draft.put(_KUEUE[key], value.text, value)
    return True


def slug(text: str) -> str:
    """A name as a run may have it."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
    return found if found[:1].isalpha() else f"train-{found}"[:_LONGEST].strip("-")
