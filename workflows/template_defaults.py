"""``templateDefaults``: what every template has unless it says otherwise, merged as Argo merges it.

Argo uses Kubernetes' strategic merge: maps are merged key by key, lists of named things by that name, and any other
list is replaced. The body of another kind of template (a container below a dag) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

BODIES: Final = (
    *("container", "script", "resource", "dag", "steps", "suspend", "data", "http", "plugin", "containerSet"),
)
MERGE_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("volumes", "env", "parameters", "artifacts", "initContainers", "sidecars", "tasks"), "name"),
    **{"volumeMounts": "mountPath", "volumeDevices": "devicePath", "ports": "containerPort"},
    **{"tolerations": "key", "hostAliases": "ip"},
}
"""Name of a list -> what its items are told apart by (``patchMergeKey`` in the Go types of Argo and Kubernetes)."""


def with_defaults(spec: Mapping[str, Any], template: Mapping[str, Any]) -> dict[str, Any]:
    """``template`` with the ``templateDefaults`` of the workflow's ``spec`` below it."""
    defaults = spec.get("templateDefaults") or {}
    below = {key: value for key, value in defaults.items() if key not in BODIES or key in template}
    return _maps(below, template) if below else dict(template)


def _maps(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    return {**below, **{key: _merged(key, below[key], each) if key in below else each for key, each in above.items()}}


def _merged(key: str, below: Any, above: Any) -> Any:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return _maps(below, above)
    if key in MERGE_KEYS and isinstance(below, Sequence) and isinstance(above, Sequence):
        return _lists(MERGE_KEYS[key], below, above)
    return above


def _lists(key: str, below: Sequence[Any], above: Sequence[Any]) -> list[Any]:
    """``above`` in its own order; what only ``below`` has comes before what it stood before there, else at the end."""
    place = {each[key]: index for index, each in enumerate(below)}
    mine = [_maps(below[place[each[key]]], each) if each[key] in place else each for each in above]
    named = {each[key] for each in above}
    theirs = [each for each in below if each[key] not in named]
    found: list[Any] = []
    for each in mine:
        while theirs and each[key] in place and place[theirs[0][key]] < place[each[key]]:
            found.append(theirs.pop(0))
        found.append(each)
    return found + theirs
