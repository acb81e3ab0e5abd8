"""What the objects of one call mean: their workloads, pods, environments and launches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from argosy.steps.nccl.facts import Span
from argosy.workflows.manifests.argo_templates import BODIES, ArgoWorkflow, argo_workflow
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.documents import Documents
from argosy.workflows.manifests.environment import (
    Variable,
    container_environment,
    container_processes,
    process_environment,
)
from argosy.workflows.manifests.kinds import workload_of
from argosy.workflows.manifests.labels import Labels, labels_of, selects
from argosy.workflows.manifests.launch import Launch, launches
from argosy.workflows.manifests.names import PodNames, pod_names
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Pod, Role
from argosy.workflows.manifests.pod_group import group_of
from argosy.workflows.manifests.process import Process
from argosy.workflows.manifests.reading import SourceFile
from argosy.workflows.manifests.sensor import Filled, filled_arguments, written_over
from argosy.workflows.manifests.workload import Workload

_UNKNOWN: Final = Span()


class Bundle(Documents):
    """The documents of one call and what they mean, read once.

    Attributes:
        nccl: the version of NCCL that the images hold, where whoever asks knows it.
    """

    def __init__(self, files: Sequence[SourceFile], nccl: Span = _UNKNOWN) -> None:
        super().__init__(files)
        self.nccl = nccl
        self._workloads: dict[int, Workload | None] = {}
        self._argo: dict[int, ArgoWorkflow | None] = {}
        self._environments: dict[int, dict[str, Variable]] = {}
        self._processes: dict[int, list[Process]] = {}
        self._labels: dict[int, Labels] = {}
        self._launches: dict[int, list[Launch]] = {}

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
    def workloads(self) -> list[Workload]:
        """All workloads."""
        return [found for each in self.documents if (found := self.workload(each)) is not None]

    @cached_property
    def written_over(self) -> set[int]:
        """Ids of the values that a trigger of a Sensor replaces, or appends to, as it makes their object."""
        return written_over(self.of_kind("Sensor"))

    def is_patch(self, document: Document) -> bool:
        """Whether an object is a part of one, which a Kustomization completes, or has the form of such a part."""
        return self.is_named_patch(document) or self.once(("is_patch", id(document)), lambda: self._is_part(document))

    def _is_part(self, document: Document) -> bool:
        """Whether its pods have no image, as only a patch's, or its owner no uid, as only an expected object's."""
        if any(not owner["uid"].exists for owner in document.metadata["ownerReferences"]):
            return True
        argo = self.argo(document)
        if argo is not None and argo.templates:  # a page shows what stands around the bodies, of a workflow not to run
            runs = document.kind != "Workflow" or argo.spec["entrypoint"].exists
            return not runs and not any(each.node[key].exists for each in argo.templates for key in BODIES)
        workload = self.workload(document)
        if workload is None or workload.family in ("argo", "trainer", "pod") or document.host is not None:
            return False
        pods = [role.pod for role in workload.roles]
        if not pods or any(each.spec["container"].exists for each in pods):  # a list that is misspelt
            return False
        described = any(each.node["command"] or each.node["args"] for pod in pods for each in pod.all_containers)
        return not described and not any(each.image for pod in pods for each in pod.all_containers)

    @cached_property
    def filled_in(self) -> frozenset[str]:
        """Names of the files with ``$VAR`` where only envsubst and its like fill it in."""
        return frozenset(each.file for each in self.documents if each.substituted)

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
            self._launches[id(workload)] = launches(workload, self.processes, self.environment_of)
        return self._launches[id(workload)]

    def environment_of(self, process: Process, container: Container) -> Mapping[str, Variable]:
        """The variables of one of a container's commands."""
        return process_environment(process, dict(self.environment(container)))
