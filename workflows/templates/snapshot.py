"""The snapshot step: freeze the dataset."""

from __future__ import annotations

from hera.workflows import Container

from argosy.steps.contract.arguments import SnapshotArgs
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_dataset
from argosy.workflows.templates.retries import step_retries


def snapshot(run: TrainingRun) -> Container:
    """Template ``snapshot``.

    Inputs: ``dataset-uri`` (default: ``dataset.uri``), ``run-id``. Outputs: ``dataset-digest``,
    ``dataset-manifest-uri``, ``objects``, ``bytes``.

    Raises:
        InputError: the run has no dataset.
    """
    dataset = need_dataset(run, "snapshot")
    inputs = input_parameters("dataset-uri")
    inputs[-1].default = dataset.uri
    return step_container(
        run,
        "snapshot",
        SnapshotArgs(
            dataset_uri=given("dataset-uri"),
            dataset_manifest=dataset.manifest,
            version=dataset.version,
            **identity(run),
        ),
        retries=step_retries(),
        inputs=inputs,
        outputs=output_parameters("dataset-digest", "dataset-manifest-uri", "objects", "bytes"),
    )
