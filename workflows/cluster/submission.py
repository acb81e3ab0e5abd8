"""From the documents of a file to a Workflow that a cluster runs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.kinds import SERVICE_ACCOUNT, WORKFLOW_TEMPLATE
from argosy.steps.contract.errors import InputError, StepError
from argosy.workflows.cluster.place import check_namespace
from argosy.workflows.cluster.state import YAML_SHA256

NO_REHEARSAL = "does not support dry run"
"""What the API server says of a webhook that has to be asked and may not be for show."""

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""Those of Kubernetes' own random names: no words come of them."""


def started_from(template: Mapping[str, Any]) -> dict[str, Any]:
    """A Workflow that is nothing but a reference to a WorkflowTemplate."""
    name = template["metadata"]["name"]
    metadata = {"generateName": f"{name}-", **dict((template.get("spec") or {}).get("workflowMetadata") or {})}
    return {
        "apiVersion": template["apiVersion"],
        "kind": "Workflow",
        "metadata": metadata,
        "spec": {"workflowTemplateRef": {"name": name}},
    }


def declaring(api: Api, workflow: Mapping[str, Any], given: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Where a Workflow's parameters and annotations stand: in the WorkflowTemplate that it is made from, else in it.

    ``given`` are templates that come with it; any other is asked of the cluster.

    Raises:
        InputError: the cluster has none of that name.
    """
    reference = (workflow.get("spec") or {}).get("workflowTemplateRef") or {}
    if not reference.get("name") or reference.get("clusterScope"):
        return workflow
    own = (each for each in given if each["metadata"].get("name") == reference["name"])
    found = next(own, None) or api.get(WORKFLOW_TEMPLATE, str(reference["name"]))
    if found is None:
        raise InputError(
            f"spec.workflowTemplateRef: {reference['name']!r} is not in namespace {api.namespace}; create it with: "
            f"argosy compile run.toml --template | kubectl apply -n {api.namespace} -f -"
        )
    return found


def check_accounts(api: Api, documents: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what could not start a pod; an account that this user may not look at is taken for granted.

    Raises:
        InputError: a service account is not there; names the command that makes it.
    """
    for name in sorted(accounts_of(documents)):
        try:
            if api.get(SERVICE_ACCOUNT, name) is not None:
                continue
        except StepError:
            continue
        check_namespace(api)
        raise InputError(
            f"serviceAccountName {name!r}: not in namespace {api.namespace}, so no pod could start; make it with: "
            f"argosy install -n {api.namespace} --service-account {name} --apply"
        )


def accounts_of(documents: Sequence[Mapping[str, Any]]) -> set[str]:
    """Service accounts that a Workflow and its templates name."""
    found = set()
    for document in documents:
        spec = document.get("spec") or {}
        found |= {str(each["serviceAccountName"]) for each in [spec, *(spec.get("templates") or [])]
                  if each.get("serviceAccountName")}  # fmt: skip
    return found


def named(workflow: Mapping[str, Any], parameters: Mapping[str, str], sha256: str) -> dict[str, Any]:
    """The Workflow to create: as it stands but for its name, the given parameters and the digest of its YAML.

    Its name is chosen here: a request that has to be made again must not start a second run.
    """
    metadata = dict(workflow.get("metadata") or {})
    beginning = metadata.pop("generateName", None) or "workflow-"
    metadata["name"] = metadata.get("name") or beginning + "".join(secrets.choice(_LETTERS) for _ in range(5))
    metadata["annotations"] = {**(metadata.get("annotations") or {}), YAML_SHA256: sha256}
    metadata.pop("namespace", None)
    spec = dict(workflow.get("spec") or {})
    if parameters:
        spec["arguments"] = _arguments(spec.get("arguments") or {}, parameters)
    return {**workflow, "metadata": metadata, "spec": spec}


def create(api: Api, document: Mapping[str, Any], *, fixed: bool, dry_run: bool = False) -> None:
    """Create the Workflow; ``fixed``: its name was not chosen here.

    Raises:
        InputError: a Workflow of that fixed name exists.
    """
    if api.create(document, dry_run=dry_run) is None and fixed:
        raise InputError(
            f"metadata.name {document['metadata']['name']!r}: there is such a Workflow in namespace {api.namespace} "
            "already; delete it, or write generateName"
        )


def rehearse(api: Api, document: Mapping[str, Any], templates: Sequence[Mapping[str, Any]], *, fixed: bool) -> None:
    """Have the API server judge what is about to be created, before anything is put anywhere.

    Raises:
        InputError, ApiError, StepError: as without a rehearsal.
    """
    try:
        for each in templates:
            api.apply(each, dry_run=True)
        create(api, document, fixed=fixed, dry_run=True)
    except ApiError as error:
        if NO_REHEARSAL not in str(error):
            raise


def _arguments(arguments: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    listed = {str(each["name"]): dict(each) for each in arguments.get("parameters") or []}
    for name, value in given.items():
        listed[name] = {**listed.get(name, {}), "name": name, "value": value}
    return {**arguments, "parameters": list(listed.values())}
