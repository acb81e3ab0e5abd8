"""What a DAG comes to, from the phases its branches ended with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.node import ERROR, FAILED, RUNNING, SUCCEEDED, NodeState
from argosy.workflows.engine.operation import Operation


def assess(op: Operation, boundary: NodeState, template: Mapping[str, Any], targets: list[str]) -> str:
    """The DAG's phase: omitted targets inherit the phase of the branch that led to them."""
    ids = {name: op.node_id(f"{boundary.name}.{name}") for name in targets}
    reached = dict.fromkeys(ids.values(), "")
    if not _walk(op, boundary, reached):
        return RUNNING
    tasks = {task["name"]: task for task in template["dag"]["tasks"]}
    fail_fast = template["dag"].get("failFast", True)
    result = SUCCEEDED
    for name in targets:
        phase = reached[ids[name]]
        if not phase:
            result = RUNNING
            if not fail_fast:
                break
        elif phase in (FAILED, ERROR):
            accepted = tasks[name].get("continueOn") or {}
            if accepted.get("failed" if phase == FAILED else "error"):
                continue
            result = phase
            if fail_fast:
                break
    return result


def _walk(op: Operation, boundary: NodeState, reached: dict[str, str]) -> bool:
    """Fill in the phases of the targets; False as soon as a node is met that has not ended."""
    queue = [(child, SUCCEEDED) for child in boundary.children]
    seen = set(queue)
    while queue:
        node_id, branch = queue.pop(0)
        node = op.state.nodes.get(node_id)
        if node is None or not node.fulfilled:
            return False
        if node.completed:
            branch = node.phase
        if node_id in reached and reached[node_id] not in (FAILED, ERROR):
            reached[node_id] = branch
        for child in _next(op, node):
            if (child, branch) not in seen:
                seen.add((child, branch))
                queue.append((child, branch))
    return True


def _next(op: Operation, node: NodeState) -> list[str]:
    if node.type != "Retry":
        return node.children
    hooks = [child.id for child in op.children(node) if child.hooked]
    return hooks + [each for child in op.attempts(node) for each in child.children]
