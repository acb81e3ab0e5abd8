"""Whether what starts a run by itself is there, and nothing of an earlier trigger starts it still."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.kinds import (
    CRON_WORKFLOW,
    EVENT_BINDING,
    EVENT_SOURCE,
    SENSOR,
    WORKFLOW_TEMPLATE,
    kind_of,
)
from argosy.steps.contract.objects import RUN_LABEL, trigger_name
from argosy.workflows.cluster.doctor.check import Check, asked

_STARTING = (CRON_WORKFLOW, EVENT_SOURCE, SENSOR)


def trigger(api: Api, workflow: Mapping[str, Any], documents: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """``documents`` are those that start ``workflow``'s run as it is described now."""
    run = (workflow["metadata"].get("labels") or {}).get(RUN_LABEL, "")
    of_argo = (each for each in documents if each["apiVersion"].startswith("argoproj.io/"))
    # The Workflow among them stands for the template of the run's name, which install makes of it.
    named = [
        (WORKFLOW_TEMPLATE, run) if each["kind"] == "Workflow" else (kind_of(each), each["metadata"]["name"])
        for each in of_argo
    ]

    def look() -> Iterator[Check]:
        lacking = [f"{kind.kind} {name}" for kind, name in named if api.get(kind, name) is None]
        if lacking:
            remedy = f"argosy install -n {api.namespace} --trigger RUN.toml --apply"
            yield Check("missing", "trigger, installed", f"{', '.join(lacking)}: not there", remedy)
        name = trigger_name(run)
        left = [kind for kind in _STARTING if (kind, name) not in named and api.get(kind, name) is not None]
        if left:
            beside = (EVENT_BINDING, WORKFLOW_TEMPLATE) if CRON_WORKFLOW in left else ()
            kinds = ",".join(kind.plural for kind in (*left, *beside))
            detail = f"{', '.join(kind.kind for kind in left)} {name} starts this run, whose description has none such"
            remedy = f"where it is to end: kubectl delete -n {api.namespace} {kinds} {name}"
            yield Check("unknown", "trigger, left over", detail, remedy)

    if run:
        yield from asked("trigger, installed", f"kubectl get cronworkflows -n {api.namespace}", look)
