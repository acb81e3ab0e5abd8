"""The arguments of the step that decides what new data start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from argosy.steps.contract.argv import StepArgs, option


@dataclass(frozen=True, kw_only=True)
class TriggerArgs(StepArgs):
    """Decide what an announcement or a look at the data starts, and start it, once.

    With ``payload`` the objects that it names are looked at, without one all of the dataset.

    Example: ``python -m argosy.steps.trigger --store-uri=s3://bucket/runs --name=gpt --dataset-uri=s3://bucket/corpus``
    """

    MODULE: ClassVar[str] = "argosy.steps.trigger"
    store_uri: str = option("root of the store")
    name: str = option("the run's name")
    dataset_uri: str = option("prefix below which new data appear")
    payload: str = option("what the bucket's service sent: JSON, or the same in base64; empty: look", default="")
    source: str = option("who announced it, for the record of the decision", default="reconciler")
    on: str = option("marker, quiet, count, bytes or schedule", default="marker")
    marker: tuple[str, ...] = option("end of the name of an object that says: complete; repeat", default=())
    prefix: str = option("only objects whose key below the dataset's uri begins so", default="")
    suffix: str = option("only objects whose key ends so", default="")
    quiet_seconds: int = option("quiet: nothing changed for so long, seconds", default=300)
    new_objects: int = option("count: so many objects are new since the last start", default=0)
    new_bytes: int = option("bytes: so many bytes are new since the last start", default=0)
    max_starts_per_hour: int = option("more wait", default=4)
    while_running: str = option("queue, skip or replace", default="queue")
    continue_from: str = option("promotion pointer that a new run goes on from; empty: it begins anew", default="")
    backfill: bool = option("start what was there before the trigger, too", default=False)
