"""One Kubernetes object of a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.workflows.manifests.node import Node

_SUBSTITUTED: Final = re.compile(r"\$(\{\w+\}|[A-Z_][A-Z0-9_]*)")
_EXPANDED_LATER: Final = frozenset(
    {"command", "args", "env", "source", "data", "stringData", "manifest", "annotations"}
)


@dataclass(frozen=True)
class Document:
    """An object with a kind, wherever it stands: a YAML document, an item of a List, a resource template's manifest.

    Args:
        root: the object.
        index: number of the YAML document in its file, from 0.
        host: the document in whose text this one stands (a Workflow's ``resource.manifest``, a Sensor's trigger).
    """

    root: Node
    index: int
    host: Document | None = None

    @property
    def file(self) -> str:
        """The file's name as it was given."""
        return self.root.origin.file

    @property
    def kind(self) -> str:
        """``PyTorchJob``; ``""`` when none is written."""
        return self.root["kind"].text

    @property
    def api_version(self) -> str:
        """``kubeflow.org/v1``."""
        return self.root["apiVersion"].text

    @property
    def group(self) -> str:
        """``kubeflow.org``; ``""`` for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """``v1``."""
        return self.api_version.rpartition("/")[2]

    @property
    def metadata(self) -> Node:
        """The object's ``metadata``."""
        return self.root["metadata"]

    @property
    def spec(self) -> Node:
        """The object's ``spec``."""
        return self.root["spec"]

    @property
    def name(self) -> str:
        """``metadata.name``, else ``generateName``; ``""`` without either, or when it is filled in later."""
        node = self.metadata["name"] or self.metadata["generateName"]
        return "" if node.open else node.text

    @property
    def namespace(self) -> str:
        """``metadata.namespace``; ``""`` when none is written: whatever the submitter's is."""
        node = self.metadata["namespace"]
        return "" if node.open else node.text

    @cached_property
    def substituted(self) -> bool:
        """Whether it has ``$VAR`` where only envsubst and its like fill it in: in a name, a count, an image."""
        return any(_SUBSTITUTED.search(text) for text in _texts(self.root))

    @property
    def labels(self) -> Node:
        """``metadata.labels``."""
        return self.metadata["labels"]

    @property
    def annotations(self) -> Node:
        """``metadata.annotations``."""
        return self.metadata["annotations"]

    def is_a(self, kind: str, group: str) -> bool:
        """Whether it is of this kind and API group, of any version."""
        return self.kind == kind and self.group == group


def _texts(node: Node) -> Iterator[str]:
    """The texts of a document that nothing in a cluster expands."""
    if node.is_string:
        yield node.text
    for key, below in node.entries.items():
        if key not in _EXPANDED_LATER:
            yield from _texts(below)
    for below in node.items:
        yield from _texts(below)
