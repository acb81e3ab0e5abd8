"""The evaluate step: the user's script on one verified checkpoint."""

from __future__ import annotations

from typing import Final

from hera.workflows import Container

from argosy.steps.contract.arguments import EvaluateArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_code, need_evaluation
from argosy.workflows.templates.retries import step_retries

FOLDERS: Final = {"workspace": "/argosy/workspace", "checkpoint": "/argosy/checkpoint", "data": "/argosy/data"}


def evaluate(run: TrainingRun, code_digest: str = "") -> Container:
    """Template ``evaluate``.

    Inputs: ``checkpoint-digest``, ``run-id``. Outputs: ``metric`` (the number), ``report-uri``. ``code_digest`` as
    for :func:`argosy.workflows.templates.train.train`.

    Raises:
        InputError: the run has no evaluation, or the code folder was not packed.
    """
    evaluation = need_evaluation(run, "evaluate")
    need_code(run, code_digest)
    args = EvaluateArgs(
        checkpoint_digest=given("checkpoint-digest"),
        script=evaluation.script,
        module=evaluation.module,
        arg=evaluation.args,
        metric=evaluation.metric,
        code_digest=code_digest,
        workdir=FOLDERS["workspace"],
        checkpoint_path=FOLDERS["checkpoint"],
        dataset_uri=evaluation.dataset_uri,
        data_path=FOLDERS["data"],
        timeout_seconds=evaluation.timeout_seconds,
        **identity(run),
    )
    resources = evaluation.resources
    # Data loaders hand tensors over in /dev/shm, which has 64 MiB in a pod that says nothing.
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": evaluation.shm_size}}
    return step_container(
        run,
        "evaluate",
        args,
        retries=step_retries(),
        inputs=input_parameters("checkpoint-digest"),
        outputs=output_parameters("metric", "report-uri"),
        image=run.image,
        folders=FOLDERS,
        volumes=([shm], [{"name": "shm", "mountPath": "/dev/shm"}]),
        resources={"requests": resources.requests(), "limits": resources.limits()},
    )
