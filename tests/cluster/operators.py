"""What Argo, JobSet and Kueue need in the API server: their CRDs and webhooks, from their modules' own files."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.api import Api, ApiError
from tests.cluster.control_plane import JOBSET_WEBHOOKS, KUEUE_WEBHOOKS
from tests.cluster.instance import cache_folder
from tests.cluster.pin import Pin, pins
from tests.cluster.progress import wait_for

CONTROLLER = Path(__file__).parent / "manifests" / "argo.yaml"
CRDS = {
    "argo-workflows": "manifests/base/crds/minimal/argoproj.io_*.yaml",
    "jobset": "config/components/crd/bases/*.yaml",
    "kueue": "config/components/crd/bases/*.yaml",
}
STRICT = ("argoproj.io_workflows.yaml", "argoproj.io_workflowtemplates.yaml")
"""Argo's kinds whose whole schema is served, so that unknown fields are refused. The schemas of the others (a megabyte
each, of kinds that nobody here writes) would double the API server's start and its memory."""
WEBHOOKS = {
    "jobset": (JOBSET_WEBHOOKS, ("",)),
    "kueue": (KUEUE_WEBHOOKS, ("kueue-x-k8s-io", "batch-v1-job", "jobset-x-k8s-io")),
}
"""Port, and what a webhook's path contains that is wanted (Kueue's for kinds that are not there stay away)."""
FURTHER = ("kubeflow-org", "ray-io-v1-rayjob")
"""The same of Kueue's for the kinds of Kubeflow's operators and of KubeRay's."""
OF_JOBSETS = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}


def install(api: Api, folders: dict[str, Path]) -> None:
    """CRDs, until they serve, and the Argo controller's settings."""
    crds = [crd for name in CRDS for crd in _crds(pins()[name], folders[name])]
    for crd in crds:
        _store_newest(crd)
        api.create(crd)
    wait_served(api, crds)
    api.apply(yaml.safe_load_all(CONTROLLER.read_text()))


def _store_newest(crd: dict[str, Any]) -> None:
    """Kueue stores the version before, and converts by a webhook; without that a topology it assigned is lost."""
    if crd["spec"]["group"] == "kueue.x-k8s.io":
        *_, newest = versions = crd["spec"]["versions"]
        for version in versions:
            version["storage"] = version is newest


def wait_served(api: Api, crds: list[dict[str, Any]]) -> None:
    """Until their kinds are there: the API server takes a CRD some time before it serves it."""
    for crd in crds:
        version, kind = f"{crd['spec']['group']}/{crd['spec']['versions'][-1]['name']}", crd["spec"]["names"]["kind"]
        wait_for(f"{version} {kind} to be served", partial(_serves, api, version, kind), 120)


def _serves(api: Api, version: str, kind: str) -> bool:
    try:
        return bool(api.path(version, kind, "default"))
    except (ApiError, KeyError):
        return False


def _crds(pin: Pin, folder: Path) -> list[dict[str, Any]]:
    """Argo's are megabytes of YAML, which take seconds to read: they are kept as JSON."""
    kept = cache_folder() / "crds" / f"{pin.name}-{pin.version}.json"
    if not kept.exists():
        paths = sorted(pin.manifest_folder(folder).glob(CRDS[pin.name]))
        paths = [path.parents[1] / "full" / path.name if path.name in STRICT else path for path in paths]
        crds = [yaml.load(path.read_text(), Loader=yaml.CSafeLoader) for path in paths]
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(crds))
        part.rename(kept)
    made: list[dict[str, Any]] = json.loads(kept.read_text())
    return made


def register_webhooks(api: Api, folders: dict[str, Path], authority: Path, further: tuple[str, ...] = ()) -> None:
    """Tell the API server of JobSet's and Kueue's webhooks, and of ``further`` ones; they must answer already."""
    pem = base64.b64encode(authority.read_bytes()).decode()
    api.apply(made for name in WEBHOOKS for made in _configurations(name, folders[name], pem, further))


def _configurations(name: str, folder: Path, authority: str, further: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    port, wanted = WEBHOOKS[name]
    wanted += further
    path = pins()[name].manifest_folder(folder) / "config/components/webhook/manifests.yaml"
    for document in yaml.safe_load_all(path.read_text()):
        if not document:
            continue
        kept = []
        for hook in document["webhooks"]:
            where = hook["clientConfig"]["service"]["path"]
            if any(word in where for word in wanted):
                hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{where}", "caBundle": authority}
                if "pods" in hook["rules"][0]["resources"]:  # as JobSet's own kustomization does it
                    hook["objectSelector"] = OF_JOBSETS
                kept.append(hook)
        document["webhooks"] = kept
        document["metadata"] = {"name": f"{name}-{document['kind'].removesuffix('WebhookConfiguration').lower()}"}
        yield document
