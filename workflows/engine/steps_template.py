"""A Steps template: groups one after the other, the steps of a group side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.hooks import run_exit_hook
from argosy.workflows.engine.loops import expand
from argosy.workflows.engine.node import ERROR, FAILED, RUNNING, SKIPPED, SUCCEEDED, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, TimedOut, Waiting
from argosy.workflows.engine.references import resolved
from argosy.workflows.engine.results import add_to_scope, group_outputs
from argosy.workflows.engine.scope import Scope
from argosy.workflows.engine.substitute import Unanswered
from argosy.workflows.engine.when import should_execute


def execute_steps(op: Operation, node: NodeState, template: dict[str, Any], scope: str) -> NodeState:
    """Advance a Steps node; the node."""
    return _Steps(op, node, template, scope).execute()


class _Steps:
    def __init__(self, op: Operation, node: NodeState, template: dict[str, Any], scope: str) -> None:
        self.op, self.boundary, self.template, self.scope_name = op, node, template, scope
        self.scope = Scope.of_template(template)
        self.scope.add_outputs("workflow", op.state.outputs)

    def execute(self) -> NodeState:
        op, node = self.op, self.boundary
        previous: NodeState | None = None
        for index, steps in enumerate(self.template["steps"]):
            group = self._group(index, previous)
            if not group.fulfilled:
                self._execute_group(group, [{**step, "owner": "steps"} for step in steps])
            if not group.fulfilled:
                return node
            if group.failed:
                self._set_outbound(group)
                return op.mark(node, FAILED, group.message)
            for step in steps:
                self._add(group, step)
            previous = group
        if previous is not None:
            self._set_outbound(previous)
        node.outputs = group_outputs(self.template, self.scope)
        op.export(self.template, node.outputs)
        return op.mark(node, SUCCEEDED)

    def _group(self, index: int, previous: NodeState | None) -> NodeState:
        op, name = self.op, f"{self.boundary.name}[{index}]"
        group = op.node(name)
        if group is not None:
            return group
        group = op.make_node(name, "StepGroup", RUNNING, boundary=self.boundary.id, scope=self.scope_name)
        if previous is None:
            op.add_child(self.boundary, name)
        elif not previous.children:
            op.add_child(previous, name)
        else:
            for child in op.children(previous):
                for each in op.outbound(child):
                    op.add_child(each, name)
        return group

    def _set_outbound(self, group: NodeState) -> None:
        self.boundary.outbound = [each.id for child in self.op.children(group) for each in self.op.outbound(child)]

    def _add(self, group: NodeState, step: Mapping[str, Any]) -> None:
        op, name = self.op, str(step["name"])
        full = f"{group.name}.{name}"
        node = op.node(full)
        if node is not None:
            add_to_scope(op, self.scope, f"steps.{name}", node, step, self.scope_name)
            return
        items = [
            each
            for each in op.state.nodes.values()
            if each.boundary == self.boundary.id and each.name.startswith(f"{full}(") and each.type != "Skipped"
        ]
        try:
            if items:
                self.scope.add_loop(f"steps.{name}", items)
        except ExpressionError as error:
            raise TemplateError(str(error)) from None

    # -- one group -------------------------------------------------------------------------------------------

    def _execute_group(self, group: NodeState, steps: list[dict[str, Any]]) -> None:
        op = self.op
        try:
            ready = [resolved(step, self.scope, op.globals) for step in steps]
        except Unanswered as error:
            op.unanswered[group.name] = str(error)
            return
        except (ExpressionError, TemplateError) as error:
            op.mark(group, ERROR, f"failed to resolve references: {error}")
            return
        try:
            items = self._items(group, ready)
        except ExpressionError as error:
            op.mark(group, ERROR, str(error))
            return
        by_node: dict[str, dict[str, Any]] = {}
        for item in items:
            name = f"{group.name}.{item['name']}"
            if not self._advance(group, name, item):
                return
            if op.node(name) is not None:
                by_node[op.node_id(name)] = item
        # A step that waits for its turn has no node yet: then the group is not over.
        try:
            if not group.fulfilled and len(by_node) == len(items) and self._ended(group, by_node):
                self._judge(group, by_node)
        except TemplateError as error:
            op.mark(group, ERROR, str(error))

    def _items(self, group: NodeState, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found = []
        for step in steps:
            items = expand(step, {**self.op.globals, **self.scope.values})
            if not items:
                self._skip(group, f"{group.name}.{step['name']}", step, SKIPPED, "Skipped, empty params")
            found += items
        return found

    def _skip(self, group: NodeState, name: str, step: Mapping[str, Any], phase: str, message: str) -> None:
        if self.op.node(name) is None:
            self.op.make_node(
                name, "Skipped", phase, template_name=str(step.get("template") or ""),
                boundary=self.boundary.id, scope=self.scope_name, message=message,
            )  # fmt: skip
            self.op.add_child(group, name)

    def _advance(self, group: NodeState, name: str, step: dict[str, Any]) -> bool:
        """Advance one step; False when that settled the whole group."""
        op = self.op
        try:
            if not should_execute(str(step.get("when") or "")):
                self._skip(group, name, step, SKIPPED, f"when '{step['when']}' evaluated false")
                return True
        except ExpressionError as error:
            self._skip(group, name, step, ERROR, str(error))
            op.mark(group, ERROR, str(error))
            return False
        try:
            op.execute(op, name, step, self.scope_name, step.get("arguments") or {}, boundary=self.boundary.id)
        except Waiting:
            pass
        except TimedOut:
            op.add_child(group, name)
            op.mark(group, FAILED, "timeout")
            return False
        except TemplateError as error:
            op.add_child(group, name)
            op.mark(group, ERROR, f"step group deemed errored due to child {name} error: {error}")
            return False
        if op.node(name) is not None:
            op.add_child(group, name)
        return True

    def _ended(self, group: NodeState, by_node: Mapping[str, dict[str, Any]]) -> bool:
        op, ended = self.op, True
        for child in op.children(group):
            step = by_node.get(child.id, {})
            if not child.fulfilled:
                ended = False
            elif child.completed and (step.get("hooks") or step.get("onExit")):
                prefix = f"steps.{str(step['name']).split('(', 1)[0]}"
                ended = run_exit_hook(op, step, child, self.scope_name, prefix, self.scope) and ended
        return ended

    def _judge(self, group: NodeState, by_node: Mapping[str, dict[str, Any]]) -> None:
        for child in self.op.children(group):
            accepted = by_node.get(child.id, {}).get("continueOn") or {}
            if child.failed and not accepted.get("failed" if child.phase == FAILED else "error"):
                self.op.mark(group, FAILED, f"child '{child.id}' failed")
                return
        self.op.mark(group, SUCCEEDED)
