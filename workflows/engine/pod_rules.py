"""Rules for container and script templates: what this machine can stand in for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from argosy.steps.pods.isolation import PRIVATE, is_possible
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.document import NAME, Document
from argosy.workflows.engine.pod_environment import FIELDS, referred_variable, secret_keys, secret_variable
from argosy.workflows.engine.pod_job import is_ours
from argosy.workflows.engine.repository import missing_secrets
from argosy.workflows.engine.volumes import volumes_of


@lru_cache(maxsize=1)
def can_isolate() -> bool:
    """Whether this machine lets us make mount namespaces; asked once."""
    return is_possible()


def pod_problems(document: Document, template: Mapping[str, Any], kind: str, path: str) -> Iterator[str]:
    """What is wrong with a container or script template, by path."""
    container = template[kind]
    where = f"{path}.{kind}"
    if not container.get("command"):
        yield f"{where}.command: missing; no image is there whose entry point could be run"
        return
    isolated = not is_ours(container["command"])
    if isolated and not can_isolate():
        yield (
            f"{where}.command: {container['command'][0]!r} is none of argosy's steps and needs a mount namespace, "
            "which this machine forbids (unshare); run as root or allow unprivileged user namespaces"
        )
    volumes = volumes_of(document.spec, template, "workflow")
    yield from _volumes(volumes, document.configs, path)
    known = {str(volume.get("name")) for volume in volumes}
    mounts = [str(mount.get("mountPath")) for mount in container.get("volumeMounts") or []]
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in known:
            yield f"{where}.volumeMounts[{index}].name: no volume is called {mount.get('name')!r}"
        yield from _path(mount.get("mountPath"), [], isolated, f"{where}.volumeMounts[{index}].mountPath", mount=True)
        sub_path = str(mount.get("subPath") or "")
        if sub_path.startswith("/") or ".." in sub_path.split("/"):
            yield f"{where}.volumeMounts[{index}].subPath: {sub_path!r} must be a relative path without '..'"
    yield from _environment(container, document.configs, where)
    yield from _files(template, mounts, isolated, path)


def _volumes(volumes: list[dict[str, Any]], configs: ConfigMaps, path: str) -> Iterator[str]:
    for volume in volumes:
        name = volume.get("name")
        secret = volume.get("secret")
        if secret is not None and not secret.get("optional"):
            yield f"{path}: volume {name!r}: Secrets do not exist on this machine; mark it optional or use env"
        if volume.get("configMap") is not None:
            yield from (f"{path}: volume {name!r}: {wrong}" for wrong in configs.volume_problems(volume["configMap"]))
        if not any(kind in volume for kind in ("emptyDir", "persistentVolumeClaim", "secret", "configMap")):
            yield f"{path}: volume {name!r}: needs emptyDir, persistentVolumeClaim or configMap"
        # Both become folders here, and Kubernetes would refuse them.
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if "{{" not in f"{name}{claim}":
            if not NAME.fullmatch(str(name)):
                yield f"{path}: volume {name!r}: the name is no DNS label"
            if "persistentVolumeClaim" in volume and not NAME.fullmatch(str(claim)):
                yield f"{path}: volume {name!r}: claimName {claim!r} is no Kubernetes name"


def _environment(container: Mapping[str, Any], configs: ConfigMaps, where: str) -> Iterator[str]:
    for index, entry in enumerate(container.get("env") or []):
        source = entry.get("valueFrom") or {}
        field_path = (source.get("fieldRef") or {}).get("fieldPath")
        if field_path is not None and field_path not in FIELDS:
            yield f"{where}.env[{index}].valueFrom.fieldRef: {field_path!r} is none of {', '.join(FIELDS)}"
        config = source.get("configMapKeyRef")
        if config is not None:
            for wrong in configs.missing(config, [str(config.get("key"))]):
                yield f"{where}.env[{index}].valueFrom.configMapKeyRef: {wrong}"
        secret = source.get("secretKeyRef")
        if secret is not None and not secret.get("optional"):
            variable = referred_variable(secret)
            if variable not in os.environ:
                yield f"{where}.env[{index}].valueFrom.secretKeyRef: set {variable} in the engine's environment"
    for index, source in enumerate(container.get("envFrom") or []):
        for wrong in configs.missing(source["configMapRef"], []) if source.get("configMapRef") else ():
            yield f"{where}.envFrom[{index}].configMapRef: {wrong}"
        secret = source.get("secretRef") or {}
        if secret and not secret.get("optional") and not secret_keys(str(secret.get("name"))):
            variable = secret_variable(str(secret.get("name")), "KEY")
            yield f"{where}.envFrom[{index}].secretRef: set {variable} (for each KEY) in the engine's environment"


def _files(template: Mapping[str, Any], mounts: list[str], isolated: bool, path: str) -> Iterator[str]:
    for side in ("inputs", "outputs"):
        for index, artifact in enumerate((template.get(side) or {}).get("artifacts") or []):
            where = f"{path}.{side}.artifacts[{index}].path"
            if not artifact.get("path"):
                yield f"{where}: missing"
            else:
                yield from _path(artifact["path"], mounts, isolated, where)
            for variable in missing_secrets(artifact.get("s3") or {}):
                yield f"{path}.{side}.artifacts[{index}].s3: set {variable} in the engine's environment"
    for index, parameter in enumerate((template.get("outputs") or {}).get("parameters") or []):
        file = (parameter.get("valueFrom") or {}).get("path")
        where = f"{path}.outputs.parameters[{index}].valueFrom"
        if file:
            yield from _path(file, mounts, isolated, f"{where}.path")
        elif parameter.get("value") is None:
            yield f"{where}.path: missing; a pod's output parameter comes from a file"


def _path(file: Any, mounts: list[str], isolated: bool, where: str, *, mount: bool = False) -> Iterator[str]:
    """A file that a foreign container and we must both reach: below a folder that is the pod's own.

    What is mounted may also cover a folder of the machine.
    """
    text = os.path.normpath(str(file))
    if "{{" in text or not isolated:
        return
    if not text.startswith("/") or text == "/":
        yield f"{where}: {file!r} is not an absolute path"
        return
    if any(text == mount or text.startswith(mount.rstrip("/") + "/") for mount in mounts):
        return
    top = text.split("/")[1]
    if top not in PRIVATE and os.path.lexists(f"/{top}") and not (mount and os.path.isdir(text)):
        yield (
            f"{where}: {file!r} lies in /{top}, which a pod shares with this machine; "
            f"use a path below /{', /'.join(PRIVATE[:4])} or a volume"
        )
