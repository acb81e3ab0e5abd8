"""``{data}`` and the like in arguments and variables: refused where nobody would replace them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from argosy.steps.contract.placeholders import VARIABLES, fill, named
from argosy.workflows.spec.refusal import Refusal, suggestion

if TYPE_CHECKING:
    from argosy.workflows.spec.run import TrainingRun

RESUMING: Final = {
    "newest": "the file, or the folder below path, that was written last; {newest:GLOB}: of the files like GLOB",
    "path": "the only file, or path",
    "step": "the number in the newest checkpoint's name, or else the commit's step; {step:GLOB}: at GLOB's last *",
}
"""Words of ``checkpoint.resume_args`` besides."""
_BATCH: Final = ("micro_batch_size", "accumulation_steps", "effective_batch_size", "learning_rate")
_ESCAPE: Final = "a backslash before the brace keeps it as it is"


def check_placeholders(run: TrainingRun) -> None:
    """Accept a run in which every word in braces stands for something.

    Raises:
        Refusal: one is unknown, or has no value in this run.
    """
    training = absent_in_training(run)
    for place, text in enumerate(run.args):
        _check(f"args.{place}", text, training)
    for name, text in run.env.items():
        _check(f"env.{name}", text, training)
    for place, text in enumerate(run.checkpoint.resume_args):
        _check(f"checkpoint.resume_args.{place}", text, training, tuple(RESUMING))
    if run.evaluation is not None:
        held_out = _absent_in_evaluation(bool(run.evaluation.dataset_uri))
        for place, text in enumerate(run.evaluation.args):
            _check(f"evaluation.args.{place}", text, held_out)


def filled_variables(run: TrainingRun) -> list[str]:
    """Names in ``[env]`` whose values the pod has to complete."""
    return [name for name, text in run.env.items() if named(text) or fill(text, {}) != text]


def _check(field: str, text: str, absent: dict[str, str], more: tuple[str, ...] = ()) -> None:
    for word in named(text):
        shown = f"{{{word}}}"
        if word in absent:
            raise Refusal(f"{shown} has no value in this run", absent[word], field=field, value=text)
        if word not in VARIABLES and word.partition(":")[0] not in more:
            remedy = f"{suggestion(word, [*more, *VARIABLES], 'words')}; {_ESCAPE}"
            raise Refusal(f"{shown} stands for nothing", remedy, field=field, value=text)


def absent_in_training(run: TrainingRun) -> dict[str, str]:
    """Words that have no value in the arguments of its script, and what to do instead."""
    absent = {"metrics": "only an evaluation script writes metrics; remove it"}
    if run.dataset is None:
        absent |= dict.fromkeys(("data", "data_uri", "data_digest"), "add [dataset] with its uri, or write the path")
    elif run.dataset.staging == "stream":
        absent["data"] = 'staging = "stream" leaves no files: write {data_uri}, or another staging'
    if run.checkpoint.mode != "opaque":
        absent["checkpoint"] = 'argosy.Checkpointer needs no folder: remove it, or write checkpoint.mode = "opaque"'
    if run.batch is None:
        absent |= dict.fromkeys(_BATCH, "add [batch], or write the number")
    elif run.batch.base_learning_rate is None:
        absent["learning_rate"] = "add batch.base_learning_rate and base_batch_size, or write the number"
    return absent


def _absent_in_evaluation(held_out: bool) -> dict[str, str]:
    absent = dict.fromkeys((*_BATCH, "data_digest"), "an evaluation is not given it; write the value")
    if not held_out:
        absent |= dict.fromkeys(("data", "data_uri"), "add evaluation.dataset_uri, or write the path")
    return absent


def placeholder_list(*, evaluation: bool = False) -> str:
    """What may stand in arguments and variables, a line each, for ``argosy explain-config``."""
    left = _absent_in_evaluation(True) if evaluation else {"metrics": ""}
    known = {word: pair for word, pair in VARIABLES.items() if word not in left}
    width = max(len(word) for word in known) + 2
    wide = max(len(variable) for variable, _ in known.values())
    lines = [f"  {f'{{{word}}}':<{width}}  ${variable:<{wide}}  {text}" for word, (variable, text) in known.items()]
    return "\n".join(["The script finds these in its environment; a word in braces is replaced in the pod:", *lines])
