"""All documents of one call of lint: what a name in one refers to in another."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from argosy.steps.nccl.facts import Span
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.reading import SourceFile
from argosy.workflows.lint.view.argo_templates import ArgoWorkflow, argo_workflow
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.environment import (
    Variable,
    container_environment,
    container_processes,
    process_environment,
)
from argosy.workflows.lint.view.kinds import workload_of
from argosy.workflows.lint.view.labels import Labels, labels_of, selects
from argosy.workflows.lint.view.launch import Launch, launches
from argosy.workflows.lint.view.names import PodNames, pod_names
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.process import Process
from argosy.workflows.lint.view.queue import group_of
from argosy.workflows.lint.view.sensor import Filled, filled_arguments
from argosy.workflows.lint.view.workload import Role, Workload

_UNKNOWN: Final = Span()


class Bundle:
    """The documents of one call, by kind and name; a name is looked for in the same file first, then beside it.

    Attributes:
        nccl: the version of NCCL that the images hold, where whoever asks knows it.
    """

    def __init__(self, files: Sequence[SourceFile], nccl: Span = _UNKNOWN) -> None:
        self.nccl = nccl
        self.documents = [document for file in files for document in file.documents]
        self._named: dict[tuple[str, str], list[Document]] = defaultdict(list)
        self._of_kind: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents:
            self._of_kind[document.kind].append(document)
            if document.name:
                self._named[document.kind, document.name].append(document)
        self._workloads: dict[int, Workload | None] = {}
        self._argo: dict[int, ArgoWorkflow | None] = {}
        self._environments: dict[int, dict[str, Variable]] = {}
        self._processes: dict[int, list[Process]] = {}
        self._labels: dict[int, Labels] = {}
        self._launches: dict[int, list[Launch]] = {}

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

    # ---- what the documents mean, read once

    def workload(self, document: Document) -> Workload | None:
        """The workload that an object makes; None for one that makes no pods."""
        if id(document) not in self._workloads:
            self._workloads[id(document)] = workload_of(document)
        return self._workloads[id(document)]

    def argo(self, document: Document) -> ArgoWorkflow | None:
        """The Argo workflow that an object is, its templates read; None for another object."""
        if id(document) not in self._argo:
            self._argo[id(document)] = argo_workflow(document)
        return self._argo[id(document)]

    @cached_property
    def _filled(self) -> Filled:
        return filled_arguments(self.of_kind("Sensor"))

    def filled_by_events(self, document: Document) -> set[str]:
        """Names of a workflow's arguments that a Sensor among the files fills in from an event."""
        by_name = self._filled.get(document.name, set()) if document.name else set()
        return self._filled.get(id(document.root.yaml), set()) | by_name

    @cached_property
    def _of_file(self) -> dict[str, list[Document]]:
        found: dict[str, list[Document]] = defaultdict(list)
        for document in self.documents:
            found[document.file].append(document)
        return found

    def beside(self, document: Document) -> list[Document]:
        """All objects of the document's own file, itself included."""
        return self._of_file[document.file]

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

    @cached_property
    def workloads(self) -> list[Workload]:
        """All workloads."""
        return [found for each in self.documents if (found := self.workload(each)) is not None]

    @cached_property
    def patches(self) -> frozenset[str]:
        """Names of the files that a Kustomization lays over others: they hold only what they change."""
        found: set[str] = set()
        for each in self.of_kind("Kustomization"):
            paths = [*each.root["patchesStrategicMerge"], *(patch["path"] for patch in each.root["patches"])]
            found.update(os.path.normpath(os.path.join(os.path.dirname(each.file), path.text)) for path in paths)
        return frozenset(found)

    def is_patch(self, document: Document) -> bool:
        """Whether an object is a part of one, which a Kustomization completes."""
        return bool(self.patches) and os.path.normpath(document.file) in self.patches

    @cached_property
    def group_members(self) -> dict[str, list[Role]]:
        """The roles whose pods say that they belong to a pod group, by the group's name."""
        found: dict[str, list[Role]] = defaultdict(list)
        for workload in self.workloads:
            for role in workload.roles:
                named = group_of(role.pod)
                if named is not None:
                    found[named[1].text].append(role)
        return found

    @cached_property
    def files_with_gangs(self) -> frozenset[str]:
        """Names of the files in which a workload of several pods stands."""
        return frozenset(each.document.file for each in self.workloads if each.gang)

    @cached_property
    def pods(self) -> list[tuple[Workload, Pod]]:
        """The pods of all workloads."""
        return [(workload, role.pod) for workload in self.workloads for role in workload.roles if role.template]

    @cached_property
    def pod_names_of_all(self) -> list[tuple[Workload, PodNames]]:
        """The names of the pods of all workloads, as far as they can be known."""
        each = ((workload, pod_names(workload, role)) for workload in self.workloads for role in workload.roles)
        return [(workload, names) for workload, names in each if names is not None]

    def labels(self, workload: Workload, role: Role) -> Labels:
        """The labels that a role's pods have in the end."""
        if id(role) not in self._labels:
            self._labels[id(role)] = labels_of(workload, role)
        return self._labels[id(role)]

    def selected(self, selector: Node) -> Iterator[tuple[Workload, Role]]:
        """The roles whose pods an equality selector can select, of any namespace; all of them for an empty one."""
        first = next(iter(selector.entries.items()), None)
        if first is None or first[1].open:
            candidates = [pair for pairs in self._labelled.values() for pair in pairs]
        else:
            key, value = first
            wild = [each for each in self._labelled if each[0].endswith("*") and key.startswith(each[0][:-1])]
            sure = ((key, value.text), (key, None))
            candidates = [pair for each in (*sure, *wild) for pair in self._labelled.get(each, ())]
        seen: set[int] = set()
        for workload, role in candidates:
            if id(role) not in seen and selects(selector, self.labels(workload, role)):
                seen.add(id(role))
                yield workload, role

    @cached_property
    def _labelled(self) -> dict[tuple[str, str | None], list[tuple[Workload, Role]]]:
        found: dict[tuple[str, str | None], list[tuple[Workload, Role]]] = defaultdict(list)
        for workload in self.workloads:
            for role in workload.roles:
                for label in (*self.labels(workload, role).items(), ("", None)):
                    found[label].append((workload, role))
        return found

    def environment(self, container: Container) -> Mapping[str, Variable]:
        """The variables of a container."""
        if id(container.node.yaml) not in self._environments:
            self._environments[id(container.node.yaml)] = container_environment(container, self)
        return self._environments[id(container.node.yaml)]

    def processes(self, container: Container) -> Sequence[Process]:
        """The commands that a container starts."""
        if id(container.node.yaml) not in self._processes:
            self._processes[id(container.node.yaml)] = container_processes(container, self)
        return self._processes[id(container.node.yaml)]

    def launches(self, workload: Workload) -> Sequence[Launch]:
        """The commands of a workload (one of :attr:`workloads`) that train."""
        if id(workload) not in self._launches:
            self._launches[id(workload)] = launches(workload, self)
        return self._launches[id(workload)]

    def environment_of(self, process: Process, container: Container) -> Mapping[str, Variable]:
        """The variables of one of a container's commands."""
        return process_environment(process, dict(self.environment(container)))


def _distance(one: str, other: str) -> int:
    if one == other:
        return 0
    return 1 if os.path.dirname(one) == os.path.dirname(other) else 2
