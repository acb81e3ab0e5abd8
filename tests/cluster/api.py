"""The API server, asked directly: no client program for each question, and every write is validated strictly."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import tempfile
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import yaml

from tests.cluster.progress import ClusterError

Manifest = Mapping[str, Any]
JSON = "application/json"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"


class ApiError(ClusterError):
    """The server refused: ``status`` is HTTP's, the message the server's own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status


class Api:
    """A client by certificate, as ``kubeconfig`` names it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._resources: dict[str, dict[str, tuple[str, bool]]] = {}

    @cached_property
    def _target(self) -> tuple[str, int, ssl.SSLContext]:
        config = yaml.safe_load(self.kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
        with tempfile.NamedTemporaryFile("w") as file:  # the ssl module takes them from files only
            file.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
            file.flush()
            context.load_cert_chain(file.name)
        url = urlsplit(cluster["server"])
        return url.hostname or "", url.port or 443, context

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Any:
        """The answer, parsed. Raises ApiError when it is refused, ClusterError when nobody answers."""
        host, port, context = self._target
        connection = http.client.HTTPSConnection(host, port, context=context, timeout=timeout)
        try:
            target = f"{path}?{urlencode(query)}" if query else path
            data = None if body is None else json.dumps(body)
            connection.request(method, target, data, {"Content-Type": kind, "Accept": JSON})
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise ClusterError(f"{method} {path} at {host}: {error!r}") from error
        finally:
            connection.close()
        if answer.status >= 400:
            message = json.loads(text).get("message", text) if text.startswith("{") else text
            raise ApiError(answer.status, message)
        return json.loads(text) if text else None

    def resources(self, version: str) -> dict[str, tuple[str, bool]]:
        """Of an apiVersion: kind to (name in paths, whether it lies in a namespace); asked anew until it is there."""
        if version not in self._resources:
            listed = self.request("GET", _group(version))["resources"]
            self._resources[version] = {
                row["kind"]: (row["name"], row["namespaced"]) for row in listed if "/" not in row["name"]
            }
        return self._resources[version]

    def path(self, version: str, kind: str, namespace: str, name: str = "") -> str:
        """Where objects of a kind are, or one of them. Raises KeyError for a kind that is not served."""
        if kind not in self.resources(version):
            del self._resources[version]  # a CRD may have come since
        resource, namespaced = self.resources(version)[kind]
        middle = f"/namespaces/{namespace}" if namespaced else ""
        return f"{_group(version)}{middle}/{resource}" + (f"/{name}" if name else "")

    def _path_of(self, manifest: Manifest, namespace: str, name: str = "") -> str:
        where = manifest["metadata"].get("namespace", namespace)
        return self.path(manifest["apiVersion"], manifest["kind"], where, name)

    def create(self, manifest: Manifest, namespace: str = "default", dry_run: bool = False) -> Any:
        """Create an object; unknown and repeated fields are errors. ``dry_run``: everything but the storing."""
        path = self._path_of(manifest, namespace)
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if dry_run else {})
        return self.request("POST", path, manifest, query=query)

    def apply(self, manifests: Iterable[Manifest], namespace: str = "default") -> None:
        """Create or change objects, as strictly."""
        for manifest in manifests:
            path = self._path_of(manifest, namespace, manifest["metadata"]["name"])
            query = {"fieldManager": "argosy-cluster", "force": "true", "fieldValidation": "Strict"}
            self.request("PATCH", path, manifest, APPLY, query)

    def get(self, version: str, kind: str, name: str, namespace: str = "default") -> Any:
        """An object; None when there is none of this name."""
        try:
            return self.request("GET", self.path(version, kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, version: str, kind: str, namespace: str = "default", selector: str = "") -> list[Any]:
        """Objects of a kind, those that a label selector picks."""
        query = {"labelSelector": selector} if selector else {}
        items: list[Any] = self.request("GET", self.path(version, kind, namespace), query=query)["items"]
        return items

    def delete(self, version: str, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object, if it is there; what it owns follows in the background."""
        try:
            self.request("DELETE", self.path(version, kind, namespace, name), query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


def _group(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"
