"""A container of a pod's spec as a process of this machine: command, environment, volumes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.cluster.containers import main_of
from argosy.steps.contract import env as names
from argosy.steps.contract.errors import InputError
from argosy.steps.gang.runtimes import INDEX_VARIABLE
from argosy.steps.pods.expansion import expanded

_OWN = (
    names.POD_ROOT, names.MOUNTS, names.POD_TOKEN, names.NODE_NAME, names.POD_NAME, names.INJECT, names.LOCAL_DIR,
    names.NODES, names.LIFELINE_FD,
)  # fmt: skip
"""Variables of the supervisor's own pod: never the gang's."""
_INDEX_FIELD = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


@dataclass(frozen=True, kw_only=True)
class PodPlace:
    """Where one pod lives on this machine: ``folder`` is its own, ``volumes`` holds the machine's claims."""

    pod: str
    index: int
    node: str
    folder: Path
    volumes: Path

    @property
    def root(self) -> Path:
        """The pod's ``/``."""
        return self.folder / "root"

    @property
    def disk(self) -> Path:
        """The node's own disk, beside the claims: it outlives pods and runs, and no other node sees it."""
        return self.volumes.parent / "disks" / self.node


def command_of(pod: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Command and arguments of the main container, with the variables of its own ``env`` (values in ``environ``).

    Raises:
        InputError: there is no command: an image's entry point does not exist here.
    """
    container = main_of(pod["containers"])
    if not container.get("command"):
        raise InputError("gang: the container has no command; here no image is there to supply one, so write it out")
    own = {item["name"]: environ[item["name"]] for item in container.get("env", [])}
    return tuple(expanded(str(word), own) for word in [*container["command"], *container.get("args", [])])


def workdir_of(pod: Mapping[str, Any], place: PodPlace, mounts: Mapping[str, Path]) -> str:
    """``workingDir`` of the main container, as a folder of this machine."""
    wanted = str(main_of(pod["containers"]).get("workingDir") or "/")
    covering = [path for path in mounts if wanted == path or wanted.startswith(path.rstrip("/") + "/")]
    if covering:
        longest = max(covering, key=len)
        return str(mounts[longest] / wanted[len(longest) :].lstrip("/"))
    return str(place.root / wanted.lstrip("/"))


def mounts_of(pod: Mapping[str, Any], place: PodPlace, shared: Mapping[str, str]) -> dict[str, Path]:
    """Mount path -> folder. A claim that is mounted at the same path in ``shared`` is the same folder.

    ``/dev/shm`` stays the machine's: it is memory already.

    Raises:
        InputError: a kind of volume that this machine cannot stand in for.
    """
    volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
    found: dict[str, Path] = {}
    for mount in main_of(pod["containers"]).get("volumeMounts", []):
        path, volume = str(mount["mountPath"]), volumes.get(mount["name"], {})
        if path == "/dev/shm":
            continue
        sub = Path(str(mount.get("subPath", "")))
        if "emptyDir" in volume or "ephemeral" in volume:
            found[path] = place.folder / "volumes" / mount["name"] / sub
        elif "hostPath" in volume:
            found[path] = place.disk / str(volume["hostPath"]["path"]).lstrip("/") / sub
        elif "persistentVolumeClaim" in volume:
            claim = place.volumes / str(volume["persistentVolumeClaim"]["claimName"])
            found[path] = Path(shared[path]) if path in shared else claim / sub
        else:
            kinds = ", ".join(sorted(set(volume) - {"name"})) or "no such volume"
            raise InputError(
                f"gang: volume {mount['name']!r} at {path} is {kinds}; on this machine a pod of the gang has emptyDir, "
                "ephemeral, hostPath and persistentVolumeClaim"
            )
    return found


def environment_of(
    pod: Mapping[str, Any], place: PodPlace, mounts: Mapping[str, Path], own: Mapping[str, str]
) -> dict[str, str]:
    """The pod's whole environment: the supervisor's (``own``) below the container's below the pod's identity.

    Secrets come with ``own``: the train step has the same ``envFrom`` as its gang.

    Raises:
        InputError: a value comes from a place that this machine does not have (a ConfigMap, say).
    """
    container = main_of(pod["containers"])
    strange = [
        kind for source in container.get("envFrom", []) for kind in source if kind not in ("secretRef", "prefix")
    ]
    if strange:
        raise InputError(f"gang: envFrom has {', '.join(strange)}; on this machine only secretRef has a stand-in")
    merged = {key: value for key, value in own.items() if key not in _OWN and not key.startswith("ARGO_")}
    merged |= {"HOME": str(place.root / "tmp"), "TMPDIR": str(place.root / "tmp")}
    listed: dict[str, str] = {}
    for item in container.get("env", []):
        listed[item["name"]] = expanded(_value(item, place), listed)
    return {
        **merged,
        **listed,
        names.GANG_HOST: "processes",
        names.POD_ROOT: str(place.root),
        names.MOUNTS: json.dumps({path: str(folder) for path, folder in mounts.items()}),
        names.NODE_NAME: place.node,
        names.POD_NAME: place.pod,
        INDEX_VARIABLE: str(place.index),
    }


def _value(item: Mapping[str, Any], place: PodPlace) -> str:
    if "valueFrom" not in item:
        return str(item.get("value", ""))
    known = {
        "metadata.name": place.pod,
        "metadata.namespace": "default",
        "spec.nodeName": place.node,
        "status.podIP": "127.0.0.1",
        "status.hostIP": "127.0.0.1",
        _INDEX_FIELD: str(place.index),
    }
    path = item["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
    if path not in known:
        source = path or ", ".join(item["valueFrom"])
        raise InputError(f"gang: env {item['name']} comes from {source!r}, which this machine does not have")
    return known[path]
