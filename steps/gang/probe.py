"""A probe: pods that only wait, placed as those of a gang would be, to learn whether it could have further nodes.

The scheduler is asked and answers: nothing is computed from nodes and requests. The probe takes free nodes only (it has
no PriorityClass and is of no PodGroup), and it ends by itself when nobody is left to end it.
"""

from __future__ import annotations

import copy
from typing import Any

from argosy.steps.cluster.containers import main_of
from argosy.steps.contract.objects import GANG_LABEL, UID_LABEL
from argosy.steps.gang.host import Identity
from argosy.steps.gang.manifest import GangManifest, with_identity

PROBE_SECONDS = 900
"""So long a probe is left: a node that is new pulls the image for it, which the gang needs there anyway."""
_WAIT = ["python", "-c", f"import time; time.sleep({PROBE_SECONDS})"]
_KEPT = (
    "affinity", "automountServiceAccountToken", "dnsPolicy", "hostNetwork", "imagePullSecrets", "nodeSelector",
    "runtimeClassName", "schedulerName", "securityContext", "serviceAccountName", "tolerations",
    "topologySpreadConstraints",
)  # fmt: skip
_OF_CONTAINER = ("name", "image", "imagePullPolicy", "resources", "securityContext")


def probe_name(gang: str) -> str:
    """Name of the Job, and of what its pods are labelled with in place of the gang."""
    return f"{gang}-probe"


def probe_job(manifest: GangManifest, identity: Identity, uid: str, nodes: int) -> dict[str, Any]:
    """A Job of ``nodes`` pods that go wherever a pod of the gang ``identity`` may, beside it."""
    documents = with_identity(
        manifest,
        name=identity.name,
        attempt=identity.attempt,
        nnodes=manifest.nnodes,
        env={},
        excluded=identity.excluded,
    )
    own = manifest.runtime.templates(manifest.runtime.pods_in(documents))[-1]["spec"]
    container = {name: value for name, value in main_of(own["containers"]).items() if name in _OF_CONTAINER}
    spec = {
        **{name: copy.deepcopy(value) for name, value in own.items() if name in _KEPT},
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [{**container, "command": _WAIT}],
        # A volume may bind a pod to a zone; what is the pod's own binds it to nothing.
        "volumes": [each for each in own.get("volumes", []) if "persistentVolumeClaim" in each],
    }
    _go_with(identity.name, spec)
    labels = {UID_LABEL: uid, GANG_LABEL: probe_name(identity.name)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": probe_name(identity.name)},
        "spec": {
            "parallelism": nodes,
            "completions": nodes,
            "backoffLimit": 0,
            "activeDeadlineSeconds": PROBE_SECONDS,
            "ttlSecondsAfterFinished": 0,
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _go_with(gang: str, spec: dict[str, Any]) -> None:
    """What draws the pods of one gang together draws the probe to those of this one."""
    attraction = spec.get("affinity", {}).get("podAffinity", {})
    terms = list(attraction.get("requiredDuringSchedulingIgnoredDuringExecution", []))
    terms += [each["podAffinityTerm"] for each in attraction.get("preferredDuringSchedulingIgnoredDuringExecution", [])]
    for term in terms:
        if GANG_LABEL in term.get("matchLabelKeys", []):
            term["matchLabelKeys"] = [key for key in term["matchLabelKeys"] if key != GANG_LABEL]
            term["labelSelector"] = {"matchLabels": {GANG_LABEL: gang}}
