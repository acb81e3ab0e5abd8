"""What decides on a cluster: a WorkflowTemplate of one step, asked by a Sensor, Argo's own events, or the clock."""

from __future__ import annotations

from typing import Any

from hera.workflows import Parameter, WorkflowTemplate
from hera.workflows.models import PodGC, TTLStrategy

from argosy.steps.contract.objects import trigger_name
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given
from argosy.workflows.templates.retries import step_retries
from argosy.workflows.templates.trigger import need_trigger, trigger_args

API = "argoproj.io/v1alpha1"
ACCOUNT = "argosy-trigger"
RECONCILE_MARKERS, RECONCILE_OTHERS = "*/10 * * * *", "* * * * *"
_KEPT_SECONDS = 24 * 3600
_EMPTY = {"payload": "", "source": "reconciler"}


def deciding_documents(run: TrainingRun) -> list[dict[str, Any]]:
    """The WorkflowTemplate that decides, the CronWorkflow that finds what an event lost, the WorkflowEventBinding.

    Raises:
        InputError: the run has no trigger.
    """
    trigger, name = need_trigger(run), trigger_name(run.name)
    usual = RECONCILE_MARKERS if trigger.on == "marker" else RECONCILE_OTHERS
    cron = {
        "schedules": [trigger.schedule or usual],
        "timezone": "UTC",
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": 300,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 3,
        "workflowSpec": {"workflowTemplateRef": {"name": name}},
    }
    binding = {
        "event": {"selector": f'discriminator == "{run.name}"'},
        "submit": {
            "workflowTemplateRef": {"name": name},
            "arguments": {
                "parameters": [
                    # In base64, so that nothing in it is a placeholder to Argo or a variable to the kubelet.
                    # Argo's server evaluates by expr alone: the sprig of its templates is unknown there.
                    {"name": "payload", "valueFrom": {"event": "toBase64(toJSON(payload))"}},
                    {"name": "source", "valueFrom": {"event": '"argo-server"'}},
                ]
            },
        },
    }
    return [
        _template(run, name),
        {"apiVersion": API, "kind": "CronWorkflow", "metadata": {"name": name}, "spec": cron},
        {"apiVersion": API, "kind": "WorkflowEventBinding", "metadata": {"name": name}, "spec": binding},
    ]


def _template(run: TrainingRun, name: str) -> dict[str, Any]:
    with WorkflowTemplate(
        name=name,
        entrypoint="decide",
        arguments=[Parameter(name=key, value=value) for key, value in _EMPTY.items()],
        service_account_name=ACCOUNT,
        image_pull_secrets=list(run.gang.pod.image_pull_secrets) or None,
        pod_gc=PodGC(strategy="OnWorkflowSuccess"),
        ttl_strategy=TTLStrategy(seconds_after_completion=_KEPT_SECONDS),
    ) as template:
        args = trigger_args(run, payload=given("payload"), source=given("source"))
        inputs = [Parameter(name=key, value=f"{{{{workflow.parameters.{key}}}}}") for key in _EMPTY]
        container = step_container(run, "decide", args, retries=step_retries(), inputs=inputs)
        container.service_account_name = None
    document: dict[str, Any] = template.build().model_dump(exclude_none=True, by_alias=True)
    return document
