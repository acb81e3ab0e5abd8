"""What the control channel of a run needs in the cluster: a name, a secret, and a fence. Pure functions.

All are owned by the workflow, so that they go when it goes; all have the same name.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.steps.contract.objects import (
    METRICS_PORT,
    ROLE_LABEL,
    TOKEN_KEY,
    UID_LABEL,
    WORKFLOW_LABEL,
    channel_name,
)

CHANNEL_PORT = 8476


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The workflow that owns what is made for it; without a ``name``: nobody, and ``uid`` is the supervisor's own."""

    name: str
    uid: str

    @property
    def channel(self) -> str:
        """Name of the Service and the Secret, and how the policies' begin."""
        return channel_name(self.uid)

    @property
    def selector(self) -> str:
        """Label selector of all that was made for the workflow."""
        return f"{UID_LABEL}={self.uid}"

    def adopt(self, document: dict[str, Any]) -> dict[str, Any]:
        """``document`` with the workflow, if there is one, as owner and its labels."""
        metadata = document.setdefault("metadata", {})
        metadata["labels"] = {**metadata.get("labels", {}), UID_LABEL: self.uid}
        if self.name:
            metadata["ownerReferences"] = [
                {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": self.name, "uid": self.uid}
            ]
        return document


def channel_service(owner: Owner) -> dict[str, Any]:
    """Headless: its name is the address of the supervisor's pod of the moment, ready or not."""
    return owner.adopt(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": owner.channel},
            "spec": {
                "clusterIP": "None",
                "publishNotReadyAddresses": True,
                "selector": _supervisor(owner),
                "ports": [{"name": "channel", "port": CHANNEL_PORT}],
            },
        }
    )


def channel_secret(owner: Owner, token: str) -> dict[str, Any]:
    """The token that pods of the gang show; the next supervisor's pod has it by reference."""
    data = {TOKEN_KEY: base64.b64encode(token.encode()).decode()}
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": owner.channel}, "immutable": True}
    return owner.adopt({**document, "data": data})


def policies(owner: Owner) -> list[dict[str, Any]]:
    """Ranks talk among themselves, and to the supervisor's port; nobody else reaches either. Its metrics are for all.

    torch's TCPStore executes pickles that it is sent, so whoever reaches a rank's port runs code in it.
    """
    gang = {"podSelector": {"matchLabels": {UID_LABEL: owner.uid}}}
    return [
        _policy(owner, "gang", {UID_LABEL: owner.uid}, {"from": [gang]}),
        _policy(
            owner,
            "supervisor",
            _supervisor(owner),
            {"from": [gang], "ports": [{"port": CHANNEL_PORT}]},
            {"ports": [{"port": METRICS_PORT}]},
        ),
    ]


def _policy(owner: Owner, whom: str, labels: Mapping[str, str], *ingress: Mapping[str, Any]) -> dict[str, Any]:
    return owner.adopt(
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": f"{owner.channel}-{whom}"},
            "spec": {
                "podSelector": {"matchLabels": dict(labels)},
                "policyTypes": ["Ingress"],
                "ingress": list(ingress),
            },
        }
    )


def _supervisor(owner: Owner) -> dict[str, str]:
    return {ROLE_LABEL: "supervisor", WORKFLOW_LABEL: owner.name}
