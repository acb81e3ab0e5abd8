"""What is done about a failure: pure rules over the failures before it.

Budgets count what happened since the newest progress, a commit of new content from a later save; such a commit refunds
them all, whatever step it is called.
A false stop costs the whole run and a false restart some minutes, so everything restarts that no rule stops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.restart_rule import RestartRule
from argosy.steps.record.advice import advice_for
from argosy.steps.record.wording import count

PREEMPTION_WINDOW_SECONDS = 6 * 3600.0
FRAGMENTATION_STEPS = 100
"""After so many good steps one out-of-memory may be fragmentation."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One ended restart.

    ``exit_code`` is the class of the cause or of the user's own code (``mapped``); ``steps`` how many steps the restart
    had done, of which, ``unread``, nobody knows one: it counts saves; ``step`` where it failed; ``commit_step`` step of
    the newest commit at that moment, and ``progress`` the count of commits that were progress up to it, -1: none.
    ``node`` and ``rank`` are the culprit's, "" and -1 when unknown. ``time`` in seconds since 1970.
    """

    cause: Cause
    exit_code: int
    quote: str
    time: float
    attempt: int
    restart: int
    step: int
    steps: int
    commit_step: int
    progress: int = -1
    node: str = ""
    rank: int = -1
    mapped: bool = False
    unread: bool = False

    @property
    def root(self) -> str:
        """Cause and what was said, without numbers: a changed rank or node is not another root, a node at fault is."""
        suspect = f"{self.node}|" if self.exit_code == ExitCode.SUSPECT_NODE else ""
        return f"{self.cause}|{suspect}{re.sub(r'(0x)?[0-9a-f]*[0-9][0-9a-f]*', '#', self.quote.lower())}"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The budgets of the run (see ``TrainArgs``)."""

    max_same_failure: int
    max_restarts: int
    max_preemptions: int
    backoff_seconds: float
    backoff_cap_seconds: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """``stop`` with ``exit_code``, or ``restart`` after ``pause`` seconds (before jitter).

    ``exclude`` is a node that may not be used any more, ``avoid`` one that the next gang does without if it can:
    both need a new gang. ``spent`` of ``limit`` is the budget that was charged; ``refunded`` says that a commit had
    just renewed it.
    """

    action: Literal["restart", "stop"]
    reason: str
    exit_code: int = 0
    exclude: str = ""
    avoid: str = ""
    pause: float = 0.0
    spent: int = 0
    limit: int = 0
    refunded: bool = False
    skip: tuple[int, ...] = ()
    """First and last step whose data are passed over from now on."""


def since_progress(progress: int, history: Sequence[Failure]) -> tuple[list[Failure], bool]:
    """The failures that still count at this ``progress``, and whether any were refunded."""
    best, begin = -2, 0
    for index, failure in enumerate(history):
        if failure.progress > best:
            best, begin = failure.progress, index
    if progress > best:
        return [], bool(history)
    return list(history[begin:]), False


def decide(failure: Failure, history: Sequence[Failure], limits: Limits) -> Decision:
    """Restart or stop after ``failure``; ``history`` are the workflow's failures before it, oldest first."""
    counted, refunded = since_progress(failure.progress, history)
    if failure.cause.restart == RestartRule.UNCOUNTED and not failure.mapped:
        return _preempted(failure, counted, limits, refunded)
    if failure.cause.restart == RestartRule.RELEASED and failure.exit_code == ExitCode.TRANSIENT:
        return _released(counted, limits, refunded)
    counted = [earlier for earlier in counted if earlier.cause.restart not in _NOBODYS]
    special = _by_class(failure) or ("", None)
    if not special[0] and not failure.mapped:
        same = [earlier for earlier in counted if earlier.cause == failure.cause]
        special = _stuck(failure, history) or _by_cause(failure, same)
        if special[1] is None and (tries := _tries(failure.cause, limits)) is not None and len(same) >= tries:
            reason = f"{failure.cause} {len(same) + 1} times without progress in between"
            code, spent = int(ExitCode.NO_PROGRESS), len(same) + 1
            return Decision(action="stop", reason=reason, exit_code=code, spent=spent, limit=tries)
    rule, stop = special
    if stop is not None:
        return Decision(action="stop", reason=rule, exit_code=int(stop), spent=len(counted) + 1)
    return _charge(failure, counted, limits, refunded, rule)


_NOBODYS = (RestartRule.UNCOUNTED, RestartRule.RELEASED)
"""What the cluster did is not charged to the run."""


def _released(counted: Sequence[Failure], limits: Limits, refunded: bool) -> Decision:
    """Partly placed for too long: it gave back what it held, and tries again, each time a little later."""
    times = sum(earlier.cause.restart == RestartRule.RELEASED for earlier in counted)
    pause = min(limits.backoff_cap_seconds, limits.backoff_seconds * 2.0 ** min(times, 20))
    return Decision(action="restart", reason="what it held was given back", pause=pause, refunded=refunded)


def _preempted(failure: Failure, counted: Sequence[Failure], limits: Limits, refunded: bool) -> Decision:
    recent = [
        earlier
        for earlier in counted
        if earlier.cause.restart == RestartRule.UNCOUNTED and earlier.time > failure.time - PREEMPTION_WINDOW_SECONDS
    ]
    spent = len(recent) + 1
    if spent > limits.max_preemptions:
        reason = f"{spent} preemptions within 6 hours and no new checkpoint in between"
        return Decision(
            action="stop", reason=reason, exit_code=ExitCode.NO_PROGRESS, spent=spent, limit=limits.max_preemptions
        )
    return Decision(
        action="restart",
        reason="preempted: other pods",
        pause=0.0 if spent == 1 else limits.backoff_seconds,
        spent=spent,
        limit=limits.max_preemptions,
        refunded=refunded,
    )


Rule = tuple[str, ExitCode | None]
"""A reason, and the code to stop with; ("", None): nothing special. A reason without a code names what to do."""

_FINAL = (ExitCode.USER_BUG, ExitCode.FENCED, ExitCode.NO_PROGRESS, ExitCode.NEEDS_HUMAN, ExitCode.CONFIGURATION)


def _by_class(failure: Failure) -> Rule | None:
    code = ExitCode(failure.exit_code)
    own = code == failure.cause.exit_code == ExitCode.USER_BUG
    confirmable = own and failure.cause.restart != RestartRule.BY_CODE and not failure.mapped
    served = failure.cause.restart == RestartRule.ACCESS and failure.steps > 0 and not failure.mapped
    if code in _FINAL and not confirmable and not served:
        how = "the script's own exit code says so" if failure.mapped else "no restart can help"
        return f"{failure.cause}: {how}", code
    if code == ExitCode.SUSPECT_NODE:
        return "exclude", None
    return None


def _stuck(failure: Failure, history: Sequence[Failure]) -> Rule | None:
    """A script that begins anew saves again what it had saved: of the same exception, of hangs, or of a host's memory
    that runs out, a third time at one step no save in between is progress.
    """
    rule = failure.cause.restart
    rules = (RestartRule.SAME_EXCEPTION, RestartRule.HANG, RestartRule.SAME_STEP)
    last = [*history, failure][-3:]
    alike = all(each.unread and (each.root, each.steps) == (failure.root, failure.steps) for each in last)
    if rule == RestartRule.SAME_EXCEPTION and alike and len(last) > 2:
        saves = "save" if failure.steps == 1 else "saves"
        return f"the same {failure.cause} 3 times in a row, each after {failure.steps} {saves}", ExitCode.USER_BUG
    # What rolled back went on from before the step: another save was not taken for progress.
    if failure.step == 0 or rule not in rules or failure.exit_code == ExitCode.ROLL_BACK:
        return None
    here = [each for each in history if each.cause == failure.cause and each.step == failure.step]
    times = 1 + sum(rule != RestartRule.SAME_EXCEPTION or each.root == failure.root for each in here)
    code = ExitCode.NO_PROGRESS if rule == RestartRule.HANG else ExitCode.USER_BUG
    reason = f"the same {failure.cause} {times} times at step {failure.step}, whatever was saved in between"
    return (reason, code) if times > 2 else None


def _by_cause(failure: Failure, same: Sequence[Failure]) -> Rule:
    """What a cause's own rule says; ``same``: failures of this cause that still count."""
    rule = failure.cause.restart
    if rule == RestartRule.SAME_EXCEPTION:
        if failure.steps == 0:
            return "an exception before the first step would come again", ExitCode.USER_BUG
        if any(earlier.root == failure.root and earlier.step == failure.step for earlier in same):
            return f"confirmed: the same exception again at step {failure.step}", ExitCode.USER_BUG
    elif rule == RestartRule.ACCESS and same and failure.exit_code == ExitCode.CONFIGURATION:
        return f"{failure.cause} twice: the new pods had what their Secrets hold now", ExitCode.CONFIGURATION
    elif rule == RestartRule.FRAGMENTED:
        if same or failure.steps <= FRAGMENTATION_STEPS:
            return "out of GPU memory: smaller micro batch, or more accumulation steps", ExitCode.USER_BUG
    elif rule == RestartRule.SAME_STEP:
        if any(earlier.step == failure.step for earlier in same):
            code = ExitCode.NEEDS_HUMAN if failure.exit_code == ExitCode.ROLL_BACK else ExitCode.USER_BUG
            remedy = advice_for(failure.cause, failure.quote)[1]
            return f"{failure.cause} twice at step {failure.step}: {remedy}", code
    elif rule == RestartRule.HANG:
        return _hang(failure, same)
    elif rule == RestartRule.SAME_PLACE:
        if any(earlier.root == failure.root and earlier.rank == failure.rank for earlier in same):
            return f"confirmed: {failure.cause} twice at the same place", ExitCode.USER_BUG
        return "elsewhere", None
    elif rule == RestartRule.ELSEWHERE_ONCE:
        return (f"{failure.cause} twice", ExitCode.NO_PROGRESS) if same else ("elsewhere", None)
    elif rule == RestartRule.NODE_TWICE and any(earlier.node == failure.node != "" for earlier in same):
        return "exclude", None
    return "", None


def _tries(cause: Cause, limits: Limits) -> int | None:
    """Restarts after a cause that says little; whoever knows better raises ``retry.max_same_failure``."""
    usual = {RestartRule.TWICE: 2, RestartRule.ONCE: 1}.get(cause.restart)
    return max(usual, limits.max_same_failure - 1) if usual == 2 else usual


def _hang(failure: Failure, same: Sequence[Failure]) -> Rule:
    if sum(earlier.step == failure.step for earlier in same) >= 2:
        return f"no progress beyond step {failure.step}, three times", ExitCode.NO_PROGRESS
    if failure.node and any(earlier.rank == failure.rank and earlier.node == failure.node for earlier in same):
        return "exclude", None
    return "", None


def _charge(failure: Failure, counted: Sequence[Failure], limits: Limits, refunded: bool, rule: str) -> Decision:
    same = sum(earlier.root == failure.root for earlier in counted) + 1
    spent = len(counted) + 1
    if same > limits.max_same_failure:
        reason = f"the same failure {same} times without progress in between (retry.max_same_failure)"
        return Decision(
            action="stop", reason=reason, exit_code=_exhausted(failure), spent=same, limit=limits.max_same_failure
        )
    if spent > limits.max_restarts:
        reason = f"{count(spent, 'failure')} without progress in between (retry.max_restarts)"
        return Decision(
            action="stop", reason=reason, exit_code=_exhausted(failure), spent=spent, limit=limits.max_restarts
        )
    # What has made progress since it failed last is started again at once.
    pause = 0.0 if spent == 1 else min(limits.backoff_cap_seconds, limits.backoff_seconds * 2.0 ** min(spent - 2, 20))
    return Decision(
        action="restart",
        reason=f"restart {spent} of {limits.max_restarts} since the last checkpoint",
        exclude=failure.node if rule == "exclude" else "",
        avoid=failure.node if rule == "elsewhere" else "",
        pause=pause,
        spent=spent,
        limit=limits.max_restarts,
        refunded=refunded,
    )


def _exhausted(failure: Failure) -> int:
    """The exit code of a spent budget: a user's bug stays one, everything else has made no progress."""
    return int(ExitCode.USER_BUG if failure.exit_code == ExitCode.USER_BUG else ExitCode.NO_PROGRESS)
