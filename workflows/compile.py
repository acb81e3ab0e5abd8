"""From a run to ONE self-contained Workflow: pure, deterministic, readable YAML.

snapshot -> admit -> stage -> train -> evaluate -> gate -> promote; on exit: finalize. Without a dataset there is no
snapshot and no stage, without an evaluation no evaluate, gate and promote. A duplicate event and a refused
checkpoint skip what follows; the Workflow succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from hera.workflows import DAG, Container, Parameter, Task, Workflow, WorkflowTemplate
from hera.workflows.models import Metadata, PodGC, TTLStrategy, WorkflowMetadata

from argosy.steps.contract.objects import RUN_LABEL
from argosy.workflows import templates
from argosy.workflows.code import CodeArchive
from argosy.workflows.factoring import factored
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.needs import need_code
from argosy.workflows.yaml_text import to_yaml

Kind: TypeAlias = Literal["Workflow", "WorkflowTemplate"]
STORE_URI: Final = "argosy.dev/store-uri"
RUN_NAME: Final = "argosy.dev/run-name"
CLAIM: Final = "argosy.dev/claim"
KEPT_SECONDS: Final = 7 * 24 * 3600
"""A finished Workflow stays so long; what it did is in the store for ever."""
ENTRYPOINT: Final = "main"


def compile_run(run: TrainingRun, *, code: CodeArchive | None = None, kind: Kind = "Workflow") -> bytes:
    """The YAML of the run, UTF-8; equal input gives equal bytes.

    ``code`` is the packed code folder (its digest goes in, its bytes do not), required unless ``run.code`` is "".

    Raises:
        InputError: ``code`` is missing, or given although the code is in the image.
    """
    digest = code.digest if code is not None else ""
    need_code(run, digest)
    document = build_workflow(run, code_digest=digest, kind=kind).build().model_dump(exclude_none=True, by_alias=True)
    return to_yaml(factored(document) if kind == "Workflow" else document).encode()


def build_workflow(run: TrainingRun, *, code_digest: str, kind: Kind = "Workflow") -> Workflow:
    """The run as a Hera object (``WorkflowTemplate`` is a kind of ``Workflow``), for those who want to add to it."""
    facts = workflow_annotations(run)
    common: dict[str, Any] = {
        "entrypoint": ENTRYPOINT,
        "on_exit": "finalize",
        "arguments": workflow_parameters(run),
        "labels": {RUN_LABEL: run.name},
        "annotations": facts,
        "service_account_name": run.gang.service_account or None,
        # The evaluation has the gang's image, and a registry of one's own has the steps' too.
        "image_pull_secrets": list(run.gang.pod.image_pull_secrets) or None,
        "active_deadline_seconds": run.deadlines.run_seconds or None,
        "pod_metadata": Metadata(labels=labels) if (labels := run.gang.pod.common_labels()) else None,
        # Pods of a failed workflow stay for whoever wants to look at them.
        "pod_gc": PodGC(strategy="OnWorkflowSuccess"),
        "ttl_strategy": TTLStrategy(seconds_after_completion=KEPT_SECONDS),
    }
    if kind == "WorkflowTemplate":
        # A Workflow made from the template gets these, and not the template's own.
        metadata = WorkflowMetadata(labels={RUN_LABEL: run.name}, annotations=facts)
        workflow: Workflow = WorkflowTemplate(name=run.name, workflow_metadata=metadata, **common)
    else:
        workflow = Workflow(generate_name=f"{run.name}-", **common)
    with workflow:
        _graph(run, code_digest)
        templates.finalize(run)
    # The graph first: it is what a reader looks for.
    workflow.templates.sort(key=lambda template: template.name != ENTRYPOINT)
    return workflow


def workflow_annotations(run: TrainingRun) -> dict[str, str]:
    """What the command line and the local engine read from a workflow."""
    facts = {STORE_URI: run.storage.uri, RUN_NAME: run.name}
    return facts | {CLAIM: run.storage.claim} if run.mounts_claim else facts


def workflow_parameters(run: TrainingRun) -> list[Parameter]:
    """What may be given at submit time: public API."""
    defaults = {"run-id": "", "args": "[]", "resume-from": "latest", "force": "false", "event": ""}
    if run.dataset is not None:
        defaults["dataset-uri"] = run.dataset.uri
    return [Parameter(name=name, value=value) for name, value in defaults.items()]


def _graph(run: TrainingRun, code_digest: str) -> None:
    chain: list[Container] = []
    if run.dataset is not None:
        chain.append(templates.snapshot(run))
    chain.append(templates.admit(run, code_digest))
    if run.dataset is not None:
        chain.append(templates.stage(run))
    chain.append(templates.train(run, code_digest))
    if run.evaluation is not None:
        chain += [templates.evaluate(run, code_digest), templates.gate(run), templates.promote(run)]
    with DAG(name=ENTRYPOINT):
        before: Container | None = None
        for template in chain:
            _task(template, before, has_dataset=run.dataset is not None)
            before = template


def _task(template: Container, before: Container | None, *, has_dataset: bool) -> None:
    wired = _wiring(has_dataset)
    inputs = template.inputs if isinstance(template.inputs, Sequence) else ()
    names = [parameter.name for parameter in inputs if isinstance(parameter, Parameter)]
    name = str(template.name)
    Task(
        name=name,
        template=name,
        arguments=[Parameter(name=name, value=wired[name]) for name in names if name in wired],
        # .Succeeded, not the bare name: a bare one is content with a skipped task, and the chain would go on.
        depends=f"{before.name}.Succeeded" if before is not None else None,
        when=_CONDITIONS.get(before.name or "") if before is not None else None,
    )


_CONDITIONS: Final = {
    "admit": "{{tasks.admit.outputs.parameters.decision}} == start",
    "gate": "{{tasks.gate.outputs.parameters.decision}} == promote",
}
"""Task -> ``when`` of the one after it; the values are words of our own steps, never of a user."""


def _wiring(has_dataset: bool) -> dict[str, str]:
    """Template input -> where its value comes from in our graph."""
    wired = {
        name: f"{{{{workflow.parameters.{name}}}}}"
        for name in ("run-id", "dataset-uri", "args", "resume-from", "force", "event")
    }
    wired["checkpoint-digest"] = _output("train", "checkpoint-digest")
    wired["value"] = _output("evaluate", "metric")
    if has_dataset:
        wired["dataset-digest"] = _output("snapshot", "dataset-digest")
    return wired


def _output(task: str, name: str) -> str:
    return f"{{{{tasks.{task}.outputs.parameters.{name}}}}}"
