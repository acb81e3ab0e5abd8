"""Argo's own examples as cases: the folder ``examples/`` of the very module that the cluster's Argo is built from.

None of them is kept here. ``ARGOSY_ARGO_EXAMPLES`` names another folder. What is changed in each stands below.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.document import TEMPLATE_KINDS
from argosy.workflows.engine.reading import read_documents
from tests.agreement.corpus import IMAGE, Case
from tests.cluster.pin import pins

FOLDER = "ARGOSY_ARGO_EXAMPLES"
CHANGED = (
    "Changed in each: its name and namespace; its images (to one that is there; argosay is its script) and what that "
    "one has not (/mnt, /etc/os-release); no service account, node selector or repository; smaller requests; "
    "timeouts that have time for slow pods; dice that fall for both engines as the name of their node and the seed say."
)
_CHANGES = (
    (r"\bimport random\b", "import os, random; random.seed(os.environ['ARGO_NODE_ID'] + 'SEED')"),
    (r"Math\.random\(\)", "0.SEED"),
    (r"\bRANDOM\b", "SEED"),
    ("/dev/urandom", "/dev/zero"),
    ("/etc/os-release", "/etc/nsswitch.conf"),
    ("/mnt/", "/tmp/"),
    ("2000m", "100m"),
    ("10Gi", "64Mi"),
    ('"10s"', '"25s"'),
    ('"15s"', '"45s"'),
    ('"20s"', '"90s"'),
)
_REFERENCE = re.compile(r'"(?:\w+Ref)": \{[^}]*"name": "([^"]+)"')
_Manifest = dict[str, Any]
_LIMITS: _Manifest = {
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "my-config"},
    "data": {"template": "2", "workflow": "1"},
}  # fmt: skip
"""What those with semaphores expect to be there."""


@cache
def folder() -> Path:
    """Where they lie; Go's module client fetches them when no folder is given."""
    if given := os.environ.get(FOLDER):
        return Path(given)
    pin = pins()["argo-workflows"]
    command = ["go", "mod", "download", "-json", f"{pin.module}@{pin.version}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Path(json.loads(told)["Dir"]) / "examples"


@cache
def _argosay() -> str:
    """The entry point of the image that many of them use, a shell script of the same module."""
    return (folder().parent / "test/e2e/images/argosay/v2/argosay").read_text()


def cases(seed: int) -> dict[str, Case]:
    """Every Workflow by its file's name; a CronWorkflow and a template with an entrypoint as ``submit --from`` does."""
    root, found, library = folder(), list[tuple[str, _Manifest]](), {("ConfigMap", "my-config"): _LIMITS}
    for path in sorted(root.rglob("*.yaml")):
        stem = re.sub("[^a-z0-9]+", "-", str(path.relative_to(root).with_suffix("")).lower())
        for number, manifest in enumerate(_documents(path)):
            # Kubernetes takes no longer name for what a workflow makes.
            found.append(((f"{stem}-{number}" if number else stem)[:60].strip("-"), manifest))
            if manifest["kind"] in (*TEMPLATE_KINDS, "ConfigMap"):
                library[manifest["kind"], manifest["metadata"]["name"]] = manifest
    made = (_case(name, manifest, library, seed) for name, manifest in found)
    return {case.name: case for case in made if case}


def _documents(path: Path) -> list[_Manifest]:
    """None in a file that has a key twice (``k8s-patch-json-workflow``): ``argo lint --strict`` finds none either."""
    try:
        return read_documents(path.read_bytes(), str(path))
    except InputError:
        return []


def _case(name: str, manifest: _Manifest, library: dict[tuple[str, str], _Manifest], seed: int) -> Case | None:
    kind, spec = manifest["kind"], manifest.get("spec", {})
    if kind == "CronWorkflow":
        manifest = {"metadata": spec.get("workflowMetadata") or {}, "spec": spec["workflowSpec"]}
    elif kind in TEMPLATE_KINDS and "entrypoint" in spec:
        reference = {"name": manifest["metadata"]["name"], "clusterScope": kind == TEMPLATE_KINDS[1]}
        manifest = {"metadata": {}, "spec": {"workflowTemplateRef": reference}}
    elif kind != "Workflow":
        return None
    metadata = {key: value for key, value in manifest["metadata"].items() if key in ("labels", "annotations")}
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {**metadata, "name": name}}
    workflow["spec"] = manifest["spec"]
    others = [_dressed(each, seed) for each in _needed(manifest["spec"], library)]
    return Case(name, _dressed(workflow, seed), tuple(others))


def _needed(spec: _Manifest, library: dict[tuple[str, str], _Manifest]) -> Iterator[_Manifest]:
    """The objects of the library that a spec names, and those that they name."""
    todo, seen = [spec], set[tuple[str, str]]()
    while todo:
        names = set(_REFERENCE.findall(json.dumps(todo.pop())))
        for key, manifest in library.items():
            if key[1] in names and key not in seen:
                seen.add(key)
                todo.append(manifest)
                yield manifest


def _dressed(manifest: _Manifest, seed: int) -> _Manifest:
    text = json.dumps(manifest)
    for pattern, instead in _CHANGES:
        text = re.sub(pattern, instead.replace("SEED", str(seed)), text)
    dressed: _Manifest = json.loads(text)
    dressed["metadata"].pop("namespace", None)
    _dress(dressed.get("spec"))
    return dressed


def _dress(value: Any) -> None:
    if isinstance(value, dict):
        if "image" in value:
            if "argosay" in str(value["image"]) and "command" not in value:
                value["command"] = ["sh", "-c", _argosay(), "argosay"]
            value["image"] = IMAGE
            value.pop("imagePullPolicy", None)
        for key in ("serviceAccountName", "nodeSelector", "artifactRepositoryRef"):
            value.pop(key, None)
        for each in value.values():
            _dress(each)
    elif isinstance(value, list):
        for each in value:
            _dress(each)
