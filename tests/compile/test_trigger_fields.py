"""Every field of [trigger] changes what starts the run, and no text of it changes the shape of that."""

from __future__ import annotations

import copy
import json
import re
from functools import cache
from typing import Any

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.explain import field_paths
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.trigger.argo_events import argo_events_documents
from argosy.workflows.trigger.deciding import deciding_documents
from argosy.workflows.yaml_text import to_yaml
from tests.compile.test_every_text_field import PAYLOADS, placeholders, shape
from tests.compile.unfactored import loaded_all

BASE: dict[str, Any] = {
    "name": "n",
    "script": "t.py",
    "code": "",
    "dataset": {"uri": "s3://b/d"},
    "trigger": {"marker": ["_SUCCESS"], "prefix": "a/", "event_source": {"sqs": {"queue": "q", "region": "r"}}},
}
GROWING: dict[str, Any] = {"marker": ["_SUCCESS"], "prefix": "a/", "suffix": ".tar"}
CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "on": ("quiet", {}),
    "marker": (["done"], {}),
    "prefix": ("b/", {}),
    "suffix": (".zip", {"on": "quiet"}),
    "quiet_seconds": (7, {"on": "quiet"}),
    "new_objects": (7, {"on": "count", "new_objects": 9}),
    "new_bytes": (7, {"on": "bytes", "new_bytes": 9}),
    "schedule": ("1 2 * * *", {"on": "schedule", "schedule": "0 2 * * *"}),
    "max_starts_per_hour": (7, {}),
    "while_running": ("skip", {}),
    "continue_from": ("production", {}),
    "backfill": (True, {}),
    "event_source": ({"sqs": {"queue": "other", "region": "r"}}, {}),
    "event_bus": ("other", {}),
}
WATCH_ONLY = {"poll_seconds"}
"""Of `argosy watch`; a cluster's reconciler has a schedule."""


def rendered(trigger: dict[str, Any]) -> str:
    run = TrainingRun(**{**copy.deepcopy(BASE), "trigger": trigger})
    return "---\n".join(to_yaml(each) for each in (*deciding_documents(run), *argo_events_documents(run)))


def test_every_field_is_covered() -> None:
    fields = {path.removeprefix("trigger.") for path in field_paths() if path.startswith("trigger.")}
    assert {*CHANGES, *WATCH_ONLY} == fields


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_changes_what_starts_the_run(name: str) -> None:
    value, needed = CHANGES[name]
    base = {"event_source": BASE["trigger"]["event_source"], **needed}
    assert rendered({**base, name: value}) != rendered(base)


def test_argos_server_knows_every_function_of_the_event_binding() -> None:
    """It evaluates them by expr, without the sprig and toJson of Argo's templates."""
    run = TrainingRun(**copy.deepcopy(BASE))
    (binding,) = [each["spec"] for each in deciding_documents(run) if each["kind"] == "WorkflowEventBinding"]
    given = binding["submit"]["arguments"]["parameters"]
    called = {name for each in given for name in re.findall(r"([\w.]+)\(", each["valueFrom"]["event"])}
    assert called == {"toBase64", "toJSON"}


@cache
def loaded_from(trigger: str) -> list[Any]:
    return list(loaded_all(rendered(json.loads(trigger))))


@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_a_payload_changes_a_value_or_nothing(payload: str) -> None:
    marked, grown = BASE["trigger"], {**GROWING, "on": "quiet"}
    source = {"sqs": {"queue": payload, "region": payload}}
    tries: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (marked, {"marker": [payload]}),
        (marked, {"prefix": payload}),
        (marked, {"event_source": source}),
        (marked, {"event_bus": payload}),
        (marked, {"continue_from": payload}),
        (grown, {"suffix": payload}),
    ]
    for base, change in tries:
        try:
            after = list(loaded_all(rendered({**base, **change})))
        except InputError:
            continue
        quiet = {name: "production" if name in ("event_bus", "continue_from") else base.get(name) for name in change}
        before = loaded_from(json.dumps({**base, **quiet}))
        assert shape(after) == shape(before)
        assert [placeholders(each) for each in after] == [placeholders(each) for each in before], change
