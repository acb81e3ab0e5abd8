"""A run's trigger, as the arguments of the step that decides."""

from __future__ import annotations

from typing import Any

from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.spec.trigger import Trigger
from argosy.workflows.templates.needs import need_dataset


def need_trigger(run: TrainingRun) -> Trigger:
    """The run's trigger.

    Raises:
        InputError: it has none.
    """
    from argosy.steps.contract.errors import InputError

    if run.trigger is None:
        raise InputError(f'{run.name}: the run has no [trigger]; add one, for example [trigger] with on = "marker"')
    return run.trigger


def trigger_args(run: TrainingRun, **more: Any) -> TriggerArgs:
    """What the step has to know; ``more`` are its payload and source.

    Raises:
        InputError: the run has no trigger.
    """
    trigger = need_trigger(run)
    return TriggerArgs(
        store_uri=run.storage.uri,
        name=run.name,
        dataset_uri=need_dataset(run, "trigger").uri,
        on=trigger.on,
        marker=trigger.marker,
        prefix=trigger.prefix,
        suffix=trigger.suffix,
        quiet_seconds=trigger.quiet_seconds,
        new_objects=trigger.new_objects,
        new_bytes=trigger.new_bytes,
        max_starts_per_hour=trigger.max_starts_per_hour,
        while_running=trigger.while_running,
        continue_from=trigger.continue_from,
        backfill=trigger.backfill,
        **more,
    )
