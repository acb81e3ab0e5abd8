"""What a workflow comes to, what its exit handler is told, and a workflow that would never end."""

from __future__ import annotations

from argosy.workflows.engine.gotext import json_text, rfc3339
from argosy.workflows.engine.node import ERROR, FAILED, SUCCEEDED, NodeState
from argosy.workflows.engine.operation import Operation


def outcome(op: Operation, root: NodeState, exit_node: NodeState | None) -> None:
    """End the workflow as the root node and the exit handler's ended."""
    if root.failed:
        op.finish(ERROR if root.phase == ERROR else FAILED, root.message)
    elif exit_node is not None and exit_node.failed:
        op.finish(exit_node.phase, exit_node.message)
    else:
        op.finish(SUCCEEDED, "")


def failures(op: Operation) -> str:
    """``workflow.failures``: quoted JSON of the nodes that failed; ``"null"`` if none did."""
    failed = ",".join(_failure(op, node) for node in op.state.nodes.values() if node.failed)
    return json_text(f"[{failed}]" if failed else "null")


def _failure(op: Operation, node: NodeState) -> str:
    """JSON with its keys in the controller's order."""
    known = {
        "displayName": node.display_name, "message": node.message, "templateName": node.template_name,
        "phase": node.phase, "podName": op.pod_name(node.name, node.template_name),
        "finishedAt": rfc3339(node.finished or op.now),
    }  # fmt: skip
    return "{" + ",".join(f'"{key}":{json_text(value)}' for key, value in known.items()) + "}"


def end_stuck(op: Operation) -> None:
    """End a workflow in which nothing runs and nothing can start any more: Argo would keep it Running for ever."""
    told = "; ".join(f"{name}: {reason}" for name, reason in sorted(op.unanswered.items()))
    message = f"nothing can go on ({told or 'no step can start'}): Argo would keep this workflow Running for ever"
    for node in op.state.nodes.values():
        if not node.fulfilled:
            op.mark(node, ERROR, message)
    op.finish(ERROR, message)
