"""The same trigger for Argo Events: EventBus, EventSource and Sensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.objects import trigger_name
from argosy.steps.events.payload import MAX_EVENT_BYTES
from argosy.workflows.gang.pod import CONTAINER_SECURITY, POD_SECURITY
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.trigger import need_trigger
from argosy.workflows.trigger.deciding import API

SENSOR_ACCOUNT, SOURCE_ACCOUNT = "argosy-sensor", "argosy-source"
BUS = "argosy"
JETSTREAM = "2.10.10"
"""Of the versions that the controller of Argo Events 1.9 knows; ``latest`` would change under a running bus."""
EVENT, DEPENDENCY = "data", "announced"
WEBHOOK_PORT = 12000
_STARTS_PER_MINUTE = 60
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "sqs": {"jsonBody": True, "waitTimeSeconds": 20},
    "kafka": {"jsonBody": True},
    "pubSub": {"jsonBody": True},
    "azureQueueStorage": {"jsonBody": True},
    "azureServiceBus": {"jsonBody": True},
    "minio": {"events": ["s3:ObjectCreated:*"]},
}
_ANNOUNCED: Mapping[str, str] = {"calendar": "", "webhook": ".Input.body", "sns": ".Input.body"}
"""What of an event is handed on: not a request's headers, which hold the sender's token; of a clock's tick nothing."""


def argo_events_documents(run: TrainingRun) -> list[dict[str, Any]]:
    """EventBus (unless one is named), EventSource and Sensor; none for a trigger that no single object fires.

    Raises:
        InputError: the run has no trigger, or Argo Events has no such field of the event source.
    """
    trigger = need_trigger(run)
    if trigger.on != "marker" or not trigger.event_source:
        return []
    (kind, fields), *_ = trigger.event_source.items()
    bus = trigger.event_bus or BUS
    jetstream = {
        "version": JETSTREAM,
        "replicas": 3,
        "securityContext": dict(POD_SECURITY),
        "containerTemplate": {"securityContext": dict(CONTAINER_SECURITY)},
        "reloaderContainerTemplate": {"securityContext": dict(CONTAINER_SECURITY)},
        "metricsContainerTemplate": {"securityContext": dict(CONTAINER_SECURITY)},
    }
    own = [{"apiVersion": API, "kind": "EventBus", "metadata": {"name": bus}, "spec": {"jetstream": jetstream}}]
    _check_fields(kind, fields)
    source = _source(run, kind, fields, bus)

    return [*([] if trigger.event_bus else own), source, _sensor(run, kind, bus)]


def _source(run: TrainingRun, kind: str, fields: Mapping[str, Any], bus: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"eventBusName": bus, "template": _pods(SOURCE_ACCOUNT)}
    given = {**_DEFAULTS.get(kind, {}), **fields}
    if kind == "webhook":
        secret = {"name": f"{run.name}-webhook", "key": "token"}
        port = str(given.get("port", WEBHOOK_PORT))
        own = {"endpoint": f"/{run.name}", "method": "POST", "port": port, "authSecret": secret}
        given = {**own, **given, "maxPayloadSize": MAX_EVENT_BYTES}
        spec["service"] = {"ports": [{"port": int(port), "targetPort": int(port)}]}
    spec[kind] = {EVENT: given}
    return {"apiVersion": API, "kind": "EventSource", "metadata": {"name": trigger_name(run.name)}, "spec": spec}


def _sensor(run: TrainingRun, kind: str, bus: str) -> dict[str, Any]:
    name = trigger_name(run.name)
    announced = _ANNOUNCED.get(kind, ".Input")
    values = {"payload": "", "source": f"argo-events:{kind}"}
    workflow = {
        "apiVersion": API,
        "kind": "Workflow",
        "metadata": {"generateName": f"{name}-"},
        "spec": {
            "workflowTemplateRef": {"name": name},
            "arguments": {"parameters": [{"name": key, "value": value} for key, value in values.items()]},
        },
    }
    create: dict[str, Any] = {"operation": "create", "source": {"resource": workflow}}
    if announced:
        # In base64, so that nothing in it is a placeholder to Argo or a variable to the kubelet.
        source = {"dependencyName": DEPENDENCY, "dataTemplate": f"{{{{ {announced} | toJson | b64enc }}}}"}
        create["parameters"] = [{"src": source, "dest": "spec.arguments.parameters.0.value"}]
    trigger = {
        "template": {"name": "decide", "k8s": create},
        "atLeastOnce": True,
        "retryStrategy": {"steps": 8, "duration": "1s", "factor": 2, "jitter": 0.2},
        "rateLimit": {"unit": "Minute", "requestsPerUnit": _STARTS_PER_MINUTE},
        # What could not be handed on stands in the Sensor's log; the reconciler starts it.
        "dlqTrigger": {"template": {"name": "undelivered", "log": {"intervalSeconds": 1}}, "atLeastOnce": True},
    }
    dependency = {"name": DEPENDENCY, "eventSourceName": name, "eventName": EVENT}
    spec = {
        "eventBusName": bus,
        "template": _pods(SENSOR_ACCOUNT),
        "dependencies": [dependency],
        "triggers": [trigger],
    }
    return {"apiVersion": API, "kind": "Sensor", "metadata": {"name": name}, "spec": spec}


def _pods(account: str) -> dict[str, Any]:
    return {
        "serviceAccountName": account,
        "securityContext": dict(POD_SECURITY),
        "container": {"securityContext": dict(CONTAINER_SECURITY)},
    }


def _check_fields(kind: str, fields: Mapping[str, Any]) -> None:
    """Argo Events ignores what it does not know, so that a slip of the pen would be a source that never fires."""
    from hera.events import models

    types = {field.alias or name: field.annotation for name, field in models.EventSourceSpec.model_fields.items()}
    model: Any = models.WebhookContext if kind == "webhook" else _value_type(types[kind])
    known = {field.alias or name for name, field in model.model_fields.items()} | {"filter"}
    for name in fields:
        if name not in known:
            raise InputError(
                f"trigger.event_source.{kind}.{name}: Argo Events has no such field, and would ignore it; it has "
                f"{', '.join(sorted(known))}"
            )


def _value_type(annotation: Any) -> Any:
    """``V`` of ``dict[str, V] | None``."""
    mapping = next(each for each in get_args(annotation) if get_args(each))
    return get_args(mapping)[1]
