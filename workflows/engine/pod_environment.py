"""The environment of a pod: what the engine sets, what the YAML sets, little of the machine's."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.contract import env as names
from argosy.steps.pods.expansion import expanded
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.gotext import any_string

SECRET_PREFIX = "ARGOSY_SECRET_"
_PASSED = re.compile(
    r"^(AWS_.*|GOOGLE_APPLICATION_CREDENTIALS|AZURE_.*|(https?|no|all)_proxy|(HTTPS?|NO|ALL)_PROXY|LANG|LC_ALL|TZ"
    r"|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|LD_LIBRARY_PATH|CUDA_VISIBLE_DEVICES|NVIDIA_.*|UV_CACHE_DIR)$"
)
FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
          "status.podIP", "status.hostIP", "metadata.labels['workflows.argoproj.io/workflow']")  # fmt: skip
"""What ``fieldRef.fieldPath`` may name here."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """Who a pod is and where it lives."""

    workflow: str
    uid: str
    namespace: str
    service_account: str
    node_id: str
    pod: str
    virtual_node: str
    run_dir: Path
    root: Path
    inject: tuple[str, ...]
    nodes: int | None

    def field(self, path: str) -> str:
        """The value of a downward-API field of :data:`FIELDS`."""
        values = (self.pod, self.namespace, f"{self.uid}-{self.node_id}", self.virtual_node, self.service_account,
                  "127.0.0.1", "127.0.0.1", self.workflow)  # fmt: skip
        return dict(zip(FIELDS, values, strict=True))[path]


def secret_variable(name: str, key: str) -> str:
    """The variable of the engine's environment that stands for a Secret's key."""
    return SECRET_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", f"{name}_{key}").upper()


def referred_variable(reference: Mapping[str, Any]) -> str:
    """The variable that stands for what a ``{name, key}`` of a manifest refers to."""
    return secret_variable(str(reference.get("name")), str(reference.get("key")))


def secret_keys(name: str) -> dict[str, str]:
    """Every key of a Secret that the engine's environment holds."""
    prefix = SECRET_PREFIX + re.sub(r"[^A-Za-z0-9]", "_", name).upper() + "_"
    return {key.removeprefix(prefix): value for key, value in os.environ.items() if key.startswith(prefix)}


def base_environment(identity: PodIdentity, mounts: Mapping[str, Path], *, isolated: bool) -> dict[str, str]:
    """Variables that every pod has before the YAML's own."""
    home = "/tmp" if isolated else str(identity.root / "tmp")
    environ = {key: value for key, value in os.environ.items() if _PASSED.match(key)}
    for variable, file in (("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config")):
        path = Path.home() / ".aws" / file
        if variable not in environ and path.exists():
            environ[variable] = str(path)
    environ |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
        "HOME": home,
        "TMPDIR": home,
        "PYTHONUNBUFFERED": "1",
        "ARGO_CONTAINER_NAME": "main",
        "ARGO_WORKFLOW_NAME": identity.workflow,
        "ARGO_WORKFLOW_UID": identity.uid,
        "ARGO_NODE_ID": identity.node_id,
        "ARGO_POD_NAME": identity.pod,
    }
    environ.setdefault("LANG", "C.UTF-8")
    if isolated:
        return environ
    environ |= {
        "ARGO_PROGRESS_FILE": "/var/run/argo/progress",
        names.POD_ROOT: str(identity.root),
        names.MOUNTS: json.dumps({path: str(folder.resolve()) for path, folder in mounts.items()}),
        names.GANG_HOST: "processes",
        names.LOCAL_DIR: str(identity.run_dir),
        names.NODE_NAME: identity.virtual_node,
        names.POD_NAME: identity.pod,
    }
    if identity.inject:
        environ[names.INJECT] = json.dumps(list(identity.inject))
    if identity.nodes is not None:
        environ[names.NODES] = str(identity.nodes)
    return environ


def container_environment(container: Mapping[str, Any], identity: PodIdentity, configs: ConfigMaps) -> dict[str, str]:
    """The YAML's ``envFrom`` and ``env``, with ``$(NAME)`` replaced as the kubelet does it.

    Raises:
        LookupError: a variable needs a ConfigMap, or a key of it, that is not there.
    """
    environ: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        name = str((source.get("secretRef") or {}).get("name"))
        prefix = str(source.get("prefix") or "")
        found = secret_keys(name)
        if source.get("configMapRef"):
            found = configs.texts(_present(configs, source["configMapRef"], []))
        environ |= {f"{prefix}{key}": value for key, value in found.items()}
    for entry in container.get("env") or []:
        value = _value(entry, environ, identity, configs)
        if value is not None:
            environ[str(entry["name"])] = value
    return environ


def _present(configs: ConfigMaps, reference: Mapping[str, Any], keys: list[str]) -> str:
    for wrong in configs.missing(reference, keys):
        raise LookupError(wrong)
    return str(reference.get("name"))


def _value(
    entry: Mapping[str, Any], known: Mapping[str, str], identity: PodIdentity, configs: ConfigMaps
) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        raw = entry.get("value")
        return expanded("" if raw is None else any_string(raw), known)
    if "fieldRef" in source:
        return identity.field(str(source["fieldRef"]["fieldPath"]))
    if source.get("configMapKeyRef"):
        reference, key = source["configMapKeyRef"], str(source["configMapKeyRef"].get("key"))
        return configs.texts(_present(configs, reference, [key])).get(key)
    return os.environ.get(referred_variable(source.get("secretKeyRef") or {}))


def command_line(container: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """``command`` and ``args`` with the container's variables in place."""
    words: Sequence[Any] = [*(container.get("command") or []), *(container.get("args") or [])]
    return tuple(expanded(any_string(word), environ) for word in words)
