"""All documents of one call: what a name in one refers to in another."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import Final, TypeVar, cast

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.reading import SourceFile

Found = TypeVar("Found")
_PATCH: Final = re.compile(r"(^|[-_.])(patch(es)?|pod[-_]?template)[-_.]")  # Spark writes its container into the latter


class Documents:
    """By kind and name; a name is looked for in the same file first, then beside it."""

    def __init__(self, files: Sequence[SourceFile]) -> None:
        self.names = [file.name for file in files]
        self._texts = {file.name: file.text for file in files}
        self.documents = [document for file in files for document in file.documents]
        self._named: dict[tuple[str, str], list[Document]] = defaultdict(list)
        self._of_kind: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents:
            self._of_kind[document.kind].append(document)
            if document.name:
                self._named[document.kind, document.name].append(document)
        self._kept: dict[Hashable, object] = {}

    def left_to_write(self, name: Node) -> bool:
        """Whether a comment of the file has something of this name: whoever uses the file shall write it."""
        there = rf"^[ \t]*#[ \t-]*name:[ \t]*[\"']?{re.escape(name.text)}\b"
        return re.search(there, self._texts[name.origin.file], re.MULTILINE) is not None

    def of_kind(self, kind: str) -> Sequence[Document]:
        """All objects of a kind, in the order of the files."""
        return self._of_kind.get(kind, ())

    def named(self, kind: str, name: str) -> Sequence[Document]:
        """All objects of this kind and name, whatever their namespace."""
        return self._named.get((kind, name), ())

    def find(self, kind: str, name: str, near: Document) -> Document | None:
        """The object of this kind and name that an object refers to; None when it is not among the files.

        Of several, the one in the same file, else in the same folder, else the first; never one of another namespace.
        """
        candidates = [
            each
            for each in self._named.get((kind, name), ())
            if not each.namespace or not near.namespace or each.namespace == near.namespace
        ]
        return min(candidates, key=lambda each: _distance(each.file, near.file), default=None)

    def config_map(self, name: str, near: Document) -> Node | None:
        """The ConfigMap of this name; None when it is not among the files."""
        found = self.find("ConfigMap", name, near) if name else None
        return found.root if found is not None else None

    def near(self, kind: str, document: Document) -> Iterator[Document]:
        """Objects of a kind in the document's own namespace, those of its own folder only."""
        folder = os.path.dirname(document.file)
        for each in self.of_kind(kind):
            same = not each.namespace or not document.namespace or each.namespace == document.namespace
            if same and os.path.dirname(each.file) == folder:
                yield each

    @cached_property
    def _nested(self) -> dict[int, list[Document]]:
        found: dict[int, list[Document]] = defaultdict(list)
        for document in self.documents:
            if document.host is not None:
                found[id(document.host)].append(document)
        return found

    def nested(self, host: Document, inside: Node) -> list[Document]:
        """The objects that stand in a document's text, those inside one value of it: a resource template's manifest."""
        first, last = inside.line, inside.last_line
        return [each for each in self._nested.get(id(host), ()) if first <= each.root.line <= last]

    def once(self, key: Hashable, find: Callable[[], Found]) -> Found:
        """What ``find`` returns, asked once per key: what a rule needs of a whole file for each of its objects."""
        if key not in self._kept:
            self._kept[key] = find()
        return cast("Found", self._kept[key])

    @cached_property
    def patches(self) -> frozenset[str]:
        """Names of the files that a Kustomization lays over others: they hold only what they change."""
        found: set[str] = set()
        for each in self.of_kind("Kustomization"):
            paths = [*each.root["patchesStrategicMerge"], *(patch["path"] for patch in each.root["patches"])]
            found.update(os.path.normpath(os.path.join(os.path.dirname(each.file), path.text)) for path in paths)
        return frozenset(found)

    def is_named_patch(self, document: Document) -> bool:
        """Whether a Kustomization, the file's name or a directive in the object says that others complete it."""
        listed = bool(self.patches) and os.path.normpath(document.file) in self.patches
        return listed or "$patch" in document.root or _PATCH.search(os.path.basename(document.file)) is not None


def _distance(one: str, other: str) -> int:
    if one == other:
        return 0
    return 1 if os.path.dirname(one) == os.path.dirname(other) else 2
