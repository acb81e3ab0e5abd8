"""``parallelism``, ``failFast`` and deadlines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.gotext import duration_seconds
from argosy.workflows.engine.node import FAILED, PENDING, RUNNING, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, Waiting

FAIL_FAST_MESSAGE = "template has failed or errored children and failFast enabled"
_WORK = ("Pod", "Steps", "DAG")


def whole_number(text: object) -> int:
    """A whole number that may have come from a parameter.

    Raises:
        TemplateError: it is none.
    """
    try:
        return int(str(text))
    except ValueError:
        raise TemplateError(f"value '{text}' cannot be resolved to an int") from None


def duration(text: object) -> float:
    """Seconds of a duration that may have come from a parameter.

    Raises:
        TemplateError: it is none.
    """
    try:
        return duration_seconds(str(text))
    except ValueError:
        raise TemplateError(f'unable to parse {text} as a duration: time: invalid duration "{text}"') from None


def timeout_moment(node: NodeState, template: Mapping[str, Any]) -> float | None:
    """When a template's ``timeout`` is over, seconds since 1970.

    Raises:
        TemplateError: it is no duration.
    """
    if not template.get("timeout") or node.started is None:
        return None
    try:
        return node.started + duration_seconds(str(template["timeout"]))
    except ValueError:
        raise TemplateError(f'invalid timeout format. time: invalid duration "{template["timeout"]}"') from None


def _is_group(template: Mapping[str, Any]) -> bool:
    return "dag" in template or "steps" in template


def _fails_fast(template: Mapping[str, Any]) -> bool:
    return bool(template.get("failFast"))


def _below(op: Operation, boundary: str) -> list[NodeState]:
    return [node for node in op.state.nodes.values() if node.boundary == boundary]


def _active_pods(op: Operation, boundary: str | None) -> int:
    nodes = op.state.nodes.values() if boundary is None else _below(op, boundary)
    return sum(1 for node in nodes if node.type == "Pod" and _is_active(node))


def _is_active(node: NodeState) -> bool:
    return node.phase == RUNNING or (node.phase == PENDING and not node.message.startswith("Waiting for "))


def _active_children(op: Operation, boundary: str) -> int:
    return sum(1 for node in _below(op, boundary) if node.type in _WORK and _is_active(node))


def _unsuccessful(op: Operation, boundary: str) -> int:
    return sum(
        1 for node in _below(op, boundary) if node.type in (*_WORK, "Retry") and node.failed and not node.retried
    )


def check(op: Operation, template: Mapping[str, Any], node: NodeState | None, boundary: str) -> None:
    """Raise Waiting if a limit forbids to go on with this template now.

    A template with ``failFast`` whose child failed is marked Failed here once nothing of it runs any more.
    """
    is_new = node is None or node.phase not in (PENDING, RUNNING)
    if is_new:
        check_pods(op)
    if node is not None and _is_group(template):
        _fail_fast(op, template, node)
    if boundary and is_new:
        parent = op.by_id(boundary)
        above = op.group_templates.get(boundary, {})
        _fail_fast(op, above, parent)
        count = above.get("parallelism")
        if count is not None and _active_children(op, boundary) >= whole_number(count):
            raise Waiting


def check_pods(op: Operation) -> None:
    """Raise Waiting if the workflow's ``parallelism`` allows no further pod."""
    limit = op.document.spec.get("parallelism")
    if limit is not None and _active_pods(op, None) >= int(limit):
        raise Waiting


def _fail_fast(op: Operation, template: Mapping[str, Any], node: NodeState) -> None:
    if not _fails_fast(template) or not _unsuccessful(op, node.id):
        return
    if _active_pods(op, node.id) == 0:
        groups = [each for each in _below(op, node.id) if each.type == "StepGroup"]
        if groups and not groups[-1].fulfilled:
            op.mark(groups[-1], FAILED, FAIL_FAST_MESSAGE)
        op.mark(node, FAILED, FAIL_FAST_MESSAGE)
    raise Waiting


def pod_deadline(op: Operation, node: NodeState, template: Mapping[str, Any]) -> float | None:
    """When a pod that starts now is ended, seconds since 1970: the earliest of the template's limits."""
    moments = []
    seconds = template.get("activeDeadlineSeconds")
    if seconds is not None:
        moments.append(op.now + whole_number(seconds))
    timeout = timeout_moment(node, template)
    if timeout is not None:
        moments.append(timeout)
    longest = ((template.get("retryStrategy") or {}).get("backoff") or {}).get("maxDuration")
    if longest and node.retried:
        parent = op.node(node.name.rsplit("(", 1)[0])
        earlier = [each for each in op.attempts(parent) if each is not node] if parent is not None else []
        if earlier and earlier[0].started is not None:
            moments.append(earlier[0].started + duration(longest))
    return min(moments, default=None)
