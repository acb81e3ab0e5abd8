"""Which cluster and namespace a command means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from argosy.steps.cluster.kinds import NAMESPACE
from argosy.steps.contract.errors import InputError, StepError

if TYPE_CHECKING:
    from argosy.steps.cluster.api import Api

PATIENCE_SECONDS = 10.0
"""A person waits: an API server that is away is said soon."""


@dataclass(frozen=True)
class ClusterPlace:
    """What the command line said; empty: what kubectl would take."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""

    @property
    def named(self) -> bool:
        """Whether a cluster is meant, and not this machine."""
        return bool(self.kubeconfig or self.context or self.namespace)

    def reach(self) -> Api:
        """The namespace's API; nothing is asked yet.

        Raises:
            InputError: there is no such kubeconfig or context.
        """
        from argosy.steps.cluster.connecting import connect

        given = {"kubeconfig": self.kubeconfig, "context": self.context, "namespace": self.namespace}
        return connect(**given, patience=PATIENCE_SECONDS)

    def flags(self, namespace: str) -> list[str]:
        """The options with which a later command finds the same namespace."""
        named = [("--kubeconfig", self.kubeconfig), ("--context", self.context), ("-n", namespace)]
        return [word for flag, value in named if value for word in (flag, value)]


def check_namespace(api: Api) -> None:
    """Say of a namespace that is not there so, and not that nothing is in it; who may not look at it takes it as given.

    Raises:
        InputError: with the command that makes it.
    """
    try:
        if api.get(NAMESPACE, api.namespace) is not None:
            return
    except StepError:
        return
    raise InputError(
        f"--namespace {api.namespace!r}: the cluster has no such namespace; name another, or make it with: "
        f"argosy install -n {api.namespace} --create-namespace --apply"
    )
