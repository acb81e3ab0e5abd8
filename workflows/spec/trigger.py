"""What starts the run by itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from argosy.steps.contract.cron import check_cron
from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.pod import KubeObject
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import KubeName, Line, WholeNumber

SOURCES = (
    "azureEventsHub",
    "azureQueueStorage",
    "azureServiceBus",
    "calendar",
    "kafka",
    "minio",
    "pubSub",
    "sns",
    "sqs",
    "webhook",
)
_NEEDS = {"count": "new_objects", "bytes": "new_bytes", "schedule": "schedule"}


def _check_schedule(text: str) -> str:
    try:
        return check_cron(text) if text else text
    except InputError as error:
        raise Refusal(str(error).removeprefix(f"schedule = {text!r}: "), 'write for example "0 2 * * *"') from None


def _check_source(source: dict[str, Any]) -> dict[str, Any]:
    if len(source) > 1 or any(name not in SOURCES or not isinstance(source[name], dict) for name in source):
        raise Refusal(f"is not one of {', '.join(SOURCES)} with its fields", 'write for example sqs = { queue = "x" }')
    return source


class Trigger(Table):
    """``[trigger]``: needs ``[dataset]``; ``argosy watch`` follows it, ``compile --trigger`` renders it."""

    on: Literal["marker", "quiet", "count", "bytes", "schedule"] = Field(
        default="marker",
        description="marker: an object that says that its folder is complete; quiet: nothing has changed for "
        "quiet_seconds; count, bytes: the dataset has grown by so much since the last start; schedule: at these times, "
        "if there is anything new.",
    )
    marker: tuple[Annotated[Line, Field(min_length=1)], ...] = Field(
        default=("_SUCCESS", "_READY", ".manifest.json"),
        description="Names of markers; one that begins with a dot is the end of a name.",
        min_length=1,
    )
    prefix: Line = Field(
        default="", description="Only objects whose key below dataset.uri begins so. marker: of the marker."
    )
    suffix: Line = Field(default="", description="Only objects whose key ends so.")
    quiet_seconds: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=300, description="quiet: how long nothing may have changed, seconds."
    )
    new_objects: Annotated[WholeNumber, Field(ge=0)] = Field(default=0, description="count: by so many objects.")
    new_bytes: Annotated[WholeNumber, Field(ge=0)] = Field(default=0, description="bytes: by so many bytes.")
    schedule: Annotated[Line, AfterValidator(_check_schedule)] = Field(
        default="", description="schedule: five fields of cron, UTC."
    )
    max_starts_per_hour: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=4, description="How many starts within any hour, a count; more wait."
    )
    while_running: Literal["queue", "skip", "replace"] = Field(
        default="queue",
        description="While a run of this name trains, new data queue: start when it has ended; skip: start nothing, "
        "for good; replace: ask it to end.",
    )
    continue_from: KubeName = Field(
        default="",
        description="Promotion pointer whose checkpoint a new run goes on from, as production. Empty: it begins anew.",
    )
    backfill: bool = Field(default=False, description="Start what was there before the trigger, too.")
    poll_seconds: Annotated[WholeNumber, Field(ge=1)] = Field(
        default=60, description="Time between two looks of argosy watch, seconds per thousand objects."
    )
    event_source: Annotated[KubeObject, AfterValidator(_check_source)] = Field(
        default={},
        description="One EventSource of Argo Events: its kind and its fields as Argo Events has them, for example "
        '[trigger.event_source.sqs] queue = "datasets", region = "eu-west-1". Empty: Argo Events is not used.',
    )
    event_bus: KubeName = Field(
        default="", description="EventBus of the namespace to use. Empty: one named argosy is made (JetStream)."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        for on, field in _NEEDS.items():
            given = getattr(self, field)
            if (self.on == on) != bool(given):
                wrong = f"has no meaning when on is {self.on}" if given else f"is needed when on is {on}"
                raise Refusal(wrong, f'set it together with on = "{on}"', field=field, value=given)
        if self.on == "marker" and self.suffix:
            raise Refusal("has no meaning when on is marker", "name the marker", field="suffix", value=self.suffix)
        return self
