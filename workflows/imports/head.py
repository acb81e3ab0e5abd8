"""The object's own name, labels and annotations."""

from __future__ import annotations

import re
from typing import Final

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.draft import Draft
from argosy.workflows.imports.placement import MARKS
from argosy.workflows.manifests.document import Document

_LONGEST: Final = 40
_CLUSTERS: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink")
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def take_head(document: Document, draft: Draft, account: Account) -> None:
    """Write ``name``; account for the rest of the metadata."""
    root, metadata = document.root, document.metadata
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
            if key == _APPLIED:
                account.changed(value, "written by the cluster")
            elif key not in MARKS:
                account.lost(value, f"a run has no {kind} of its own")


def slug(text: str) -> str:
    """A name as a run may have it."""
    found = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].strip("-")
    return found if found[:1].isalpha() else f"train-{found}"[:_LONGEST].strip("-")
