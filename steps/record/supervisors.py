"""The supervisors of a run that were lost: each is a try of the train step that ended without a verdict."""

from __future__ import annotations

from itertools import pairwise

from argosy.steps.contract.injection import SUPERVISOR_KILL
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.wording import duration


def supervisors_lost(record: RunRecord) -> list[str]:
    """Each supervisor that ended without a verdict and was started again: most often nothing else tells of it."""
    tries = [node for node in record.nodes if node.template == "train"]
    told = []
    for lost, after in pairwise(tries):
        if lost.phase in ("Failed", "Error") and not lost.cause and lost.ended is not None:
            began, code = lost.began or lost.ended, lost.exit_code
            kills = [each.time for each in record.injected if each.fault == SUPERVISOR_KILL]
            # Times of the engine are whole seconds.
            on_purpose = any(began <= time <= lost.ended + 1 for time in kills)
            how = f"{'no exit code' if code is None else f'exit code {code}'}{', on purpose' if on_purpose else ''}"
            told.append(
                f"The supervisor was lost after {duration(lost.ended - began)} ({how}); {after.name} took over."
            )
    return told
