"""Execute a template at a node: arguments, limits, locks, retries, then whatever kind of template it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine import limits, retry
from argosy.workflows.engine.arguments import processed
from argosy.workflows.engine.dag import execute_dag
from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import float_text
from argosy.workflows.engine.locks import Lock, locks_of
from argosy.workflows.engine.node import ERROR, FAILED, PENDING, RUNNING, SUCCEEDED, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError, TimedOut
from argosy.workflows.engine.pod_patch import patch_problems
from argosy.workflows.engine.results import keeps_result
from argosy.workflows.engine.steps_template import execute_steps
from argosy.workflows.engine.substitute import Substitution
from argosy.workflows.template_defaults import with_defaults

POD_KINDS = ("container", "script")
MAX_DEPTH = 100
TOO_DEEP = (
    "Maximum recursion depth exceeded. "
    "See https://argo-workflows.readthedocs.io/en/release-4.0/scaling/#maximum-recursion-depth"
)


def kind_of(template: Mapping[str, Any]) -> str:
    """Which of the supported kinds a template is.

    Raises:
        TemplateError: none of them.
    """
    for kind in ("container", "script", "dag", "steps", "suspend"):
        if kind in template:
            return kind
    raise TemplateError(f"Template '{template.get('name')}' missing specification")


def execute(
    op: Operation,
    name: str,
    holder: Mapping[str, Any],
    scope: str,
    arguments: Mapping[str, Any],
    *,
    boundary: str = "",
    hooked: bool = False,
) -> NodeState:
    """Bring the node ``name`` of the template that ``holder`` refers to as far as it goes now; the node.

    Raises:
        Waiting: a limit of parallelism is reached; there may be no node yet.
        TimedOut: the template's timeout passed before it started.
        TemplateError: it cannot be executed; the node says why.
    """
    node = op.node(name)
    if node is not None and node.fulfilled:
        op.locks.release(node.id)
        return node
    op.depth += 1
    try:
        if op.depth >= MAX_DEPTH:
            return _refuse(op, node, name, scope, boundary, hooked, TOO_DEEP)
        return _execute(op, node, name, holder, scope, arguments, boundary, hooked)
    finally:
        op.depth -= 1


def _execute(
    op: Operation, node: NodeState | None, name: str, holder: Mapping[str, Any], scope: str,
    arguments: Mapping[str, Any], boundary: str, hooked: bool,
) -> NodeState:  # fmt: skip
    try:
        own_scope, template = op.document.template(holder, scope)
        template = with_defaults(op.document.spec, template)
        local = _local_names(op, name, holder, template)
        template = processed(template, arguments, op.globals, local, op.document.configs)
        call = _Call(op, name, template, own_scope, boundary, hooked, str(template.get("name") or ""))
    except (LookupError, TemplateError, ExpressionError) as error:
        _refuse(op, node, name, scope, boundary, hooked, str(error))
        raise TemplateError(str(error)) from None
    return call.execute(node)


def _refuse(
    op: Operation, node: NodeState | None, name: str, scope: str, boundary: str, hooked: bool, message: str
) -> NodeState:
    if node is None:
        return op.make_node(name, "Skipped", ERROR, boundary=boundary, scope=scope, message=message, hooked=hooked)
    return op.mark(node, ERROR, message)


def _local_names(op: Operation, name: str, holder: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, str]:
    local = {"node.name": name}
    if any(kind in template for kind in POD_KINDS) and not template.get("retryStrategy"):
        local["pod.name"] = op.pod_name(name, str(template.get("name")))
    # The entrypoint and hooks are steps without a name to the controller.
    local[f"{holder.get('owner', 'steps')}.name"] = str(holder.get("name", ""))
    return local


class _Call:
    """One execution of a processed template."""

    def __init__(
        self, op: Operation, name: str, template: dict[str, Any], own_scope: str,
        boundary: str, hooked: bool, template_name: str,
    ) -> None:  # fmt: skip
        self.op, self.name, self.template = op, name, template
        self.own_scope = own_scope
        self.boundary, self.hooked, self.template_name = boundary, hooked, template_name

    def execute(self, node: NodeState | None) -> NodeState:
        op = self.op
        self._check_timeout(node)
        limits.check(op, self.template, node, self.boundary)
        if self.template.get("synchronization"):
            node = self._lock(node)
            if node is not None and node.message.startswith("Waiting for "):
                return node
        if self.template.get("retryStrategy") is None:
            return self._dispatch(self.name, node, self.template, retried=False, attempt=0)
        return self._retry(node)

    def _make(self, name: str, kind: str, phase: str, *, message: str = "", retried: bool = False) -> NodeState:
        inputs = {each["name"]: each["value"] for each in self.template["inputs"].get("parameters") or []}
        return self.op.make_node(
            name, kind, phase, template_name=self.template_name, boundary=self.boundary, scope=self.own_scope,
            message=message, inputs=inputs, hooked=self.hooked and not retried, retried=retried,
        )  # fmt: skip

    def _check_timeout(self, node: NodeState | None) -> None:
        moment = None if node is None or node.phase != PENDING else limits.timeout_moment(node, self.template)
        if node is None or moment is None:
            return
        if self.op.now > moment:
            self.op.mark(node, FAILED, "timeout")
            raise TimedOut
        self.op.wake_at(moment)

    def _lock(self, node: NodeState | None) -> NodeState | None:
        op = self.op
        wanted = locks_of(self.template["synchronization"], op.document.configs)
        blocked = op.locks.acquire(op.node_id(self.name), wanted)
        if blocked is None:
            if node is not None and node.message.startswith("Waiting for "):
                op.mark(node, node.phase, "")
            return node
        message = waiting_message(op, blocked)
        if node is None:
            kind = {"dag": "DAG", "steps": "Steps", "suspend": "Suspend"}.get(kind_of(self.template), "Pod")
            kind = "Retry" if self.template.get("retryStrategy") is not None else kind
            node = self._make(self.name, kind, PENDING, message=message)
        elif node.phase != PENDING:
            # The engine was restarted while this node held the lock; somebody else has it now.
            op.mark(node, PENDING, message)
        return op.mark(node, node.phase, message)

    # -- retries ---------------------------------------------------------------------------------------------

    def _retry(self, parent: NodeState | None) -> NodeState:
        op, strategy = self.op, self.template["retryStrategy"]
        if parent is None:
            parent = self._make(self.name, "Retry", RUNNING)
        elif parent.phase == PENDING:
            op.mark(parent, RUNNING)
        try:
            if not retry.advance(op, parent, strategy):
                return parent
        except (TemplateError, ExpressionError) as error:
            op.mark(parent, ERROR, str(error))
            raise TemplateError(str(error)) from None
        attempts = op.attempts(parent)
        last = attempts[-1] if attempts else None
        if parent.fulfilled:
            if last is not None:
                parent.outputs, parent.exit_code = dict(last.outputs), last.exit_code
            op.locks.release(parent.id)
            return parent
        if last is not None and not last.fulfilled:
            number, name, child = len(attempts) - 1, last.name, last
        else:
            limits.check_pods(op)
            number, name, child = len(attempts), f"{self.name}({len(attempts)})", None
            op.add_child(parent, name)
        template = Substitution({**op.globals, **self._attempt_names(name, number, last)}).tree(self.template)
        if self._dispatch(name, child, template, retried=True, attempt=number).fulfilled:
            op.wake_at(op.now)
        return parent

    def _attempt_names(self, name: str, number: int, last: NodeState | None) -> dict[str, str]:
        op = self.op
        if last is not None and not last.fulfilled:
            attempts = op.attempts(op.state.nodes[op.node_id(self.name)])
            last = attempts[-2] if len(attempts) > 1 else None
        code = "0" if last is None or last.exit_code is None else str(last.exit_code)
        return {
            "pod.name": op.pod_name(name, self.template_name),
            "retries": str(number),
            "lastRetry.exitCode": code,
            "lastRetry.duration": float_text(retry.seconds_of(last)) if last is not None else "0",
            "lastRetry.status": last.phase if last is not None else "",
            "lastRetry.message": last.message if last is not None else "",
        }

    # -- kinds -----------------------------------------------------------------------------------------------

    def _dispatch(
        self, name: str, node: NodeState | None, template: dict[str, Any], *, retried: bool, attempt: int
    ) -> NodeState:
        try:
            kind = kind_of(template)
            if kind in POD_KINDS:
                found = self._pod(name, node, template, retried, attempt)
            elif kind == "suspend":
                found = self._suspend(name, node, template, retried)
            else:
                found = self._group(kind, name, node, template, retried)
        except TemplateError as error:
            existing = self.op.node(name)
            if existing is None:
                existing = self._make(name, "Skipped", ERROR, message=str(error), retried=retried)
            self.op.mark(existing, ERROR, str(error))
            self.op.locks.release(self.op.node_id(self.name))
            if retried:
                return existing
            raise
        if found.fulfilled and not retried:
            self.op.locks.release(found.id)
        return found

    def _group(
        self, kind: str, name: str, node: NodeState | None, template: dict[str, Any], retried: bool
    ) -> NodeState:
        if node is None:
            node = self._make(name, "DAG" if kind == "dag" else "Steps", RUNNING, retried=retried)
        elif node.phase == PENDING:
            self.op.mark(node, RUNNING)
        self.op.group_templates[node.id] = template
        run = execute_dag if kind == "dag" else execute_steps
        return run(self.op, node, template, self.own_scope)

    def _pod(
        self, name: str, node: NodeState | None, template: dict[str, Any], retried: bool, attempt: int
    ) -> NodeState:
        op = self.op
        if node is None:
            node = self._make(name, "Pod", PENDING, retried=retried)
        if not node.pod:  # it may have waited for a lock
            node.attempt = attempt
            node.pod = op.pod_name(name, self.template_name)
        if node.phase != PENDING:
            return node
        wrong = next(patch_problems(template, f"templates.{self.template_name}"), None)
        if wrong is not None:
            raise TemplateError(wrong)
        if op.deadline is not None and op.now >= op.deadline and not op.in_exit_handler(node):
            return op.mark(node, FAILED, "Step exceeded its deadline")
        node.deadline = limits.pod_deadline(op, node, template)
        op.pods.submit(node, template, keep_result=keeps_result(op, node))
        return node

    def _suspend(self, name: str, node: NodeState | None, template: dict[str, Any], retried: bool) -> NodeState:
        op = self.op
        if node is None:
            node = self._make(name, "Suspend", RUNNING, retried=retried)
        elif node.phase == PENDING:
            op.mark(node, RUNNING)
        duration = template["suspend"].get("duration")
        assert node.started is not None
        moment = node.started + limits.duration(duration)
        if op.now >= moment:
            return op.mark(node, SUCCEEDED)
        op.wake_at(moment)
        return node


def waiting_message(op: Operation, lock: Lock) -> str:
    """What a node says while others hold its lock; asks for a look soon, as locks wake nobody."""
    op.wake_at(op.now + 0.1)
    return f"Waiting for {op.document.namespace}/{lock.name} lock. Lock status: 0/{lock.limit}"
