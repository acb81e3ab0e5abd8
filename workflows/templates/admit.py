"""The admit step: decide whether this workflow runs."""

from __future__ import annotations

from hera.workflows import Container

from argosy.steps.contract.arguments import AdmitArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import (
    decision_parameter,
    given,
    identity,
    input_parameters,
    output_parameters,
)
from argosy.workflows.templates.retries import step_retries


def admit(run: TrainingRun, code_digest: str = "") -> Container:
    """Template ``admit``.

    Inputs: ``dataset-digest``, ``event``, ``force``, ``run-id``. Outputs: ``decision`` (``start`` or
    ``duplicate``), ``reason``, ``key``. ``code_digest`` makes the same description with other code another run.
    """
    args = AdmitArgs(
        run_digest=run.digest(code_digest),
        dataset_digest=given("dataset-digest"),
        event=given("event"),
        force=given("force"),
        **identity(run),
    )
    return step_container(
        run,
        "admit",
        args,
        retries=step_retries(),
        inputs=input_parameters("dataset-digest", "event", "force"),
        outputs=[decision_parameter(), *output_parameters("reason", "key")],
    )
