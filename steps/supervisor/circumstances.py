"""What a decision by the rules alone becomes in this run: by its nodes, its ledger and its data."""

from __future__ import annotations

from dataclasses import replace

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.supervisor.budget import Decision, Failure
from argosy.steps.supervisor.context import Context


def considered(context: Context, decision: Decision, failure: Failure) -> Decision:
    """The decision about ``failure`` that is carried out."""
    if decision.exclude:
        return _placeable(context, decision)
    if decision.action == "stop" and decision.exit_code == ExitCode.NEEDS_HUMAN:
        return _skipping(context, decision, failure)
    if decision.action == "stop" and failure.cause == Cause.FENCED:
        return _outliving(context, decision)
    return decision


def _placeable(context: Context, decision: Decision) -> Decision:
    """A node may only be excluded when enough are left; else the run stops and says which node it suspects."""
    room = context.host.room((*context.ledger.excluded(), decision.exclude))
    if room is None or room >= context.settings.args.min_nnodes:
        return decision
    reason = f"{decision.exclude} is suspect and only {room} other nodes are there"
    return replace(decision, action="stop", exit_code=int(ExitCode.SUSPECT_NODE), reason=reason, exclude="")


def _skipping(context: Context, decision: Decision, failure: Failure) -> Decision:
    """Where the loss was no number twice, its data may be passed over once, before a person is asked."""
    steps, first = context.settings.args.nan_skip_steps, failure.step + 1
    window = (first, first + steps - 1)
    if not steps or failure.cause != Cause.NUMERICS_NAN:
        return decision
    if f"{window[0]}-{window[1]}" in context.ledger.skipped().split():
        return decision
    reason = f"the data of steps {window[0]} to {window[1]} are passed over"
    return replace(decision, action="restart", reason=reason, exit_code=0, skip=window)


def _outliving(context: Context, decision: Decision) -> Decision:
    """Of two supervisors that begin together, the one that loses the ledger may claim a generation before it knows: its
    claim fences the ranks of the other, which owns the run, and both would end.
    """
    before = sum(each.cause == Cause.FENCED for each in context.ledger.failures())
    if before >= context.settings.limits.max_same_failure or not context.ledger.is_ours():
        return decision
    return replace(decision, action="restart", exit_code=0, reason="whoever fenced it has ended: the run is ours")
