"""The exit handler: release, record, report, notify."""

from __future__ import annotations

from typing import Any, Final

from hera.workflows import Container

from argosy.steps.contract.arguments import FinalizeArgs
from argosy.steps.contract.env import WEBHOOK_URL
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import identity, input_parameters
from argosy.workflows.templates.retries import step_retries

FINALIZE_SECONDS: Final = 900
WEBHOOK_KEY: Final = "url"


def finalize(run: TrainingRun) -> Container:
    """Template ``finalize``, for ``onExit``: Argo hands an exit handler the workflow's own parameters.

    Inputs: ``run-id``. Outputs: none.
    """
    secret = run.notify.webhook_secret
    source = {"secretKeyRef": {"name": secret, "key": WEBHOOK_KEY}}
    webhook: list[dict[str, Any]] = [{"name": WEBHOOK_URL, "valueFrom": source}] if secret else []
    return step_container(
        run,
        "finalize",
        FinalizeArgs(status="{{workflow.status}}", webhook=bool(secret), **identity(run)),
        retries=step_retries(),
        inputs=input_parameters(),
        env=webhook,
        deadline_seconds=FINALIZE_SECONDS,
    )
