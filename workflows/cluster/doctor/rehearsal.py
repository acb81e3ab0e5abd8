"""The run's own objects, shown to the API server without keeping them: schemas, webhooks, quotas, Pod Security."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from argosy.steps.cluster.api import NOT_ALLOWED, UNHOOKED, Api, ApiError, ApiSilent
from argosy.steps.cluster.kinds import NOT_SEEN_YET
from argosy.steps.contract.errors import StepError
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs

NAME = "argosy-doctor"
_RANGE = (
    "ask for what the namespace's LimitRange allows (the gang: gang.resources; the steps: podSpecPatch of the compiled "
    "Workflow), or have it changed: kubectl get limitrange"
)
_POLICIES = {
    "violates PodSecurity": "leave out what the message names (a fabric's host path or privilege), or label the "
    "namespace otherwise",
    "must specify": "a ResourceQuota wants what the pod's containers do not say; a LimitRange with defaults gives it "
    "to each: kubectl get resourcequota,limitrange",
    "exceeded quota": "ask for less, or for a larger ResourceQuota: kubectl get resourcequota",
    "usage per": _RANGE,
    "request ratio per": _RANGE,
}
"""What admission says, and what one does about it."""
_WEBHOOK = (
    "mend who serves the webhook that the message names: kubectl get validatingwebhookconfigurations,"
    "mutatingwebhookconfigurations"
)


def rehearsal(api: Api, workflow: Mapping[str, Any], needs: Needs) -> Iterator[Check]:
    """A server-side dry run of the Workflow, of the gang, of one of its pods, and of a step's.

    Argo puts its own two containers into a step's, out of a configuration that is not seen from here.
    """
    documents = [("", workflow), *(("", each) for each in needs.gang)]
    gang = {"metadata": {"labels": needs.labels}, "spec": needs.pod} if needs.pod else {}
    for of, pod in ((" of the gang", gang), (" of a step", needs.step)):
        if pod:
            documents.append((of, {"apiVersion": "v1", "kind": "Pod", **pod}))
    for of, document in documents:
        what = f"{document['kind']}{of}, dry run"
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
            yield from _unserved(api, what, document)
            return
        if NOT_SEEN_YET.search(str(error)):
            yield Check("ok", what, "accepted but for its TrainingRuntime, which no dry run keeps")
            return
        if UNHOOKED in str(error):
            yield Check("missing", what, " ".join(str(error).split())[:400], _WEBHOOK)
            return
        if isinstance(error, ApiSilent) or NOT_ALLOWED.search(str(error)):
            raise  # not an answer about the object: we may not create any
        yield Check("missing", what, f"refused: {' '.join(str(error).split())[:400]}", _remedy(str(error)))
    else:
        yield Check("ok", what, "accepted")


def _unserved(api: Api, what: str, document: Mapping[str, Any]) -> Iterator[Check]:
    """Of a group whose other kinds are there; that a whole group is not is said elsewhere."""
    version, kind = str(document["apiVersion"]), document["kind"]
    try:
        api.read(f"/apis/{version}")
    except ApiError:
        return
    yield Check("missing", what, f"the cluster serves {version}, but no {kind} of it", "install its CRD and controller")


def _remedy(message: str) -> str:
    return next((remedy for words, remedy in _POLICIES.items() if words in message), "correct what the message names")
