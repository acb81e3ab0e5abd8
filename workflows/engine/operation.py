"""One pass over the workflow: from the nodes there are to the nodes that come next.

A pass asks nothing but the nodes and may be repeated at any time, as the real controller's reconciliation may;
that is what makes a run resumable.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, Protocol

from argosy.workflows.engine.document import Document
from argosy.workflows.engine.gotext import fnv32a, json_text, rfc3339
from argosy.workflows.engine.locks import Locks
from argosy.workflows.engine.node import FAILED, PENDING, NodeState
from argosy.workflows.engine.parameters import listed
from argosy.workflows.engine.state import WorkflowState

_DISPLAY_PREFIX = re.compile(r"^(\[\d+\])?\.")


class Waiting(Exception):
    """A step cannot start yet: a limit of parallelism is reached."""


class TimedOut(Exception):
    """A template's ``timeout`` passed before it could start."""

    def __init__(self) -> None:
        super().__init__("timeout")


class TemplateError(Exception):
    """A template cannot be executed; the message is the node's."""


class Pods(Protocol):
    """Whoever runs the pods."""

    def submit(self, node: NodeState, template: dict[str, Any], *, keep_result: bool) -> None:
        """Take over a pending node: its pod starts when the state with it has been saved."""

    def end(self, node_id: str) -> None:
        """End the node's pod, if there is one."""


class Execute(Protocol):
    """How a step or task has its template executed (see :func:`argosy.workflows.engine.template.execute`)."""

    def __call__(
        self, op: Operation, name: str, holder: Mapping[str, Any], scope: str, arguments: Mapping[str, Any],
        *, boundary: str = "", hooked: bool = False,
    ) -> NodeState:  # fmt: skip
        """Advance the node and return it."""


class Operation:
    """The workflow's nodes and everything a pass needs to advance them."""

    def __init__(self, document: Document, state: WorkflowState, pods: Pods, locks: Locks, execute: Execute) -> None:
        self.execute = execute
        self.group_templates: dict[str, dict[str, Any]] = {}
        """Node id of every DAG and Steps node met so far -> its template, processed."""
        self.document = document
        self.state = state
        self.pods = pods
        self.locks = locks
        self.globals: dict[str, str] = {}
        self.unanswered: dict[str, str] = {}
        """Node name -> why it cannot start yet: what it refers to has no value; forgotten at every pass."""
        self.depth = 0
        """How many templates are being executed inside each other."""
        self.changed = False
        self.now = time.time()
        self._wake_at: float | None = None
        self._set_globals()

    # -- time ------------------------------------------------------------------------------------------------

    def begin_pass(self) -> None:
        """Start a pass: take the time, forget earlier appointments."""
        self.now = time.time()
        self._wake_at = None
        self.unanswered.clear()
        self.globals["workflow.duration"] = f"{self.now - (self.state.started or self.now):f}"

    def wake_at(self, moment: float) -> None:
        """Ask for another pass at ``moment`` at the latest."""
        if self._wake_at is None or moment < self._wake_at:
            self._wake_at = moment

    @property
    def next_pass(self) -> float | None:
        """When the next pass is due although nothing ends; None: not before something ends."""
        return self._wake_at

    @property
    def arguments(self) -> dict[str, Any]:
        """The workflow's own arguments, with the values that were given."""
        artifacts = (self.document.spec.get("arguments") or {}).get("artifacts") or []
        given = [{"name": key, "value": value} for key, value in self.state.parameters.items()]
        return {"parameters": given, "artifacts": artifacts}

    @property
    def deadline(self) -> float | None:
        """When the whole workflow's ``activeDeadlineSeconds`` ends."""
        seconds = self.document.spec.get("activeDeadlineSeconds")
        return None if seconds is None or self.state.started is None else self.state.started + float(seconds)

    # -- names -----------------------------------------------------------------------------------------------

    def node_id(self, name: str) -> str:
        """The id of the node of that name."""
        return name if name == self.state.name else f"{self.state.name}-{fnv32a(name)}"

    def pod_name(self, node_name: str, template_name: str) -> str:
        """The name of the node's pod."""
        if node_name == self.state.name:
            return node_name
        stem = f"{self.state.name}-{template_name}".rstrip("-")[: 253 - 11]
        return f"{stem}-{fnv32a(node_name)}"

    def node(self, name: str) -> NodeState | None:
        """The node of that name, if it was made."""
        return self.state.nodes.get(self.node_id(name))

    def by_id(self, node_id: str) -> NodeState:
        """The node of that id."""
        return self.state.nodes[node_id]

    # -- nodes -----------------------------------------------------------------------------------------------

    def make_node(
        self,
        name: str,
        kind: str,
        phase: str,
        *,
        template_name: str = "",
        boundary: str = "",
        scope: str = "",
        message: str = "",
        inputs: dict[str, str] | None = None,
        hooked: bool = False,
        retried: bool = False,
    ) -> NodeState:
        """Make a node; its display name is its name without the boundary's."""
        display = name
        if boundary in self.state.nodes:
            display = _DISPLAY_PREFIX.sub("", name.removeprefix(self.by_id(boundary).name))
        node = NodeState(
            self.node_id(name), name, display, template_name, kind, phase, message, boundary, scope,
            started=self.now, inputs=dict(inputs or {}), hooked=hooked, retried=retried,
        )  # fmt: skip
        if node.fulfilled:
            node.finished = self.now
        self.state.nodes[node.id] = node
        self.changed = True
        return node

    def mark(self, node: NodeState, phase: str, message: str | None = None) -> NodeState:
        """Set the phase (and message) of a node."""
        if node.phase != phase:
            node.phase = phase
            self.changed = True
        if message is not None and node.message != message:
            node.message = message
            self.changed = True
        if node.fulfilled and node.finished is None:
            node.finished = self.now
        return node

    def mark_named(self, name: str, phase: str, message: str) -> None:
        """Like :meth:`mark` by name; makes a node that has only this to say if there is none."""
        node = self.node(name)
        if node is None:
            self.make_node(name, "Skipped", phase, message=message)
        else:
            self.mark(node, phase, message)

    def add_child(self, parent: NodeState, child: str) -> None:
        """Connect two nodes; the child may not exist yet."""
        child_id = self.node_id(child)
        if child_id not in parent.children:
            parent.children.append(child_id)
            self.changed = True

    def children(self, node: NodeState) -> list[NodeState]:
        """The children that exist."""
        return [self.state.nodes[each] for each in node.children if each in self.state.nodes]

    def attempts(self, node: NodeState) -> list[NodeState]:
        """The attempts of a Retry node, first to last."""
        return [child for child in self.children(node) if child.retried and not child.hooked]

    def outbound(self, node: NodeState) -> list[NodeState]:
        """The nodes from which edges lead on to whatever comes after ``node``."""
        if node.type in ("Skipped", "Suspend", "Pod"):
            return [node]
        if node.type == "TaskGroup":
            if not node.children:
                return [node]
            return [each for child in self.children(node) for each in self.outbound(child)]
        if node.type == "Retry":
            return self.attempts(node)[-1:]
        return [each for child in node.outbound for each in self.outbound(self.by_id(child))]

    def hooks_fulfilled(self, node: NodeState) -> bool:
        """Whether every hook below the node has ended."""
        return all(child.fulfilled for child in self.children(node) if child.hooked)

    # -- global names ----------------------------------------------------------------------------------------

    def _set_globals(self) -> None:
        state, metadata = self.state, self.document.metadata
        names = {
            "workflow.name": state.name,
            "workflow.namespace": self.document.namespace,
            "workflow.uid": state.uid,
            "workflow.mainEntrypoint": str(self.document.spec.get("entrypoint", "")),
            "workflow.serviceAccountName": str(self.document.spec.get("serviceAccountName", "")),
            "workflow.creationTimestamp": rfc3339(state.created),
            "workflow.creationTimestamp.RFC3339": rfc3339(state.created),
            "workflow.creationTimestamp.s": str(int(state.created)),
            "workflow.duration": "0.000000",
            "workflow.status": "",
            "workflow.priority": str(self.document.spec.get("priority", "")),
        }
        for letter in "aAbBdHIjmMpSUwWyYZ":
            names[f"workflow.creationTimestamp.{letter}"] = time.strftime(f"%{letter}", time.gmtime(state.created))
        for kind in ("labels", "annotations"):
            given = {key: str(value) for key, value in (metadata.get(kind) or {}).items()}
            names[f"workflow.{kind}"] = names[f"workflow.{kind}.json"] = json_text(given)
            names |= {f"workflow.{kind}.{key}": value for key, value in given.items()}
        declared = (self.document.spec.get("arguments") or {}).get("parameters") or []
        names["workflow.parameters"] = names["workflow.parameters.json"] = listed(
            declared, state.parameters, state.given
        )
        names |= {f"workflow.parameters.{key}": value for key, value in state.parameters.items()}
        for key, value in (state.outputs.get("parameters") or {}).items():
            names[f"workflow.outputs.parameters.{key}"] = value
        self.globals = names

    def export(self, template: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Publish output parameters that have a ``globalName``."""
        declared = (template.get("outputs") or {}).get("parameters") or []
        for parameter in declared:
            value = (outputs.get("parameters") or {}).get(parameter["name"])
            name = parameter.get("globalName")
            if name and value is not None:
                self.state.outputs.setdefault("parameters", {})[name] = value
                self.globals[f"workflow.outputs.parameters.{name}"] = value

    # -- the pass --------------------------------------------------------------------------------------------

    def finish(self, phase: str, message: str) -> None:
        """End the workflow."""
        self.state.phase, self.state.message, self.state.finished = phase, message, self.now
        self.changed = True

    def end_after_deadline(self) -> None:
        """After the workflow's deadline: end what runs, except the exit handler."""
        deadline = self.deadline
        if deadline is None:
            return
        if self.now < deadline:
            self.wake_at(deadline)
            return
        for node in list(self.state.nodes.values()):
            if node.type in ("Pod", "Suspend") and not node.fulfilled and not self.in_exit_handler(node):
                self.pods.end(node.id)
                self.mark(node, FAILED, "Step exceeded its deadline")
            elif node.phase == PENDING and not self.in_exit_handler(node):
                self.mark(node, FAILED, "Step exceeded its deadline")

    def in_exit_handler(self, node: NodeState) -> bool:
        """Whether the node belongs to an exit handler."""
        seen: NodeState | None = node
        while seen is not None:
            if seen.hooked:
                return True
            seen = self.state.nodes.get(seen.boundary) if seen.boundary else self._retry_parent(seen)
        return False

    def _retry_parent(self, node: NodeState) -> NodeState | None:
        if not node.retried:
            return None
        return self.node(re.sub(r"\(\d+\)$", "", node.name))
