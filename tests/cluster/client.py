"""Work with a cluster by its kubeconfig: ours, or any other that ``ARGOSY_KUBECONFIG`` names."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from argosy.workflows.cluster.installation import manifests, namespace_manifest
from tests.cluster.api import Api
from tests.cluster.process import run
from tests.cluster.progress import ClusterError, wait_for


class Client:
    """``bin`` is where ``kubectl`` and ``argo`` are; without it they are looked for on PATH."""

    def __init__(self, kubeconfig: Path, bin: Path | None = None) -> None:
        self.kubeconfig = kubeconfig
        self.bin = bin or Path()
        self.api = Api(kubeconfig)

    def create_namespace(self, name: str) -> None:
        """What ``argosy install --create-namespace`` makes: Pod Security *restricted*, and what runs may do."""
        self.api.apply([namespace_manifest(name)])
        for user in ("argosy", "default"):  # the account of runs, and that of workflows which tests write
            self.api.apply(manifests(name, user), name)
        account = ("v1", "ServiceAccount", "default", name)
        wait_for(f"the default account of {name}", lambda: self.api.get(*account) is not None, 60)

    def delete_namespace(self, name: str) -> None:
        """With everything in it; does not wait."""
        self.api.delete("v1", "Namespace", name)

    @contextmanager
    def namespace(self, prefix: str) -> Iterator[str]:
        """A namespace of a test's own, deleted at its end."""
        name = f"{prefix}-{uuid.uuid4().hex[:9]}"
        self.create_namespace(name)
        try:
            yield name
        finally:
            self.delete_namespace(name)

    def workflow(self, name: str, namespace: str) -> dict[str, Any]:
        """A Workflow as it is now. Raises ClusterError when there is none."""
        found = self.api.get("argoproj.io/v1alpha1", "Workflow", name, namespace)
        if found is None:
            raise ClusterError(f"no workflow {name} in {namespace}")
        made: dict[str, Any] = found
        return made

    def submit(self, manifest: Path, namespace: str, *options: str) -> str:
        """``argo submit`` and nothing else. Returns the Workflow's name."""
        return self.argo("submit", manifest, "-o", "name", *options, namespace=namespace).strip().rpartition("/")[2]

    def wait_workflow(self, name: str, namespace: str, seconds: float = 120) -> dict[str, Any]:
        """The Workflow once it has ended, however it ended. Raises ClusterError with its nodes after ``seconds``."""
        ended = ("Succeeded", "Failed", "Error")
        try:
            wait_for(
                f"the end of {name}",
                lambda: self.workflow(name, namespace).get("status", {}).get("phase") in ended,
                seconds,
                every=0.5,
            )
        except ClusterError as error:
            raise ClusterError(f"{error}\n{self.argo('get', name, '--no-color', namespace=namespace)}") from None
        return self.workflow(name, namespace)

    def kubectl(self, *arguments: str | Path, stdin: str | None = None, timeout: float = 60) -> str:
        """The real ``kubectl``: ``cluster.kubectl("get", "pods", "-A")``."""
        command = (self.bin / "kubectl", f"--kubeconfig={self.kubeconfig}")
        return run(*command, *arguments, stdin=stdin, timeout=timeout)

    def argo(self, *arguments: str | Path, namespace: str, timeout: float = 120) -> str:
        """The real ``argo``, by the API server."""
        return run(self.bin / "argo", "--kubeconfig", self.kubeconfig, "-n", namespace, *arguments, timeout=timeout)


def phases(workflow: dict[str, Any]) -> dict[str, str]:
    """The last phase of each node, by its display name (a task's, a step's, a retry's ``name(0)``)."""
    nodes = workflow.get("status", {}).get("nodes", {}).values()
    return {node["displayName"]: node.get("phase", "") for node in nodes}
