"""What all pods of a Workflow have in common, written once.

Templates are made self-contained, so that each can stand in a Workflow of the user's. In a Workflow of our own the
same security context, volumes and environment would stand in it eight times; here they move to its spec and its
``templateDefaults``, from where Argo merges them into every template. ``retryStrategy`` stays: from the defaults it
would also be the graph's, and Argo would start a failed graph again from its beginning.

A WorkflowTemplate is left as it is: to a Workflow that refers to one of its templates Argo gives neither its spec nor
its defaults.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.workflows.template_defaults import MERGE_KEYS
from argosy.workflows.yaml_text import to_yaml

_OF_CONTAINERS: Final = ("image", "env", "envFrom", "resources", "securityContext", "volumeMounts")
_ABSENT: Final = object()
_NO_REST: Final = object()


def factored(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same Workflow with what its container templates share in one place; means the same to Argo."""
    spec = dict(document["spec"])
    templates = [dict(each) for each in spec.pop("templates")]
    pods = [each for each in templates if "container" in each]
    for pod in pods:
        pod["container"] = dict(pod["container"])
        if pod.get("serviceAccountName") == spec.get("serviceAccountName"):
            pod.pop("serviceAccountName", None)
    shared = {
        **_same(pods, "securityContext"),
        **_share(pods, "volumes"),
        **_share_patch(pods),
    }
    containers = [pod["container"] for pod in pods]
    defaults = {key: value for name in _OF_CONTAINERS for key, value in _share(containers, name).items()}
    below = {"templateDefaults": {"container": defaults}} if defaults else {}
    return {**document, "spec": {**spec, **shared, **below, "templates": templates}}


def _same(pods: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Take the field that is equal in all: a template's own replaces the spec's and is not merged with it."""
    value = pods[0].get(name)
    if value is None or any(pod.get(name) != value for pod in pods):
        return {}
    for pod in pods:
        del pod[name]
    return {name: value}


def _share(holders: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Take from every holder's field what one default can supply; the default, or {} where there is none."""
    values = [holder.get(name, _ABSENT) for holder in holders]
    default = _default(name, values)
    rests = [_rest(name, default, value) for value in values]
    if default is _ABSENT or default == [] or _ABSENT in rests:
        return {}
    for holder, rest in zip(holders, rests, strict=True):
        del holder[name]
        if rest is not _NO_REST:
            holder[name] = rest
    return {name: default}


def _default(name: str, values: Sequence[Any]) -> Any:
    """Of a list what all have; of anything else the most frequent."""
    if name in MERGE_KEYS and all(isinstance(value, list) for value in values):
        return [each for each in values[0] if all(each in value for value in values)]
    counted = Counter(json.dumps(value, sort_keys=True) for value in values if value is not _ABSENT)
    (text, count), *_ = counted.most_common(1) or [("", 0)]
    return json.loads(text) if count > 1 else _ABSENT


def _rest(name: str, default: Any, value: Any) -> Any:
    """What must stand above ``default`` to make ``value`` of it; absent, where ``value`` has less than the default."""
    if default == value:
        return _NO_REST
    if name in MERGE_KEYS and isinstance(default, list) and isinstance(value, list):
        return [each for each in value if each not in default] or _NO_REST
    if isinstance(default, dict) and isinstance(value, dict):
        rests = {key: _rest(key, default.get(key, _ABSENT), value.get(key, _ABSENT)) for key in {**default, **value}}
        if any(rest is _ABSENT for rest in rests.values()):
            return _ABSENT
        return {key: rest for key, rest in rests.items() if rest is not _NO_REST}
    return value


def _share_patch(pods: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """``podSpecPatch``: Argo applies the spec's and then the template's, so each key may stand in either."""
    patches = [json.loads(pod.get("podSpecPatch", "{}")) for pod in pods]
    common = {key: value for key, value in patches[0].items() if all(each.get(key) == value for each in patches)}
    for pod, patch in zip(pods, patches, strict=True):
        own = {key: value for key, value in patch.items() if key not in common}
        pod.pop("podSpecPatch", None)
        if own:
            pod["podSpecPatch"] = to_yaml(own).strip()
    return {"podSpecPatch": to_yaml(common)} if common else {}
