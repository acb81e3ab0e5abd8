"""The rules of restarts as a table: failures in, decision out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.supervisor.budget import Decision, Failure, Limits, decide

LIMITS = Limits(max_same_failure=3, max_restarts=5, max_preemptions=20, backoff_seconds=1.0, backoff_cap_seconds=10.0)


def failed(cause: Cause, **given: Any) -> Failure:
    values: dict[str, Any] = {
        "exit_code": int(cause.exit_code), "quote": "x", "time": 1000.0, "attempt": 1, "restart": 0, "step": 50,
        "steps": 10, "commit_step": 40, "progress": 40, "node": "node-1", "rank": 1, **given,
    }  # fmt: skip
    return Failure(cause=cause, **values)


def after(*failures: Failure, limits: Limits = LIMITS) -> Decision:
    """The decision about the last of them."""
    return decide(failures[-1], failures[:-1], limits)


U, H, N = Cause.USER_EXCEPTION, Cause.HANG, Cause.NATIVE_CRASH
RULES: list[tuple[str, list[Failure], tuple[str, int, str, str]]] = [
    # what, failures, (action, exit code, exclude, avoid)
    ("before the first step", [failed(U, steps=0, step=0)], ("stop", 70, "", "")),
    ("after progress: once more", [failed(U)], ("restart", 0, "", "")),
    ("the same step and words: confirmed", [failed(U), failed(U)], ("stop", 70, "", "")),
    ("another step", [failed(U), failed(U, step=51)], ("restart", 0, "", "")),
    ("confirmed only without progress", [failed(U), failed(U, progress=45)], ("restart", 0, "", "")),
    ("a third time, whatever was saved", [failed(U, progress=p) for p in (45, 46, 47)], ("stop", 70, "", "")),
    ("a third time, further on", [failed(U, progress=p, step=p) for p in (45, 46, 47)], ("restart", 0, "", "")),
    (
        "steps that nobody reads, as many saves each time",
        [failed(U, progress=p, step=p, steps=3, unread=True) for p in (3, 6, 9)],
        ("stop", 70, "", ""),
    ),
    (
        "steps that nobody reads, further once",
        [failed(U, progress=s, step=s, steps=n, unread=True) for s, n in ((3, 3), (6, 4), (10, 3))],
        ("restart", 0, "", ""),
    ),
    ("the fourth time, steps differ", [failed(U, step=s) for s in (50, 51, 52, 53)], ("stop", 70, "", "")),
    ("a missing module", [failed(Cause.IMPORT_ERROR)], ("stop", 78, "", "")),
    ("desync", [failed(Cause.COLLECTIVE_MISMATCH)], ("stop", 70, "", "")),
    ("no final checkpoint", [failed(Cause.FINISHED_WITHOUT_CHECKPOINT)], ("stop", 70, "", "")),
    ("fenced", [failed(Cause.FENCED)], ("stop", 73, "", "")),
    ("GPU memory, early", [failed(Cause.GPU_OOM, steps=100)], ("stop", 70, "", "")),
    ("GPU memory, late", [failed(Cause.GPU_OOM, steps=101)], ("restart", 0, "", "")),
    ("GPU memory, late, twice", [failed(Cause.GPU_OOM, steps=101)] * 2, ("stop", 70, "", "")),
    ("host memory", [failed(Cause.HOST_OOM)], ("restart", 0, "", "")),
    ("host memory twice at a step", [failed(Cause.HOST_OOM)] * 2, ("stop", 70, "", "")),
    ("hardware", [failed(Cause.CUDA_HARDWARE)], ("restart", 0, "node-1", "")),
    ("the store refuses from the start", [failed(Cause.S3_ACCESS, steps=0)], ("stop", 78, "", "")),
    ("keys that were replaced", [failed(Cause.S3_ACCESS)], ("restart", 0, "", "")),
    ("keys that new pods have not either", [failed(Cause.S3_ACCESS)] * 2, ("stop", 78, "", "")),
    (
        "host memory a third time, whatever was saved",
        [failed(Cause.HOST_OOM, progress=p) for p in (5, 6, 7)],
        ("stop", 70, "", ""),
    ),
    (
        "host memory, further on",
        [failed(Cause.HOST_OOM, progress=p, step=p) for p in (5, 6, 7)],
        ("restart", 0, "", ""),
    ),
    ("crash: elsewhere", [failed(N)], ("restart", 0, "", "node-1")),
    ("crash twice at a place", [failed(N)] * 2, ("stop", 70, "", "")),
    ("illegal access: elsewhere", [failed(Cause.CUDA_ILLEGAL_ACCESS)], ("restart", 0, "", "node-1")),
    ("illegal access twice", [failed(Cause.CUDA_ILLEGAL_ACCESS)] * 2, ("stop", 70, "", "")),
    ("disk: elsewhere", [failed(Cause.DISK_FULL)], ("restart", 0, "", "node-1")),
    ("disk twice", [failed(Cause.DISK_FULL)] * 2, ("stop", 74, "", "")),
    ("timeout, same node twice", [failed(Cause.NCCL_TIMEOUT)] * 2, ("restart", 0, "node-1", "")),
    ("timeout, nobody named", [failed(Cause.NCCL_TIMEOUT, node="")] * 2, ("restart", 0, "", "")),
    ("missing node twice", [failed(Cause.RENDEZVOUS_TIMEOUT)] * 2, ("restart", 0, "node-1", "")),
    ("hang", [failed(H)], ("restart", 0, "", "")),
    ("hang of a rank twice", [failed(H), failed(H, step=55)], ("restart", 0, "node-1", "")),
    ("hang at a step thrice", [failed(H, node="", rank=-1)] * 3, ("stop", 74, "", "")),
    ("hang at a step again, saves between", [failed(H, progress=p) for p in (45, 46, 47)], ("stop", 74, "", "")),
    ("unknown twice", [failed(Cause.UNKNOWN)] * 2, ("restart", 0, "", "")),
    ("unknown thrice", [failed(Cause.UNKNOWN)] * 3, ("stop", 74, "", "")),
    ("loader worker twice", [failed(Cause.DATALOADER_WORKER_KILLED)] * 2, ("stop", 74, "", "")),
    ("corrupt checkpoint", [failed(Cause.CHECKPOINT_CORRUPT)], ("restart", 0, "", "")),
    ("NaN", [failed(Cause.NUMERICS_NAN)], ("restart", 0, "", "")),
    ("NaN twice at a step", [failed(Cause.NUMERICS_NAN)] * 2, ("stop", 77, "", "")),
    ("the store throttles", [failed(Cause.S3_THROTTLE)] * 3, ("restart", 0, "", "")),
    ("the store throttles on and on", [failed(Cause.S3_THROTTLE)] * 4, ("stop", 74, "", "")),
    ("mapped to user bug", [failed(Cause.UNKNOWN, exit_code=70, mapped=True)], ("stop", 70, "", "")),
    ("mapped to human", [failed(Cause.UNKNOWN, exit_code=77, mapped=True)], ("stop", 77, "", "")),
    ("mapped to node", [failed(U, exit_code=71, mapped=True)], ("restart", 0, "node-1", "")),
    ("mapped to transient", [failed(U, steps=0, exit_code=75, mapped=True)], ("restart", 0, "", "")),
]


@pytest.mark.parametrize(("failures", "wanted"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_rule(failures: list[Failure], wanted: tuple[str, int, str, str]) -> None:
    found = after(*failures)
    assert (found.action, found.exit_code, found.exclude, found.avoid) == wanted, found.reason


def test_every_cause_has_a_decision() -> None:
    for cause in Cause:
        assert after(failed(cause)).action in ("restart", "stop")


def test_a_changed_rank_or_node_is_the_same_root() -> None:
    one = failed(Cause.S3_THROTTLE, quote="rank 1 on node-1: 503 at 0x7f3a")
    two = failed(Cause.S3_THROTTLE, quote="rank 7 on node-3: 503 at 0x8e11", rank=7, node="node-3")
    assert one.root == two.root
    assert after(one, two, one, two).action == "stop"


def test_different_roots_share_the_budget_of_restarts() -> None:
    roots = [failed(Cause.S3_THROTTLE, quote=word) for word in ("a-", "b-", "c-", "d-", "e-", "g-")]
    assert after(*roots[:5]).action == "restart"
    assert after(*roots).exit_code == 74


def test_a_new_commit_refunds_everything() -> None:
    spent = [failed(Cause.S3_THROTTLE)] * 3
    found = after(*spent, failed(Cause.S3_THROTTLE, progress=41))
    assert (found.action, found.refunded, found.spent, found.pause) == ("restart", True, 1, 0.0)


def test_a_roll_back_refunds_nothing_until_the_old_height_is_passed() -> None:
    spent = [failed(Cause.S3_THROTTLE, progress=step) for step in (40, 30, 40)]
    assert after(*spent, failed(Cause.S3_THROTTLE, progress=40)).action == "stop"
    assert after(*spent, failed(Cause.S3_THROTTLE, progress=41)).action == "restart"


def test_preemptions_have_a_budget_of_their_own() -> None:
    evicted = [failed(Cause.PREEMPTED_EVICTED, time=float(second)) for second in range(21)]
    assert after(*evicted[:20]).action == "restart"
    assert after(*evicted).exit_code == 74
    late = failed(Cause.PREEMPTED_EVICTED, time=6 * 3600.0 + 20.5)
    assert after(*evicted[:20], late).action == "restart"
    assert after(*evicted[:20], failed(Cause.PREEMPTED_EVICTED, progress=41)).spent == 1
    assert after(*evicted[:20], failed(Cause.S3_THROTTLE)).spent == 1


def test_pauses_double_up_to_the_cap() -> None:
    roots = [failed(Cause.S3_THROTTLE, quote=word) for word in ("a-", "b-", "c-", "d-", "e-")]
    assert [after(*roots[: count + 1]).pause for count in range(5)] == [0.0, 1.0, 2.0, 4.0, 8.0]
    patient = replace(LIMITS, max_same_failure=10_000, max_restarts=10_000)
    assert after(*roots * 300, limits=patient).pause == 10.0, "2.0 ** 1024 is no number"


def test_who_knows_better_raises_the_limit_of_an_unknown_cause() -> None:
    again = [failed(Cause.UNKNOWN)] * 3
    found = after(*again)
    assert (found.action, found.exit_code, found.spent, found.limit) == ("stop", 74, 3, 2)
    patient = replace(LIMITS, max_same_failure=10, max_restarts=20)
    assert decide(again[-1], again[:-1], patient).action == "restart"
