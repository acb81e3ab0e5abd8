"""A template that calls no other: its variables, its image, its mounts, its limits."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Any

from argosy.workflows.engine.validation.arguments import items_of
from argosy.workflows.engine.validation.refusal import PLACEHOLDER, Refused
from argosy.workflows.engine.validation.variables import check_variables


def check_leaf(
    template: Mapping[str, Any],
    kind: str,
    path: str,
    names: Container[str],
    global_names: Container[str],
    default_image: bool,
) -> None:
    """Judge a template whose tags have been replaced as far as they can be.

    Raises:
        Refused: the first broken rule.
    """
    check_variables(template, path, names, global_names)
    if kind == "container":
        _check_mounts(template, path)
    if kind in ("container", "script") and not template[kind].get("image") and not default_image:
        raise Refused(f"{path}.{kind}.image: may not be empty")
    limit = template.get("activeDeadlineSeconds")
    if limit is not None and not _is_limit(limit):
        raise Refused(f"{path}.activeDeadlineSeconds: {limit!r} must be a positive integer > 0 or a variable")
    if template.get("parallelism") is not None:
        raise Refused(f"{path}.parallelism: is only valid for steps and dag templates")


def _check_mounts(template: Mapping[str, Any], path: str) -> None:
    taken: dict[str, str] = {}
    for index, mount in enumerate(items_of(template["container"], "volumeMounts")):
        where, place = f"{path}.container.volumeMounts[{index}].mountPath", str(mount.get("mountPath") or "")
        if place in taken:
            raise Refused(f"{where}: {place!r} already mounted in {taken[place]}")
        taken[place] = f"container.volumeMounts.{mount.get('name')}"
    for index, artifact in enumerate(items_of(template.get("inputs"), "artifacts")):
        where, place = f"{path}.inputs.artifacts[{index}].path", str(artifact.get("path") or "")
        if place in taken:
            raise Refused(f"{where}: {place!r} already mounted in {taken[place]}")
        taken[place] = f"inputs.artifacts.{artifact['name']}"


def _is_limit(value: Any) -> bool:
    text = str(value)
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return int(text) >= 0
    return isinstance(value, str) and (text.startswith(PLACEHOLDER) or (text.startswith("{{") and text.endswith("}}")))
