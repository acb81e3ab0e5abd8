"""Every text of a run, with every payload: refused by name, or only a value in YAML of the same shape."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from argosy.steps.contract.errors import InputError
from argosy.workflows.compile import compile_run
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.run import TrainingRun
from tests.compile.test_structure import shape
from tests.compile.unfactored import loaded, unfactored

BASE: dict[str, Any] = {
    "name": "n",
    "image": "a/b:1",
    "step_image": "a/c:1",
    "script": "t.py",
    "args": ["x"],
    "code": "",
    "working_dir": "/w",
    "env": {"V": "x"},
    "secrets": ["s"],
    "progress_pattern": r"(?P<step>\d+)",
    "storage": {"uri": "file:///mnt/argosy/store", "claim": "c", "mount_path": "/mnt/argosy"},
    "dataset": {
        "uri": "s3://b/d",
        "manifest": "l.csv",
        "version": "a" * 64,
        "cache": {"ephemeral": "10Gi", "storage_class": "sc"},
    },
    "gang": {
        "nnodes": "2:4",
        "preload": ["m"],
        "fabric": "ib-sriov",
        "fabric_parameters": {"rdma_resource": "rdma/ib", "nics": "8", "rate": "ndr", "hca": "=mlx5_0"},
        "shm_size": "1Gi",
        "node_selector": {"k": "v"},
        "placement": "kueue",
        "queue": "gpu",
        "queue_priority": "urgent",
        "priority_class": "p",
        "service_account": "sa",
        "tolerations": [{"key": "k", "value": "v"}],
        "topology": {"required": "a.b/rack"},
        "spot": {"label": "a.b/spot", "value": "v", "tolerations": [{"key": "k", "value": "v"}]},
        "resources": {"cpu": "1", "memory": "2Gi", "gpu": 1, "gpu_resource": "a.b/c", "extended": {"d.e/f": "1"}},
        "pod": {
            "labels": {"k": "v"},
            "annotations": {"k": "v"},
            "affinity": {"nodeAffinity": {"x": ["v"]}},
            "volumes": [{"name": "v", "mount_path": "/m", "sub_path": "s", "source": {"nfs": {"server": "h"}}}],
            "scheduler": "s",
            "runtime_class": "r",
            "image_pull_secrets": ["p"],
        },
    },
    "checkpoint": {
        "mode": "opaque",
        "path": "out",
        "include": ["*.pt"],
        "unit": ["checkpoint-*"],
        "expect": ["*rank{rank}*"],
        "marker": "done",
        "resume_args": ["--resume"],
    },
    "evaluation": {
        "script": "e.py",
        "args": ["x"],
        "metric": "m",
        "direction": "min",
        "floor": 1.0,
        "shm_size": "1Gi",
        "dataset_uri": "s3://b/e",
        "resources": {"cpu": "1", "memory": "2Gi", "gpu": 1, "gpu_resource": "a.b/c", "extended": {"d.e/f": "1"}},
    },
    "promotion": {"pointer": "p"},
    "notify": {"webhook_secret": "w"},
}
NOT_HERE = {
    "module": "script",
    "evaluation.module": "evaluation.script",
    "gang.topology.preferred": "gang.topology.required",
}
"""Fields that cannot stand beside another; checked in its place."""
OWN_FABRIC: dict[str, Any] = {
    "name": "ours",
    "about": "x",
    "proven": "x",
    "gpus": "8",
    "includes": ["gang"],
    "sources": {"s": {"url": "https://x.y/z", "date": "2026-11-22"}},
    "parameters": [{"name": "p", "about": "x", "default": "v", "choices": {"v": {"c": "x"}, "w": {}}}],
    "env": [{"name": "V1", "value": "x", "why": "x", "source": "s"}, {"name": "V2", "value": "{p}"}],
    "refused": [{"name": "V3", "values": ["x"], "why": "x"}],
    "resources": [{"name": "a.b/c", "value": "1"}],
    "labels": [{"name": "a.b/c", "value": "x"}],
    "annotations": [{"name": "a.b/c", "value": "x"}],
    "volumes": [{"name": "fv", "volume": {"hostPath": {"path": "/x"}}, "mount": {"mountPath": "/fv"}}],
    "sidecars": [{"name": "s", "container": {"image": "a/b:1", "args": ["x"]}}],
    "pod": [{"name": "dnsPolicy", "value": "Default"}],
    "security": [{"name": "capability", "value": "IPC_LOCK"}],
    "shm": [{"value": "1Gi"}],
    "expect": [{"name": "network", "value": "IB"}],
    "notes": [{"text": "x"}],
}
"""gang.fabric_profile cannot stand beside gang.fabric; checked apart."""
VOLUMES = {"claim": "c", "host_path": "/mnt/nvme"}
"""Fields of dataset.cache that cannot stand beside ephemeral; checked apart."""
PAYLOADS = [
    "{{workflow.uid}}",
    "{{=1+1}}",
    "{{",
    "}}",
    "$(X)",
    "$$(X)",
    "$$",
    "\0",
    "\n",
    "a\nb: c",
    "\r",
    "\x1b[2J",
    "\ud800",
    " ",
    "'",
    '"',
    "\\",
    "\\n",
    '"}]}',
    '","--evil=1',
    "'; id",
    "`id`",
    "|id",
    "> x",
    "- a",
    "a: b",
    "? a",
    "---",
    "...",
    "&a",
    "*a",
    "!!python/object/apply:os.system ['id']",
    "!!binary x",
    "# c",
    ">-",
    "|",
    "%YAML 1.1",
    "@",
    "~",
    "null",
    "true",
    "yes",
    "y",
    "1",
    "1e3",
    "0x1f",
    "0o17",
    "1_000",
    "1:30",
    ".inf",
    "2001-01-01",
    "<<",
    "=",
    "{",
    "}",
    "[",
    "]",
    ",",
    "../../x",
    "/etc/passwd",
    "--flag",
    "-x",
    "é",
    "\u202e",
    "\u2028",
    "\x85",
    "\ufeff",
    "😀",
    "a" * 3000,
    " lead",
    "trail ",
    "<script>alert(1)</script>",
    "s3://u:p@b/x",
    "s3://b/x?X-Amz-Signature=1",
    "file:///argosy/x",
    "AKIAABCDEFGHIJKLMNOP",
]


def leaves(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict | list):
        for key, item in node.items() if isinstance(node, dict) else enumerate(node):
            yield from leaves(item, (*path, key))
    elif isinstance(node, str):
        yield path


def with_value(path: tuple[Any, ...], value: Any, fields: dict[str, Any]) -> dict[str, Any]:
    place = changed = copy.copy(fields)
    for key in path[:-1]:
        place[key] = copy.copy(place[key])
        place = place[key]
    place[path[-1]] = value
    return changed


def accepted(fields: dict[str, Any]) -> TrainingRun | None:
    try:
        return TrainingRun(**fields)
    except InputError:
        return None


def text_fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        tables = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if tables:
            yield from text_fields(tables[0], f"{prefix}{name}.")
        elif "str" in set(re.findall(r"\w+", re.sub("function <.*?>", "", str(field.annotation)))) and not any(
            get_origin(kind) is Literal for kind in kinds
        ):
            yield prefix + name


def test_no_text_field_is_forgotten() -> None:
    here = {".".join(str(key) for key in path if not isinstance(key, int)) for path in leaves(BASE)}
    known = {
        *here,
        *NOT_HERE,
        *(f"dataset.cache.{name}" for name in VOLUMES),
        "gang.runtime",
        "gang.launcher",
        "gang.fabric_profile",
    }
    missing = [
        name
        for name in text_fields(TrainingRun)
        if not any(each == name or each.startswith(f"{name}.") for each in known) and not name.startswith("trigger.")
    ]
    # exit codes are numbers in quotes, checked as such
    assert [name for name in missing if name != "retry.exit_codes"] == []


@cache
def without_payload() -> dict[str, Any]:
    return unfactored(loaded(compile_run(TrainingRun(**BASE))))


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_a_payload_changes_a_value_or_nothing(
    payload: str, gang_of: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    fields = BASE
    for path in leaves(BASE):
        # The spot nodes' label is a key of the manifest, so the shape changes.
        if path[0] in ("name", "code") or path[-1] in ("mode", "direction") or path[-2:] == ("spot", "label"):
            continue
        changed = with_value(path, payload, fields)
        if accepted(changed) is not None:
            fields = changed
    before, after = without_payload(), unfactored(loaded(compile_run(TrainingRun(**fields))))
    assert shape(after) == shape(before)
    assert shape(gang_of(after)) == shape(gang_of(before))
    assert placeholders(after) == placeholders(before)
    if fields["args"] == [payload]:
        container = gang_of(after)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
        assert f"--arg={payload}" in container["args"]


@pytest.mark.parametrize("name", VOLUMES)
def test_a_payload_names_a_cache_volume_or_is_refused(
    name: str, gang_of: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    quiet = with_value(("dataset", "cache"), {name: VOLUMES[name]}, BASE)
    before = loaded(compile_run(TrainingRun(**quiet)))
    for payload in PAYLOADS:
        changed = with_value(("dataset", "cache", name), payload, quiet)
        if accepted(changed) is not None:
            after = loaded(compile_run(TrainingRun(**changed)))
            assert shape(gang_of(after)) == shape(gang_of(before))
            assert placeholders(after) == placeholders(before)


@cache
def of_own_fabric() -> tuple[dict[str, Any], Any]:
    """A run with a fabric of its own, and its gang's shape."""
    gang = {name: value for name, value in BASE["gang"].items() if not name.startswith("fabric")}
    run = {**BASE, "gang": {**gang, "fabric_profile": OWN_FABRIC}}
    return run, shape(loaded(gang_yaml(TrainingRun(**run))))


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_a_payload_in_a_fabric_of_ones_own(payload: str) -> None:
    quiet, before = of_own_fabric()
    loud = quiet
    for path in leaves(OWN_FABRIC):
        changed = with_value(("gang", "fabric_profile", *path), payload, quiet if path[-1] == "name" else loud)
        run = accepted(changed)
        if run is None:
            continue
        if path[-1] == "name":
            # Names are keys, so the shape changes; each is tried by itself.
            assert "{{" not in gang_yaml(run)
        else:
            loud = changed
    after = gang_yaml(TrainingRun(**loud))
    assert shape(loaded(after)) == before
    assert "{{" not in after


def placeholders(document: dict[str, Any]) -> list[str]:
    return sorted(re.findall(r"\{\{.*?\}\}", json.dumps(document), re.S))
