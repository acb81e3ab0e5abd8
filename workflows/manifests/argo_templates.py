"""What an Argo workflow runs: its templates, what they call, and what is handed from one to the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node

KINDS: Final = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")
BODIES: Final = ("container", "containerSet", "script", "resource", "dag", "steps", "suspend", "http", "data", "plugin")
"""What a template does: exactly one of them."""
_TAG: Final = re.compile(r"\{\{(?!=)\s*([^{}]*?)\s*\}\}")


@dataclass(frozen=True)
class Tag:
    """A ``{{…}}`` that names a variable.

    Args:
        name: ``inputs.parameters.x``.
        text: as it is written, with its braces.
        node: the text that holds it.
    """

    name: str
    text: str
    node: Node

    @property
    def parts(self) -> list[str]:
        """The name at its dots."""
        return self.name.split(".")


def tags(node: Node) -> Iterator[Tag]:
    """The tags in a value and everything below it, expressions (``{{=…}}``) left out."""
    for each in node.walk():
        if "{{" in each.text:
            for found in _TAG.finditer(each.text):
                yield Tag(found[1], found.group(), each)


@dataclass(frozen=True)
class Call:
    """A step, or a task of a DAG.

    Args:
        node: its mapping.
        group: number of its group of steps; 0 for a task.
    """

    node: Node
    group: int = 0

    @property
    def name(self) -> str:
        """Its name."""
        return self.node["name"].text

    @property
    def target(self) -> Node:
        """The name of the template it runs; missing where it names one elsewhere or holds it."""
        return self.node["template"]

    @cached_property
    def parameters(self) -> dict[str, Node]:
        """The arguments it passes, by name."""
        return {each["name"].text: each for each in self.node.at("arguments.parameters")}

    @property
    def waits_for(self) -> list[str]:
        """Names of the tasks that it waits for, as ``depends`` or ``dependencies`` say."""
        if self.node["depends"]:
            words = re.findall(r"\w[\w-]*(?:\.\w+)?", self.node["depends"].text)
            return [word.partition(".")[0] for word in words]
        return [each.text for each in self.node["dependencies"]]


@dataclass(frozen=True)
class Template:
    """A template of a workflow."""

    node: Node
    spec: Node

    @property
    def name(self) -> str:
        """Its name; ``""`` for one that stands inside a task."""
        return self.node["name"].text

    @property
    def kind(self) -> str:
        """``container``, ``resource``, ``dag``, …; ``""`` for none of them."""
        return next((key for key in BODIES if self.node[key].exists), "")

    def field(self, name: str) -> Node:
        """A field of its own, else of the workflow's ``templateDefaults``."""
        return self.node[name] or self.spec["templateDefaults"][name]

    @property
    def retry(self) -> Node:
        """``retryStrategy``; its existence counts, it may be empty."""
        own = self.node["retryStrategy"]
        default = self.spec["templateDefaults"]["retryStrategy"]
        return next((each for each in (own, default) if each.exists), self.spec["retryStrategy"])

    @cached_property
    def inputs(self) -> dict[str, Node]:
        """Its input parameters by name."""
        return {each["name"].text: each for each in self.node.at("inputs.parameters")}

    @cached_property
    def artifacts(self) -> dict[str, Node]:
        """Its input artifacts by name."""
        return {each["name"].text: each for each in self.node.at("inputs.artifacts")}

    @cached_property
    def outputs(self) -> set[str]:
        """``parameters.x`` and ``artifacts.x`` of what it hands on."""
        return {
            f"{part}.{each['name'].text}" for part in ("parameters", "artifacts") for each in self.node["outputs"][part]
        }

    @cached_property
    def calls(self) -> list[Call]:
        """Its steps or tasks."""
        tasks = [Call(node) for node in self.node.at("dag.tasks") if node.is_mapping]
        for number, group in enumerate(self.node["steps"]):
            tasks += [Call(node, number) for node in (group.items or [group]) if node.is_mapping]
        return tasks


@dataclass(frozen=True)
class ArgoWorkflow:
    """A Workflow, a template of one, or a CronWorkflow."""

    document: Document

    @cached_property
    def spec(self) -> Node:
        """The workflow's spec."""
        return self.document.spec["workflowSpec"] or self.document.spec

    @cached_property
    def templates(self) -> list[Template]:
        """Its templates, those that stand inside a task after the others."""
        found = [Template(node, self.spec) for node in self.spec["templates"] if node.is_mapping]
        for template in found:  # what is added here is looked at too: an inline DAG may hold others
            found.extend(Template(call.node["inline"], self.spec) for call in template.calls if call.node["inline"])
        return found

    @cached_property
    def named(self) -> dict[str, Template]:
        """The templates by name, the first of equal ones."""
        return {each.name: each for each in reversed(self.templates) if each.name}

    @cached_property
    def parameters(self) -> dict[str, Node]:
        """``spec.arguments.parameters`` by name."""
        return {each["name"].text: each for each in self.spec.at("arguments.parameters")}

    @property
    def resolved(self) -> bool:
        """Whether its variables are its own: those of a manifest in a resource template are the outer workflow's."""
        return self.document.host is None or self.document.host.kind == "Sensor"

    @property
    def refers(self) -> bool:
        """Whether its templates are those of another object."""
        return bool(self.spec["workflowTemplateRef"])

    def of(self, call: Call) -> Template | None:
        """The template that a call runs; None when it is elsewhere, or filled in later."""
        if call.node["inline"]:
            return Template(call.node["inline"], self.spec)
        return self.named.get(call.target.text)


def argo_workflow(document: Document) -> ArgoWorkflow | None:
    """A workflow of an object; None for an object of another kind."""
    return ArgoWorkflow(document) if document.group == "argoproj.io" and document.kind in KINDS else None
