"""A DAG template: which tasks may run, and what the DAG comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.assessment import assess
from argosy.workflows.engine.depends import Condition, from_dependencies, holds, parse_depends, tasks_of
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.hooks import run_exit_hook
from argosy.workflows.engine.loops import expand, is_loop
from argosy.workflows.engine.node import (
    ERROR,
    FAILED,
    OMITTED,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    NodeState,
)  # fmt: skip
from argosy.workflows.engine.operation import Operation, TemplateError, TimedOut, Waiting
from argosy.workflows.engine.references import resolved
from argosy.workflows.engine.results import add_to_scope, group_outputs
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import Unanswered
from argosy.workflows.engine.when import should_execute

_RESULT = {SUCCEEDED: "Succeeded", FAILED: "Failed", ERROR: "Errored", SKIPPED: "Skipped", OMITTED: "Omitted"}


def condition_of(task: Mapping[str, Any], tasks: Mapping[str, Mapping[str, Any]]) -> Condition | None:
    """What has to hold before the task runs; None: nothing.

    Raises:
        ExpressionError: ``depends`` is not an expression.
    """
    if task.get("depends"):
        return parse_depends(str(task["depends"]))
    if task.get("dependencies"):

        def accepted(name: str) -> list[str]:
            more = (tasks.get(name) or {}).get("continueOn") or {}
            return [*(["Errored"] if more.get("error") else []), *(["Failed"] if more.get("failed") else [])]

        return from_dependencies([str(name) for name in task["dependencies"]], accepted)
    return None


def execute_dag(op: Operation, node: NodeState, template: dict[str, Any], scope: str) -> NodeState:
    """Advance a DAG node; the node."""
    return _Dag(op, node, template, scope).execute()


class _Dag:
    def __init__(self, op: Operation, node: NodeState, template: dict[str, Any], scope: str) -> None:
        self.op, self.boundary, self.template, self.scope = op, node, template, scope
        self.tasks: dict[str, dict[str, Any]] = {
            str(task["name"]): {**task, "owner": "tasks"} for task in template["dag"]["tasks"]
        }
        self.conditions = {name: condition_of(task, self.tasks) for name, task in self.tasks.items()}
        self.visited: set[str] = set()

    def execute(self) -> NodeState:
        op, node = self.op, self.boundary
        targets = self._targets()
        for name in targets:
            self._advance(name)
            self._check(name)
        phase = assess(op, node, self.template, targets)
        if phase == RUNNING:
            return node
        found = [self._node(name) for name in targets]
        node.outbound = [each.id for task in found if task is not None for each in op.outbound(task)]
        if phase in (FAILED, ERROR):
            return op.mark(node, phase)
        scope = Scope.of_template(self.template)
        for name in self.tasks:
            self._add(scope, name)
        node.outputs = group_outputs(self.template, scope)
        op.export(self.template, node.outputs)
        return op.mark(node, SUCCEEDED)

    def _check(self, target: str) -> None:
        """The controller reads what a target may refer to even when it has ended: that must be readable."""
        if self._node(target) is not None:
            try:
                self._scope_of(target)
            except ExpressionError as error:
                raise TemplateError(str(error)) from None

    # -- names -----------------------------------------------------------------------------------------------

    def _name(self, task: str) -> str:
        return f"{self.boundary.name}.{task}"

    def _node(self, task: str) -> NodeState | None:
        return self.op.node(self._name(task))

    def _dependencies(self, task: str) -> list[str]:
        condition = self.conditions[task]
        return [] if condition is None else tasks_of(condition)

    def _targets(self) -> list[str]:
        target = self.template["dag"].get("target")
        if target:
            unknown = [name for name in str(target).split() if name not in self.tasks]
            if unknown:
                raise TemplateError(f"target '{unknown[0]}' is not defined")
            return str(target).split()
        used = {name for task in self.tasks for name in self._dependencies(task)}
        return sorted(name for name in self.tasks if name not in used)

    def _ancestors(self, task: str) -> list[str]:
        found: list[str] = []
        todo = list(self._dependencies(task))
        while todo:
            name = todo.pop(0)
            if name not in found:
                found.append(name)
                todo += self._dependencies(name)
        return found

    def _add(self, scope: Scope, name: str) -> None:
        node = self._node(name)
        if node is None:
            return
        if node.type == "TaskGroup":
            children = [each for each in self.op.state.nodes.values() if self._is_item(each, node)]
            scope.add_loop(f"tasks.{name}", children)
            scope.values[f"tasks.{name}.status"] = node.phase
        else:
            add_to_scope(self.op, scope, f"tasks.{name}", node, self.tasks[name], self.scope)

    def _is_item(self, node: NodeState, group: NodeState) -> bool:
        return node.boundary == self.boundary.id and node.name.startswith(f"{group.name}(")

    def _scope_of(self, task: str) -> Scope:
        scope = Scope.of_template(self.template)
        scope.add_outputs("workflow", self.op.state.outputs)
        for name in self._ancestors(task):
            self._add(scope, name)
        return scope

    # -- advancing -------------------------------------------------------------------------------------------

    def _advance(self, name: str) -> None:
        if name in self.visited:
            return
        self.visited.add(name)
        op, task, node = self.op, self.tasks[name], self._node(name)
        if node is not None and node.fulfilled:
            self._after(task, node)
            return
        dependencies = self._dependencies(name)
        for each in dependencies:
            self._advance(each)
        condition = self.conditions[name]
        group = node if node is not None and node.type == "TaskGroup" else None
        if condition is not None and node is None:
            results = self._results(dependencies)
            if results is None:
                return
            if not holds(condition, results):
                self._settle(name, OMITTED, "omitted: depends condition not met")
                return
        try:
            scope = self._scope_of(name)
            items = expand(resolved(task, scope, op.globals), {**op.globals, **scope.values})
        except Unanswered as error:
            op.unanswered[self._name(name)] = str(error)
            return
        except (ExpressionError, TemplateError) as error:
            self._settle(name, ERROR, str(error))
            return
        if is_loop(task):
            if not items:
                self._settle(name, SKIPPED, "Skipped, empty params")
                return
            if group is None:
                group = self._settle(name, RUNNING, "", kind="TaskGroup")
        if all(self._item(task, item, group) for item in items) and group is not None:
            self._end_group(group, items)

    def _after(self, task: Mapping[str, Any], node: NodeState) -> None:
        if node.completed and (task.get("hooks") or task.get("onExit")):
            self._hook(task, node)

    def _hook(self, task: Mapping[str, Any], node: NodeState) -> bool:
        name = str(task["name"])
        try:
            return run_exit_hook(self.op, task, node, self.scope, f"tasks.{name}", self._scope_of(name))
        except (TemplateError, ExpressionError):
            # The task has ended as it has; a hook that cannot be run changes nothing of it.
            return False

    def _results(self, names: list[str]) -> dict[str, frozenset[str]] | None:
        """What each task came to; None while one of them, or a hook of it, runs."""
        results = {}
        for name in names:
            node = self._node(name)
            if node is None or not node.fulfilled or not self._hooks_ended(node):
                return None
            found = {_RESULT[node.phase]}
            if node.type == "TaskGroup":
                phases = [child.phase for child in self.op.children(node)]
                if SUCCEEDED in phases:
                    found.add("AnySucceeded")
                if phases and all(phase == FAILED for phase in phases):
                    found.add("AllFailed")
            results[name] = frozenset(found)
        return results

    def _hooks_ended(self, node: NodeState) -> bool:
        items = self.op.children(node) if node.type == "TaskGroup" else []
        return all(self.op.hooks_fulfilled(each) for each in (node, *items))

    def _settle(self, name: str, phase: str, message: str, kind: str = "Skipped") -> NodeState:
        existing = self._node(name)
        if existing is not None:
            return self.op.mark(existing, phase, message)
        node = self.op.make_node(
            self._name(name), kind, phase, template_name=str(self.tasks[name].get("template") or ""),
            boundary=self.boundary.id, scope=self.scope, message=message,
        )  # fmt: skip
        self._connect(name, node.name, None)
        return node

    def _connect(self, task: str, node_name: str, group: NodeState | None) -> None:
        if group is not None:
            self.op.add_child(group, node_name)
            return
        dependencies = self._dependencies(task)
        if not dependencies:
            self.op.add_child(self.boundary, node_name)
        for name in dependencies:
            parent = self._node(name)
            for each in self.op.outbound(parent) if parent is not None else []:
                self.op.add_child(each, node_name)

    def _item(self, task: dict[str, Any], item: dict[str, Any], group: NodeState | None) -> bool:
        """Advance one task or one item of a loop. False: the items after it have to wait."""
        op, name = self.op, self._name(item["name"])
        node = op.node(name)
        if node is None:
            self._connect(task["name"], name, group)
            try:
                skip = "" if should_execute(str(item.get("when") or "")) else f"when '{item['when']}' evaluated false"
                phase = SKIPPED
            except ExpressionError as error:
                skip, phase = str(error), ERROR
            if skip:
                op.make_node(
                    name, "Skipped", phase, template_name=str(task.get("template") or ""),
                    boundary=self.boundary.id, scope=self.scope, message=skip,
                )  # fmt: skip
                return True
        try:
            node = op.execute(op, name, item, self.scope, item.get("arguments") or {}, boundary=self.boundary.id)
        except Waiting:
            return op.node(name) is not None
        except TimedOut:
            op.mark_named(name, FAILED, "timeout")
            return False
        except TemplateError as error:
            op.mark_named(name, ERROR, f"task '{name}' errored: {error}")
            return False
        if node.completed and (task.get("hooks") or task.get("onExit")):
            return self._hook(task, node)
        return True

    def _end_group(self, group: NodeState, items: list[dict[str, Any]]) -> None:
        phase = SUCCEEDED
        for item in items:
            node = self._node(item["name"])
            if node is None or not node.fulfilled or not self.op.hooks_fulfilled(node):
                return
            if node.failed:
                phase = node.phase
        self.op.mark(group, phase)
