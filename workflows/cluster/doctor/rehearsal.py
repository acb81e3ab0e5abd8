"""The run's own objects, shown to the API server without keeping them: schemas, webhooks, quotas, Pod Security."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.kinds import NOT_SEEN_YET
from argosy.steps.contract.errors import StepError
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs

NAME = "argosy-doctor"
_ADMISSION = ("violates PodSecurity", "exceeded quota", "denied the request", "no PriorityClass", "service account")
"""What admission says, with the same 403 as one who may not ask at all."""


def rehearsal(api: Api, workflow: Mapping[str, Any], needs: Needs) -> Iterator[Check]:
    """A server-side dry run of the Workflow, of the gang, and of one of its pods."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": needs.pod}
    documents = [workflow, *needs.gang, *([pod] if needs.pod else [])]
    for document in documents:
        what = f"{document['kind']}, dry run"
        yield from asked(what, "who may create it sees whether it is accepted", partial(_one, api, what, document))


def _one(api: Api, what: str, document: Mapping[str, Any]) -> Iterator[Check]:
    metadata = {**(document.get("metadata") or {}), "name": NAME}
    metadata.pop("generateName", None)
    metadata.pop("namespace", None)
    try:
        api.create({**document, "metadata": metadata}, dry_run=True)
    except KeyError:
        yield Check("unknown", what, f"{document.get('apiVersion')} is not spoken here")
    except (ApiError, StepError) as error:
        if isinstance(error, ApiError) and error.status == 404:
            return  # its kind is not served, which is said elsewhere
        if NOT_SEEN_YET.search(str(error)):
            yield Check("ok", what, "accepted but for its TrainingRuntime, which no dry run keeps")
            return
        if isinstance(error, StepError) and not any(word in str(error) for word in _ADMISSION):
            raise  # not an answer about the object: we may not create any
        yield Check("missing", what, f"refused: {' '.join(str(error).split())[:400]}", _remedy(str(error)))
    else:
        yield Check("ok", what, "accepted")


def _remedy(message: str) -> str:
    if "violates PodSecurity" in message:
        return "leave out what the message names (a fabric's host path or privilege), or label the namespace otherwise"
    if "exceeded quota" in message:
        return "ask for less, or for a larger ResourceQuota: kubectl get resourcequota"
    return "correct what the message names"
