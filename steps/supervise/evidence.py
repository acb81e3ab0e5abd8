"""Why a gang failed, from what its pods wrote last and what the cluster says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.logs import last_lines
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.gang.host import LOST_REASONS, PodState
from argosy.steps.gang.pod_states import Outcome
from argosy.steps.verdict import PodFact, Verdict, judge

TAIL_LINES = 200
_SAME_SECOND = 1.0
"""The API's times are whole seconds."""


def failed(states: Sequence[PodState]) -> list[PodState]:
    """Pods that ended badly, are gone, or are on a node that does not answer."""
    return [state for state in states if state.phase == "Failed" or state.reason in LOST_REASONS or state.deleted]


def verdict_of(
    api: Api, name: str, states: Sequence[PodState], containers: dict[str, str], outcome: Outcome | None
) -> Verdict:
    """The judge's word on a gang that failed; ``containers`` tells which one of each pod trains.

    Kubernetes deletes the other pods of a Job when one fails: such a deletion explains nothing, unless the pod that
    failed only says that it lost a peer.
    """
    bad = failed(states)
    own = [state for state in bad if not state.deleted or 0 < state.time < state.deleted - _SAME_SECOND]
    endings = [_ending(api, number, state, containers) for number, state in enumerate(states) if state in own]
    first = min((state.time for state in own if state.phase == "Failed"), default=float("inf"))
    before = [state for state in bad if state not in own and state.deleted < first]
    told = [*(replace(state, deleted=0.0) for state in own), *before]  # that they were swept away later says nothing
    found = judge(endings, [], _facts(name, told, outcome))
    others = [state for state in bad if state not in own and state not in before]
    if found.cause == Cause.PEER_LOST and others:
        found = judge(endings, [], _facts(name, [*told, *others], outcome))
    rank = f"rank {found.rank} "
    return replace(found, quote=found.quote.replace(rank, f"pod {found.pod} ", 1), rank=None)


def _facts(name: str, states: Sequence[PodState], outcome: Outcome | None) -> list[PodFact]:
    facts = [
        PodFact(
            name=state.name,
            node=state.node,
            phase=state.phase,
            reason=state.reason or ("Deleted" if state.deleted else ""),
            message=state.message or ("the pod was deleted while it ran" if state.deleted else ""),
            exit_code=state.exit_code,
            signal=state.signal,
            time=state.deleted or state.time,
        )
        for state in states
    ]
    if outcome is not None and not outcome.succeeded and not states:
        facts.append(PodFact(name=name, reason=outcome.reason, message=outcome.message))
    return facts


def _ending(api: Api, number: int, state: PodState, containers: dict[str, str]) -> Ending:
    return Ending(
        rank=number,
        time=state.time,
        exit_code=None if state.signal is not None else state.exit_code,
        signal=state.signal,
        stopped=state.phase != "Failed",
        tail=last_lines(api, state.name, containers.get(state.name, "main"), TAIL_LINES),
        pod=state.name,
        node=state.node,
    )
