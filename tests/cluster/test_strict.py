"""What a real API server says to every manifest that compiles: strict fields, webhooks, Pod Security *restricted*.

Admission looks at pods only when they are created, so a bare pod is made of each pod template too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.workflows.code import pack
from argosy.workflows.compile import compile_run
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.placement import RENDERED, RUNTIMES
from argosy.workflows.spec.run import TrainingRun
from tests.cluster.api import ApiError
from tests.cluster.client import Client
from tests.cluster.images import CHECKOUT
from tests.fabric.cases import GANGS, case

GOLDENS = sorted((CHECKOUT / "tests/goldens").rglob("*.yaml"))
EXAMPLES = sorted((CHECKOUT / "examples").glob("*/*.toml"))
HERA = CHECKOUT / "examples/hera-compose"
OPERATED = not os.environ.get("ARGOSY_KUBECONFIG")
"""Whether the operators of the further runtimes can be had: another's cluster stays as it is."""
PAIRS = [(runtime, placement) for runtime, placements in RUNTIMES.items() for placement in placements
         if placement not in RENDERED
         and (OPERATED or (runtime in ("jobset", "job") and placement != "volcano"))]  # fmt: skip
TAG = re.compile(r"\{\{.*?\}\}")
"""What Argo replaces before it creates a pod."""
BEYOND = re.compile(r"hostNetwork: true|hostPath:|privileged: true|- IPC_LOCK")
"""What a fabric of the user's choice asks for and *restricted* forbids."""


@pytest.fixture(scope="session")
def manifests(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, str]:
    """Every golden, fabric and example with every runtime and placement, and the Hera script's: name to text."""
    there = request.getfixturevalue("operators") if OPERATED else set()
    folder = tmp_path_factory.mktemp("compiled")
    made = {str(path.relative_to(CHECKOUT)): path.read_text() for path in GOLDENS}
    made |= {f"fabric {name}": gang_yaml(case(name)) for name in GANGS}
    for path in EXAMPLES:
        code = pack(path.parent)
        table = tomllib.loads(path.read_text())
        for runtime, placement in PAIRS:
            if placement == "volcano" and "volcano" not in there:
                continue
            queue = {"queue": "runs"} if placement in ("kueue", "volcano") else {}
            gang = table.get("gang", {}) | {"runtime": runtime, "placement": placement} | queue
            run = TrainingRun.model_validate(table | {"gang": gang})
            name = f"{path.relative_to(CHECKOUT)} {runtime} {placement}"
            made[name] = compile_run(run, code=code).decode()
    copied = shutil.copytree(HERA, folder / "hera", ignore=shutil.ignore_patterns(".argosy"))
    done = subprocess.run([sys.executable, "compose.py"], cwd=copied, check=True, capture_output=True, text=True)
    return made | {"examples/hera-compose/compose.py": done.stdout}


def gangs(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that travel in a Workflow as raw artifacts; a gang on a fabric is one itself."""
    if "Workflow" not in document["kind"]:
        yield document
        return
    for template in document["spec"]["templates"]:
        for artifact in template.get("inputs", {}).get("artifacts", []):
            for inside in yaml.safe_load_all(artifact.get("raw", {}).get("data", "")):
                if isinstance(inside, dict) and "apiVersion" in inside:
                    yield inside


def pod_templates(document: Any) -> Iterator[dict[str, Any]]:
    """Every pod's spec inside a gang's object."""
    if isinstance(document, dict):
        if "containers" in document:
            yield document
        for value in document.values():
            yield from pod_templates(value)
    elif isinstance(document, list):
        for value in document:
            yield from pod_templates(value)


def pods(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A bare pod of each of our templates, as Argo makes it but for Argo's own containers, and of each gang's pod."""
    spec = document["spec"] if "Workflow" in document["kind"] else {"templates": []}
    defaults = spec.get("templateDefaults", {})
    for template in spec["templates"]:
        container = {**defaults.get("container", {}), **template.get("container", {}), "name": "main"}
        if "container" in template and container["image"].startswith("argosy/"):
            volumes = [*spec.get("volumes", []), *defaults.get("volumes", []), *template.get("volumes", [])]
            found = (level.get("securityContext") for level in (template, defaults, spec))
            security: dict[str, Any] = next((context for context in found if context), {})
            yield template["name"], {"containers": [container], "volumes": volumes, "securityContext": security}
    for gang in gangs(document):
        for found_spec in pod_templates(gang):
            yield f"{gang['kind']} {gang['metadata']['name']}", found_spec


def test_argo_lints_every_manifest(client: Client, manifests: dict[str, str], tmp_path: Path) -> None:
    written = 0
    for name, text in manifests.items():
        if "kind: Workflow" in text:
            (tmp_path / f"{re.sub('[^a-z0-9-]', '-', name)}.yaml").write_text(text)
            written += 1
    assert written >= len(EXAMPLES) * sum(placement != "volcano" for _, placement in PAIRS)
    client.argo("lint", "--offline", "--strict", "-o", "simple", tmp_path, namespace="default", timeout=600)


def test_every_manifest_is_accepted_strictly(client: Client, namespace: str, manifests: dict[str, str]) -> None:
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "training"}}
    client.api.apply([priority | {"value": 1}])  # a golden names it
    refused: list[str] = []
    seen: dict[str, str] = {}
    for name, text in manifests.items():
        for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
            objects = [(document["kind"], document), *((gang["kind"], gang) for gang in gangs(document))]
            for what, made in [*objects, *((what, _pod(spec)) for what, spec in pods(document))]:
                seen.setdefault(json.dumps(made, default=str), f"{name}, {what}")
    runtimes = [made for made in map(json.loads, seen) if made["kind"] == "TrainingRuntime"]
    for made in {each["metadata"]["name"]: each for each in runtimes}.values():
        client.api.create(made, namespace)  # not dry: a TrainJob is refused before the one it names is there
    for text, name in seen.items():
        made = json.loads(text if "Workflow" in name.rpartition(" ")[2] else TAG.sub("x", text))
        if made["kind"] == "TrainingRuntime":
            made["metadata"]["name"] += "-dry"
        beyond = made["kind"] == "Pod" and BEYOND.search(yaml.safe_dump(made))
        try:
            client.api.create(made, "default" if beyond else namespace, dry_run=True)
        except ApiError as error:
            refused.append(f"{name}: {error}")
    assert refused == []
    assert len(seen) > 100, "manifests were lost on the way"


def _pod(spec: dict[str, Any]) -> dict[str, Any]:
    spec = {**spec, "serviceAccountName": "default"}  # an account of the user's own is not there
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "dry-"}, "spec": spec}


@pytest.mark.parametrize(
    ("change", "message"),
    [({"contaners": []}, "unknown field"), ({"hostNetwork": True}, "violates PodSecurity")],
)
def test_the_checks_can_fail(client: Client, namespace: str, change: dict[str, Any], message: str) -> None:
    security = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    spec = {"containers": [{"name": "main", "image": "x", "securityContext": own}], "securityContext": security}
    client.api.create(_pod(spec), namespace, dry_run=True)
    with pytest.raises(ApiError, match=message):
        client.api.create(_pod(spec | change), namespace, dry_run=True)
