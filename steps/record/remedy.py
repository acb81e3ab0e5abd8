"""What a person does about a run that failed or was refused."""

from __future__ import annotations

import re
import shlex

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.restart_rule import RestartRule
from argosy.steps.record.advice import advice_for
from argosy.steps.record.facts import RunRecord, StepNode
from argosy.steps.record.story import failed_step, stopped
from argosy.steps.record.wording import count

FROM_PYTHON = "TrainingRun(...).run()"
"""In a record the command of a run that was started from Python, where no file describes it."""
_REFUSED = re.compile(r" is forbidden: | is invalid: |denied the request")
"""How an API server says that it makes no such pod."""
_BESIDE = re.compile(r"failed quota: .*must specify .*\b(init|wait)\b")
_LIMIT = re.compile(r"(longer than the specified|exceeded its|exceeded workflow) deadline")
_NO_ARGOSY = re.compile(r"No module named 'argosy|exec: \"python3?\": executable file not found")


def what_to_do(record: RunRecord) -> list[str]:
    """Paragraphs, one line each; a quoted line is indented. None for a run that did what it should."""
    if record.refused:
        where = f"evaluation.floor or evaluation.baseline in {_file(record)}"
        return [f"What to do: train longer or better, or change {where}."]
    if record.phase not in ("Failed", "Error"):
        return []
    told = []
    step = failed_step(record)
    if step is not None and stopped(record):
        told.append(f"The workflow was stopped at the step {step.name}.")
    elif step is not None:
        said = f" for {named}" if (named := step.cause) else f": {step.message}" if step.message else ""
        code = "" if step.exit_code is None else f", with exit code {step.exit_code}"
        told.append(f"The workflow failed at the step {step.name}{code}{said}.")
        if step.quote:
            told.append(f"    | {step.quote}")
    last = record.restarts[-1] if record.restarts else None
    cause = (step.cause if step is not None else "") or record.train_cause or (last.cause if last else "")
    # A workflow that was stopped between two steps and retried ends without a word of Argo's.
    between = bool(record.nodes) and step is None and not record.message
    cause = cause or ("sigterm" if stopped(record) or between else "")
    advice = advice_for(cause, last.quote if last else "")[1] if cause else _unnamed(step)
    wrong = step is not None and step.exit_code == ExitCode.USAGE
    if record.command and cause == Cause.IMPORT_ERROR.value:  # on this machine, where there is no image
        advice = (
            "Install the module into the environment that argosy was started from, or add it to the code folder; on a "
            "cluster the image needs it too, in a version that matches torch and CUDA."
        )
    if record.name and wrong and step is not None and not step.message.endswith("Error (exit code 2)"):
        advice = (
            "mend the value that this line names, in run.toml, in the Secret of its variables, or in the environment."
        )
    if not (cause or step is not None or record.nodes):
        advice = (
            "no step of it began: mend what Argo says; `argo lint FILE -n NAMESPACE` says it of a file beforehand."
            if record.namespace and record.message
            else "the store does not say at which step it failed; its Workflow does, as long as it is there."
        )
    if not record.checkpoints and not record.outline:
        advice = advice.replace("Go on from the last checkpoint", "Nothing was saved; start it again")
        advice = advice.partition(" New code is a new run, which begins from scratch: to go on")[0]
    again = "argosy run run.toml --run-id RUN_ID"
    advice = _again(record).join(part.replace("run.toml", _file(record)) for part in advice.split(again))
    if record.namespace:
        advice = advice.replace("-n NAMESPACE", f"-n {record.namespace}")
    return [*told, f"What to do: {advice}", *_budget(record, cause)]


def _unnamed(step: StepNode | None) -> str:
    if step is not None and _BESIDE.search(step.message):
        return (
            "a quota asks every container for a limit, and Argo's own have none: whoever administers Argo sets "
            "`executor.resources` in its controller's ConfigMap, or the namespace a LimitRange with defaults."
        )
    if step is not None and step.exit_code is None and _REFUSED.search(step.message):
        return (
            "the cluster made no pod of it, so it has no log: mend what the message names; `argosy doctor run.toml` "
            "shows it such pods without starting any."
        )
    if step is not None and _LIMIT.search(step.message):
        return (
            "a time limit of the Workflow or of this step (activeDeadlineSeconds, which the cluster's Argo may set for "
            "all) ended it: raise that. Go on from the last checkpoint: `argosy run run.toml --run-id RUN_ID`."
        )
    if step is not None and "workflowtaskresults" in step.message:
        return "the run's account may not do what Argo needs: `argosy install -n NAMESPACE --apply`."
    if step is not None and _NO_ARGOSY.search(f"{step.message} {step.quote}"):
        return (
            "the image of this step has no argosy: see step_image in run.toml, or image where it was the evaluation's."
        )
    return "read the log of the step named above; the line before its end says why."


def _budget(record: RunRecord, cause: str) -> list[str]:
    """Which limit ended it, and how it is raised."""
    ended = next(((spent, limit) for name, spent, limit in record.budgets if name == cause and spent > limit > 0), None)
    rule = Cause(cause).restart if ended is not None else RestartRule.ONCE
    if ended is None or rule == RestartRule.ONCE or record.train_exit_code is None:
        return []  # after some causes there is one restart, whatever retry says
    again = f"; then `{_again(record)}` goes on" if record.checkpoints else ""
    text = f"It gave up after {count(ended[0], 'such failure')} without progress in between, {ended[1]} allowed"
    counted = "retry.max_same_failure or retry.max_restarts"
    field = "retry.max_preemptions" if rule == RestartRule.UNCOUNTED else counted
    return [f"{text}: raise {field} in {_file(record)} if they were bad luck{again}."]


def _again(record: RunRecord) -> str:
    """A run without a command was submitted to a cluster."""
    named = record.run_id or "RUN_ID"
    if record.command == FROM_PYTHON:
        return f"TrainingRun(...).run(parameters={{'run-id': '{named}'}})"
    if record.command:
        return f"{record.command} --run-id {named}"
    return f"argosy submit run.toml -n {record.namespace or 'NAMESPACE'} -p run-id={named}"


def _file(record: RunRecord) -> str:
    if record.command == FROM_PYTHON:
        return "the TrainingRun"
    return shlex.split(record.command)[2] if record.command else "run.toml"
