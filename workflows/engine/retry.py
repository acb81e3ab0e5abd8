"""``retryStrategy``: whether a failed attempt is followed by another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from time import gmtime, strftime
from typing import Any

from argosy.workflows.engine.expression.parser import ExpressionError
from argosy.workflows.engine.gotext import float_text, short_duration
from argosy.workflows.engine.limits import duration, whole_number
from argosy.workflows.engine.node import ERROR, FAILED, SUCCEEDED, NodeState
from argosy.workflows.engine.operation import Operation, TemplateError

_TRANSIENT = (
    "Connection closed by foreign host", "net/http: TLS handshake timeout", "i/o timeout", "connection timed out",
    "connection reset by peer", "http2: client connection lost", "http2: server sent GOAWAY and closed the connection",
    "connect: connection refused", "invalid connection", "etcdserver: leader changed",
    "etcdserver: request timed out", "etcdserver: too many requests", "upper: no more rows in",
)  # fmt: skip
"""What Argo looks for in a node's message, which is all it knows there: it has no other sign of a transient error."""
_LONGEST_SECONDS = (2**63 - 1) / 1e9
"""Go's longest duration: Argo waits no longer, whatever the factor has come to."""


def policy_of(strategy: Mapping[str, Any]) -> str:
    """``retryPolicy``, or what Argo takes when there is none: Always with an expression, else OnFailure."""
    return str(strategy.get("retryPolicy") or ("Always" if strategy.get("expression") else "OnFailure"))


def seconds_of(node: NodeState) -> float:
    """How long the node ran, whole seconds as the controller's times are."""
    if node.started is None or node.finished is None:
        return 0.0
    return float(int(node.finished) - int(node.started))


def advance(op: Operation, parent: NodeState, strategy: Mapping[str, Any]) -> bool:
    """Judge the last attempt and set the Retry node's phase if that settles it. False: wait for the backoff.

    Raises:
        TemplateError: the strategy cannot be evaluated.
    """
    attempts = op.attempts(parent)
    if parent.fulfilled or not attempts or not attempts[-1].fulfilled:
        return True
    last = attempts[-1]
    if not last.failed:
        op.mark(parent, SUCCEEDED)
        return True
    if op.deadline is not None and op.now >= op.deadline:  # the exit handler's, too, is not tried again
        told = strftime("%Y-%m-%d %H:%M:%S +0000 UTC", gmtime(op.deadline))
        op.mark(parent, last.phase, f"retry exceeded workflow deadline {told}")
        return True
    limit = strategy.get("limit")
    maximum = None if limit is None else whole_number(limit)
    if strategy.get("backoff"):
        outcome = _backoff(op, parent, attempts, strategy["backoff"], maximum)
        if outcome != "go":
            return outcome == "settled"
    _judge(op, parent, attempts, strategy, maximum)
    return True


def _backoff(
    op: Operation, parent: NodeState, attempts: list[NodeState], backoff: Mapping[str, Any], maximum: int | None
) -> str:
    """``settled`` (no further attempt), ``wait``, or ``go``."""
    last, started = attempts[-1], attempts[0].started
    last_moment = math.inf
    if backoff.get("maxDuration") and started is not None:
        last_moment = started + duration(backoff["maxDuration"])
        if op.now > last_moment:
            op.mark(parent, last.phase, "Max duration limit exceeded")
            return "settled"
    wait = wait_seconds(backoff, len(attempts))
    until = (last.finished or op.now) + wait
    if until > last_moment:
        op.mark(parent, last.phase, "Backoff would exceed max duration limit")
        return "settled"
    if op.now < until and maximum is not None and len(attempts) <= maximum:
        op.mark(parent, parent.phase, f"Backoff for {short_duration(wait)}")
        op.wake_at(until)
        return "wait"
    op.mark(parent, parent.phase, "")
    return "go"


def wait_seconds(backoff: Mapping[str, Any], attempts: int) -> float:
    """Seconds between the end of attempt number ``attempts`` (from 1) and the next."""
    wait = duration(backoff["duration"])
    factor = whole_number(backoff.get("factor") or 0)
    if factor > 0 and wait:
        try:
            wait = min(wait * float(factor) ** (attempts - 1), _LONGEST_SECONDS)
        except OverflowError:
            wait = _LONGEST_SECONDS
    if backoff.get("cap"):
        wait = min(wait, duration(backoff["cap"]))
    return wait


def _judge(
    op: Operation, parent: NodeState, attempts: list[NodeState], strategy: Mapping[str, Any], maximum: int | None
) -> None:
    last = attempts[-1]
    policy = policy_of(strategy)
    transient = policy == "OnTransientError" and any(sign in last.message for sign in _TRANSIENT)
    accepted = {
        FAILED: policy in ("Always", "OnFailure") or transient,
        ERROR: policy in ("Always", "OnError") or transient,
    }
    if not accepted[last.phase]:
        op.mark(parent, last.phase, last.message)
    elif maximum is not None and len(attempts) > maximum:
        op.mark(parent, last.phase, "No more retries left")
    elif strategy.get("expression") and not _expression(str(strategy["expression"]), attempts):
        op.mark(parent, last.phase, "retryStrategy.expression evaluated to false")


def _expression(text: str, attempts: list[NodeState]) -> bool:
    from argosy.workflows.engine.expression.evaluate import evaluate_boolean

    last = attempts[-1]
    names = {
        "retries": str(len(attempts) - 1),
        "lastRetry": {
            "exitCode": "-1" if last.exit_code is None else str(last.exit_code),
            "status": last.phase,
            "duration": float_text(seconds_of(last)),
            "message": last.message,
        },
    }
    try:
        return evaluate_boolean(text, names)
    except ExpressionError as error:
        raise TemplateError(str(error)) from None
