"""A record as the JSON object that ``--json`` prints. Keys are public API, frozen by a test."""

from __future__ import annotations

from typing import Any

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.restart import Restart
from argosy.steps.record.slow_ranks import SlowRank
from argosy.steps.record.spares import TakeOver
from argosy.steps.record.story import outcome
from argosy.steps.record.transport import Transport, latest_transports
from argosy.steps.record.wording import clock


def summary(record: RunRecord, report: str) -> dict[str, Any]:
    """The object; ``report`` is the path of the HTML report, "" if none was written.

    A fact that is not known is null, a digest that does not exist "". One attempt is one start of the agents.
    """
    evaluation, promotion, goodput = record.evaluation, record.promotion, record.goodput
    streaming = record.streaming
    return {
        "phase": record.phase if record.done else outcome(record)[0],
        "message": record.message,
        "interrupted": record.interrupted,
        "silent_since": None if record.silent_since is None else clock(record.silent_since),
        "unwritten": record.unwritten,
        "run_id": record.run_id,
        "name": record.name,
        "workflow": record.workflow,
        "yaml_sha256": record.yaml_sha256,
        "store_uri": record.store_uri,
        "attempts": attempts(record),
        "last_step": record.last_step,
        "checkpoint_digest": record.checkpoint_digest,
        "evaluated_digest": evaluation.checkpoint_digest if evaluation else "",
        "promoted_digest": promotion.digest if promotion else "",
        "metric": evaluation.value if evaluation else None,
        "metric_name": evaluation.metric if evaluation else "",
        "gate": {"decision": record.gate.decision, "reason": record.gate.reason} if record.gate else None,
        "admission": (
            {"decision": record.admission.decision, "reason": record.admission.reason} if record.admission else None
        ),
        "goodput": round(goodput.ratio, 4) if goodput else None,
        "transport": [_transport(each) for each in latest_transports(record.transports)],
        "lost_steps": goodput.lost_steps if goodput else 0,
        "waited": (
            {
                "queued_seconds": round(record.waiting.queued_seconds, 3),
                "held_node_seconds": round(record.waiting.held_node_seconds, 3),
            }
            if record.waiting
            else None
        ),
        "slow_ranks": [_slow_rank(each) for each in record.slow_ranks],
        "spares": {
            "ready": list(record.spares.ready),
            "preparing": list(record.spares.coming),
            "took_over": [_take_over(each) for each in record.spares.take_overs],
        },
        "streamed": (
            {
                "bytes": streaming.bytes,
                "fetched_bytes": streaming.fetched_bytes,
                "requests": streaming.requests,
                "refetched": streaming.refetched,
                "waited_seconds": round(streaming.waited_seconds, 3),
            }
            if streaming
            else None
        ),
        "report": report,
    }


def _transport(each: Transport) -> dict[str, Any]:
    return {"node": each.node, "state": each.state, "sentence": each.sentence, "remedy": each.remedy or None}


def _slow_rank(each: SlowRank) -> dict[str, Any]:
    return {
        "rank": each.rank,
        "node": each.node or None,
        "gang": each.attempt,
        "restart": each.restart,
        "step": each.step,
        "score": each.score,
        "seconds": each.seconds,
        "others_seconds": each.others,
    }


def _take_over(each: TakeOver) -> dict[str, Any]:
    where = {"gang": each.attempt, "restart": each.restart, "node_rank": each.node_rank}
    return {**where, "node": each.node, "from_node": each.from_node or None}


def attempts(record: RunRecord) -> list[dict[str, Any]]:
    """All that was tried, in order; also in the summary that the step ``finalize`` leaves and sends.

    ``attempt`` counts as the report does; null for a gang that never became whole.
    """
    numbers = {id(each): number for number, each in enumerate(record.restarts, 1)}
    return [{"attempt": numbers.get(id(each)), **_attempt(each)} for each in record.attempts]


def _attempt(each: Restart) -> dict[str, Any]:
    return {
        "gang": each.attempt,
        "restart": each.restart,
        "cause": each.cause or None,
        "signal": each.signal,
        "exit_code": each.exit_code,
        "node": each.node or None,
        "rank": each.rank,
        "restored_step": each.restored_step,
        "last_step": each.last_step,
        "quote": each.quote or None,
    }
