"""The workflows that both engines run: the named ones of ``cases/*.yaml`` and the random ones, by seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.agreement.random_dags import random_case

IMAGE = "argosy/step:0.1.0"
"""An image with sh and python3 that the test cluster has."""
SEEDS = [seed for seed in range(1, 121) if seed != 43]
"""Of the random workflows ``random-SEED``; never renumbered, so that an answer stays the answer to its question.

43: whether the hook of a loop as a whole runs is a race between its end and that of another task in the controller.
"""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CASES = Path(__file__).with_name("cases")
_RESTRICTED = {
    "runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}  # fmt: skip
_STOCK = """
- name: ok
  container: {command: ["true"]}
- name: bad
  container: {command: ["false"]}
- name: broken
  outputs: {parameters: [{name: never, valueFrom: {path: /tmp/never}}]}
  container: {command: ["true"]}
- name: exit
  inputs: {parameters: [{name: code}]}
  container: {command: [sh, -c, "exit $0", "{{inputs.parameters.code}}"]}
- name: say
  inputs: {parameters: [{name: text}]}
  outputs: {parameters: [{name: said, valueFrom: {path: /tmp/said}}]}
  container: {command: [sh, -c, 'printf %s "$0" | tee /tmp/said', "{{inputs.parameters.text}}"]}
- name: nap
  container: {command: [sleep, "3"]}
"""


@dataclass(frozen=True)
class Case:
    """One workflow with the WorkflowTemplates and ConfigMaps that it needs."""

    name: str
    workflow: dict[str, Any]
    others: tuple[dict[str, Any], ...] = ()

    def yaml(self) -> bytes:
        """What is given to the local engine: all of it in one file (JSON is YAML, and names no text a boolean)."""
        return "\n---\n".join(json.dumps(each) for each in (*self.others, self.workflow)).encode()


def named() -> Iterator[Case]:
    """The cases of the table."""
    for path in sorted(_CASES.glob("*.yaml")):
        for name, body in yaml.load(path.read_text(encoding="utf-8"), _LOADER).items():
            yield _case(name, body)


def seeded() -> Iterator[Case]:
    """The random cases."""
    for seed in SEEDS:
        yield _case(f"random-{seed}", random_case(seed))


@cache
def every() -> dict[str, Case]:
    """All cases by name."""
    return {case.name: case for case in (*named(), *seeded())}


def names() -> list[str]:
    """Those of :func:`every`, without reading their bodies: each worker asks for them, and one runs them."""
    texts = [path.read_text(encoding="utf-8") for path in _CASES.glob("*.yaml")]
    return sorted([*re.findall(r"(?m)^([\w-]+):", "\n".join(texts)), *(f"random-{seed}" for seed in SEEDS)])


@cache
def _stock() -> str:
    return json.dumps(yaml.load(_STOCK, _LOADER))


def _case(name: str, body: dict[str, Any]) -> Case:
    spec = dict(body)
    main = spec.pop("main", None)
    references = spec.pop("references", {})
    configs = [{"apiVersion": "v1", "kind": "ConfigMap", **each} for each in spec.pop("configs", [])]
    metadata = {"name": name, **spec.pop("metadata", {})}
    if main is not None:
        spec = {"entrypoint": "main", **spec}
        own = [{"name": "main", **main}, *spec.get("templates", [])]
        used = {template["name"] for template in own}
        spec["templates"] = [*own, *(each for each in json.loads(_stock()) if each["name"] not in used)]
    workflow = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec}
    templates = [
        {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": key}, "spec": value}
        for key, value in references.items()
    ]
    for manifest in (workflow, *templates):
        _dress(manifest["spec"])
    return Case(name, workflow, (*configs, *templates))


def _dress(value: Any) -> None:
    """Give every container its image and what Pod Security *restricted* asks for."""
    if isinstance(value, dict):
        for kind in ("container", "script"):
            if isinstance(value.get(kind), dict):
                _dress_container(value[kind])
        for each in (value.get("containerSet") or {}).get("containers") or []:
            _dress_container(each)
        for each in value.values():
            _dress(each)
    elif isinstance(value, list):
        for each in value:
            _dress(each)


def _dress_container(container: dict[str, Any]) -> None:
    container.setdefault("image", IMAGE)
    container.setdefault("securityContext", _RESTRICTED)
