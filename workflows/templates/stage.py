"""The stage step: bring the dataset where training reads it."""

from __future__ import annotations

from hera.workflows import Container

from argosy.steps.contract.arguments import BOOK_SECONDS, LONGEST_BOOK_SECONDS, StageArgs
from argosy.workflows.gang.cache import cache_arguments, cache_path, cache_volume
from argosy.workflows.spec.deadlines import Deadlines
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_dataset
from argosy.workflows.templates.retries import step_retries


def stage(run: TrainingRun) -> Container:
    """Template ``stage``.

    Inputs: ``dataset-digest``, ``run-id``. Outputs: ``plan-uri``, ``bytes``.

    Raises:
        InputError: the run has no dataset.
    """
    dataset = need_dataset(run, "stage")
    shared = dataset.staging == "shared"
    args = StageArgs(
        dataset_digest=given("dataset-digest"),
        mode=dataset.staging,
        layout=dataset.layout,
        path=cache_path(run) if shared else "",
        book_seconds=_book_seconds(run) if shared else BOOK_SECONDS,
        nnodes=run.gang.max_nnodes,
        verify=dataset.verify if dataset.staging == "stream" else "",
        **(cache_arguments(run) if shared else {}),
        **identity(run),
    )
    return step_container(
        run,
        "stage",
        args,
        retries=step_retries(),
        inputs=input_parameters("dataset-digest"),
        outputs=output_parameters("plan-uri", "bytes"),
        volumes=cache_volume(run) if shared else ([], []),
    )


def _book_seconds(run: TrainingRun) -> float:
    """Longer than usual where nodes may take longer to check in."""
    longer = run.deadlines.check_in_seconds - Deadlines().check_in_seconds
    return min(BOOK_SECONDS + max(longer, 0), LONGEST_BOOK_SECONDS)
