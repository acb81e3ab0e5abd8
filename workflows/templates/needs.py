"""What a template cannot do without; said before any YAML is written."""

from __future__ import annotations

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.dataset import Dataset
from argosy.workflows.spec.evaluation import Evaluation
from argosy.workflows.spec.run import TrainingRun


def need_dataset(run: TrainingRun, step: str) -> Dataset:
    """The dataset.

    Raises:
        InputError: there is none.
    """
    if run.dataset is None:
        raise InputError(f"dataset: is required by {step}(run); add [dataset], or leave {step} out")
    return run.dataset


def need_evaluation(run: TrainingRun, step: str) -> Evaluation:
    """The evaluation.

    Raises:
        InputError: there is none.
    """
    if run.evaluation is None:
        raise InputError(f"evaluation: is required by {step}(run); add [evaluation], or leave {step} out")
    return run.evaluation


def need_code(run: TrainingRun, code_digest: str) -> None:
    """Accept a digest exactly when the run has a code folder.

    Raises:
        InputError: the folder was not packed, or was packed although the code is in the image.
    """
    if run.code and not code_digest:
        raise InputError(
            f"code = {run.code!r}: the folder was not packed; pass argosy.workflows.code.pack(folder), "
            'or write code = "" when the code is in the image'
        )
    if code_digest and not run.code:
        raise InputError('code = "": the code is in the image, and an archive was given too; leave one out')
