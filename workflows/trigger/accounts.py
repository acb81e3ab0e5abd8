"""Who may do what for a trigger: three accounts, each with the least."""

from __future__ import annotations

from typing import Any

from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.trigger import need_trigger
from argosy.workflows.trigger.argo_events import SENSOR_ACCOUNT, SOURCE_ACCOUNT
from argosy.workflows.trigger.deciding import ACCOUNT

_ARGO = "argoproj.io"
_RBAC = "rbac.authorization.k8s.io"


REASONS = {
    (ACCOUNT, "workflows"): "who decides starts the run, sees whether one runs, ends it with while_running = replace",
    (ACCOUNT, "workflowtaskresults"): "Argo's executor in the pod that decides",
    (ACCOUNT, "workfloweventbindings"): "Argo's server asks as the sender of an event: which bindings take it",
    (ACCOUNT, "workflowtemplates"): "the same: what the binding submits",
    (SENSOR_ACCOUNT, "workflows"): "an event starts the Workflow that decides",
}
"""(account, resource): what for."""


def account_documents(run: TrainingRun, namespace: str) -> list[dict[str, Any]]:
    """ServiceAccounts, Roles and RoleBindings in the order in which they are applied.

    The step that decides creates, lists and ends Workflows; the same account announces at Argo's server. Its Role is
    one for all runs of the namespace, so what a run alone needs is not left out for another. A Sensor creates Workflows
    and nothing else; an EventSource may do nothing.

    Raises:
        InputError: the run has no trigger.
    """
    trigger = need_trigger(run)
    deciding = [
        ("workflows", ["create", "list", "patch"]),
        ("workflowtaskresults", ["create", "patch"]),
        ("workfloweventbindings", ["list"]),
        ("workflowtemplates", ["get"]),
    ]
    found = _account(ACCOUNT, namespace, deciding)
    if trigger.on == "marker" and trigger.event_source:
        found += _account(SENSOR_ACCOUNT, namespace, [("workflows", ["create"])])
        found += _account(SOURCE_ACCOUNT, namespace, [])
    return found


def _account(name: str, namespace: str, rights: list[tuple[str, list[str]]]) -> list[dict[str, Any]]:
    metadata = {"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/managed-by": "argosy"}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    if not rights:
        return [account]
    rules = [{"apiGroups": [_ARGO], "resources": [resource], "verbs": verbs} for resource, verbs in rights]
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
    }
    return [account, {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}, binding]
