"""Which container of a pod counts, and what of its status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

_Named = TypeVar("_Named", bound=Mapping[str, Any])


def main_of(containers: Sequence[_Named]) -> _Named:
    """The one named ``main``, else the first (operators prescribe its name); of a spec's, or of a status's."""
    return next((each for each in containers if each.get("name") == "main"), containers[0])


def main_container(pod: Mapping[str, Any]) -> str:
    """Name of the container whose words and end count."""
    return str(main_of(pod["spec"]["containers"])["name"])


def lost_node(status: Mapping[str, Any]) -> str | None:
    """Why the node counts as lost. The node controller marks the pods of a node that is silent; the kubelet, which
    marks them otherwise, always gives a reason.

    https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/util/node/controller_utils.go
    """
    ready = condition(status, "Ready")
    marked = ready.get("status") == "False" and ready.get("reason") in (None, "", "NodeNotReady")
    return (ready.get("message") or "its node does not answer") if marked and status.get("phase") == "Running" else None


def condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of that type; empty when there is none."""
    return next((each for each in status.get("conditions") or [] if each["type"] == kind), {})
