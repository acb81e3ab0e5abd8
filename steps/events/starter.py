"""Who starts what was decided: on a cluster, from the run's WorkflowTemplate."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from argosy.steps.cluster.kinds import WORKFLOW, WORKFLOW_TEMPLATE
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import RUN_LABEL, trigger_name
from argosy.steps.events.journal import Decision

if TYPE_CHECKING:
    from argosy.steps.cluster.api import Api

UNFINISHED = "workflows.argoproj.io/completed!=true"


class Starter(Protocol):
    """Two implementations: this one, and the one of ``argosy watch``, which runs them on its machine."""

    place: str
    """Where it starts runs; it leaves decisions alone that name another place."""

    def running(self) -> list[str]:
        """Names of the run's workflows that have not ended, whoever started them."""

    def start(self, decision: Decision) -> None:
        """Start the workflow of that name with those parameters; what was started already stays as it is."""

    def stop(self, workflow: str) -> None:
        """Ask a workflow to end; its exit handler runs."""


class ClusterStarter:
    """Creates Workflows of the WorkflowTemplate that has the run's name."""

    def __init__(self, api: Api, name: str, one_by_one: bool) -> None:
        """``one_by_one``: Argo runs only one at a time of those that are started here."""
        self._api, self._name, self._one_by_one = api, name, one_by_one
        self.place = f"cluster:{api.namespace}"

    def running(self) -> list[str]:
        """By the label that compile writes."""
        found = self._api.list(WORKFLOW, selector=f"{RUN_LABEL}={self._name},{UNFINISHED}")
        return [str(each["metadata"]["name"]) for each in found["items"]]

    def installed(self) -> float | None:
        """When the WorkflowTemplate that decides was created, in seconds since 1970; None when it is not there."""
        found = self._api.get(WORKFLOW_TEMPLATE, trigger_name(self._name))
        return datetime.fromisoformat(found["metadata"]["creationTimestamp"]).timestamp() if found else None

    def start(self, decision: Decision) -> None:
        """A Workflow is there once by its name.

        Raises:
            StepError: nothing was started; the next event or look tries it again.
        """
        if self._api.get(WORKFLOW_TEMPLATE, self._name) is None:
            # The Workflow would be made all the same, end in Error at once, and these data would count as started.
            install = f"argosy install -n {self._api.namespace} --trigger RUN.toml --apply"
            raise StepError(Cause.CONFIG_OR_RBAC, f"the WorkflowTemplate {self._name} is not there; {install}")
        parameters = [{"name": name, "value": value} for name, value in sorted(decision.parameters.items())]
        spec: dict[str, Any] = {"workflowTemplateRef": {"name": self._name}, "arguments": {"parameters": parameters}}
        if self._one_by_one:
            spec["synchronization"] = {"mutexes": [{"name": f"argosy-{self._name}"}]}
        metadata = {"name": decision.workflow, "labels": {RUN_LABEL: self._name}}
        document = {"apiVersion": WORKFLOW.api_version, "kind": WORKFLOW.kind, "metadata": metadata, "spec": spec}
        self._api.create(document)

    def stop(self, workflow: str) -> None:
        """As ``argo stop`` does it."""
        self._api.merge(WORKFLOW, workflow, {"spec": {"shutdown": "Stop"}})
