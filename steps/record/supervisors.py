"""The supervisors of a run that did not live to see its end: each is a try of the train step that another followed."""

from __future__ import annotations

from itertools import pairwise

from argosy.steps.contract.injection import SUPERVISOR_KILL
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.wording import duration


def supervisors_lost(record: RunRecord) -> list[str]:
    """Each supervisor that was started again, and of which nothing else tells: it ended without a verdict, or for
    what befell itself and no rank, as a store that takes its keys no more.
    """
    tries = [node for node in record.nodes if node.template == "train"]
    told = []
    causes = {each.cause for each in record.restarts}
    for lost, after in pairwise(tries):
        if lost.phase not in ("Failed", "Error") or lost.ended is None:
            continue
        if lost.cause and lost.cause not in causes:
            told.append(f"The supervisor ended: {lost.message.rstrip('.')}; {after.name} took over.")
        elif not lost.cause:
            began, code = lost.began or lost.ended, lost.exit_code
            kills = [each.time for each in record.injected if each.fault == SUPERVISOR_KILL]
            # Times of the engine are whole seconds.
            on_purpose = any(began <= time <= lost.ended + 1 for time in kills)
            how = f"{'no exit code' if code is None else f'exit code {code}'}{', on purpose' if on_purpose else ''}"
            if lost.message and "exit code" not in lost.message:  # the node's word: evicted, and for want of what
                how = lost.message.rstrip(". ")
            told.append(
                f"The supervisor was lost after {duration(lost.ended - began)} ({how}); {after.name} took over."
            )
    return told
