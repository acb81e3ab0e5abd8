"""The evaluate step: the user's script on one verified checkpoint."""

from __future__ import annotations

from typing import Any, Final

from hera.workflows import Container

from argosy.steps.contract.arguments import EvaluateArgs
from argosy.workflows.gang.cache import cache_arguments, cache_path, cache_volume
from argosy.workflows.spec.placeholders import filled_variables
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_code, need_evaluation
from argosy.workflows.templates.retries import step_retries

FOLDERS: Final = {
    "workspace": "/argosy/workspace",
    "checkpoint": "/argosy/checkpoint",
    "data": "/argosy/data",
    # An empty folder where Kubernetes would put the API token: Argo's own container has it, the user's script has not.
    "no-api-token": "/var/run/secrets/kubernetes.io/serviceaccount",
}


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
        **_cache_arguments(run),
        filled_variables=",".join(filled_variables(run)),
        timeout_seconds=evaluation.timeout_seconds,
        **identity(run),
    )
    resources = evaluation.resources
    # Data loaders hand tensors over in /dev/shm, which has 64 MiB in a pod that says nothing.
    shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": evaluation.shm_size}}
    volumes, mounts = cache_volume(run) if _is_cached(run) else ([], [])
    return step_container(
        run,
        "evaluate",
        args,
        retries=step_retries(),
        inputs=input_parameters("checkpoint-digest"),
        outputs=output_parameters("metric", "report-uri"),
        image=run.image,
        folders=FOLDERS,
        volumes=([shm, *volumes], [{"name": "shm", "mountPath": "/dev/shm"}, *mounts]),
        resources={"requests": resources.requests(), "limits": resources.limits()},
    )


def _is_cached(run: TrainingRun) -> bool:
    """Whether the held-out data is kept in the dataset's cache.

    Only on a claim that may be written: a host path need not exist where this pod runs, on a volume made for the pod
    nothing lies, and into one that others fill nobody would have put these data.
    """
    cache = run.dataset.cache if run.dataset is not None else None
    named = run.evaluation is not None and run.evaluation.dataset_uri
    return bool(named) and cache is not None and bool(cache.claim) and not cache.read_only


def _cache_arguments(run: TrainingRun) -> dict[str, Any]:
    return {"cache_path": cache_path(run), **cache_arguments(run)} if _is_cached(run) else {}
