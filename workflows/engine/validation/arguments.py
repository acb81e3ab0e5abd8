"""Arguments: what a call gives, and a template with what it was given in place."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.gotext import any_string, json_text
from argosy.workflows.engine.validation.names import check_names
from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.tags import Placeholders, replaced

Tree = dict[str, Any]
LOCATIONS = ("artifactory", "azure", "git", "gcs", "hdfs", "http", "oss", "raw", "s3", "plugin")
"""In Argo's order: the first that is there counts."""
_COMPLETE = {
    "s3": ("endpoint", "bucket", "key"), "git": ("repo",), "artifactory": ("url", "usernameSecret"),
    "azure": ("endpoint", "container", "blob"), "hdfs": ("addresses",), "http": ("url",), "gcs": ("bucket", "key"),
    "oss": ("bucket", "endpoint", "key"), "plugin": ("name", "configuration", "key"), "raw": (),
}  # fmt: skip
_KEYS = {"s3": "key", "azure": "blob", "hdfs": "path", "gcs": "key", "oss": "key", "plugin": "key"}
_OF_THE_POD = ("path", "mode", "recurseMode")
_NOT_OF_ARGUMENTS = ("path", "jsonPath", "parameter", "expression")


def check_arguments(arguments: Mapping[str, Any], where: str) -> None:
    """The rules for what a call gives, or the workflow is given.

    Raises:
        Refused: the first broken rule.
    """
    parameters, artifacts = items_of(arguments, "parameters"), items_of(arguments, "artifacts")
    check_names(parameters, f"{where}.parameters", of_values=True)
    check_names(artifacts, f"{where}.artifacts", of_values=True)
    for parameter in parameters:
        _check_parameter(parameter, f"{where}.parameters.{parameter['name']}")
    for artifact in artifacts:
        path = f"{where}.artifacts.{artifact['name']}"
        if not artifact.get("from") and not has_location(artifact):
            # fromExpression alone is refused here too: Argo looks at from, location and key only.
            raise Refused(f"{path}: from, an artifact's location, or a key is required")
        if artifact.get("from") and artifact.get("fromExpression"):
            raise Refused(f"{path}: has both from and fromExpression; choose one")


def _check_parameter(parameter: Mapping[str, Any], path: str) -> None:
    source = parameter.get("valueFrom")
    if source is None and parameter.get("value") is None:
        remedy = f"; give one with -p {parameter['name']}=VALUE" if path.startswith("spec.") else ""
        raise Refused(f"{path}: value or valueFrom is required{remedy}")
    if source is not None:
        allowed = source.get("configMapKeyRef") is not None or source.get("event") or source.get("supplied") is not None
        if not allowed or any(source.get(key) for key in _NOT_OF_ARGUMENTS):
            raise Refused(f"{path}.valueFrom: only allows default, configMapKeyRef and supplied")
    enum = parameter.get("enum")
    if enum is not None:
        if not enum:
            raise Refused(f"{path}.enum: should contain at least one value")
        if parameter.get("value") is None:
            raise Refused(f"{path}: a value is required beside an enum")
        if text_of(parameter["value"]) not in [text_of(each) for each in enum]:
            raise Refused(f"{path}: {text_of(parameter['value'])!r} should be present in its enum list")


def text_of(value: Any) -> str:
    """A value as Argo reads it: a list or a map becomes the empty text."""
    return "" if isinstance(value, list | dict) else any_string(value)


def items_of(holder: Mapping[str, Any] | None, key: str) -> list[Tree]:
    """The list ``key`` of a holder, empty where either is not there."""
    return [each or {} for each in (holder or {}).get(key) or []]


def has_location(artifact: Mapping[str, Any]) -> bool:
    """Whether an artifact says where it lies, or at least under which key."""
    kind = next((each for each in LOCATIONS if artifact.get(each) is not None), None)
    if kind is None:
        return False
    location = artifact[kind] or {}
    if all(location.get(key) for key in _COMPLETE[kind]):
        return True
    if kind in ("artifactory", "http"):
        return "/" in str(location.get("url") or "").partition("://")[2]
    return bool(location.get(_KEYS.get(kind, "")))


def with_arguments(
    template: Mapping[str, Any],
    arguments: Mapping[str, Any] | None,
    global_names: Mapping[str, str],
    local_names: Mapping[str, str],
    placeholders: Placeholders,
) -> Tree:
    """A copy of ``template`` with its inputs and every tag known now in place; None for arguments of any value.

    Raises:
        Refused: an input that nobody supplies.
    """
    new: Tree = copy.deepcopy(dict(template))
    inputs: Tree = dict(new.get("inputs") or {})
    where = f"templates.{template.get('name') or 'inline'}"
    inputs["parameters"] = [_input(each, arguments, placeholders, where) for each in items_of(inputs, "parameters")]
    inputs["artifacts"] = [_artifact(each, arguments, where) for each in items_of(inputs, "artifacts")]
    new["inputs"] = inputs
    names = {**global_names, **local_names}
    new = replaced(new, names)
    names |= _own_names(new)
    return dict(replaced(new, names))


def _input(declared: Tree, arguments: Mapping[str, Any] | None, placeholders: Placeholders, where: str) -> Tree:
    parameter = dict(declared)
    if parameter.get("value") is None and parameter.get("default") is not None:
        parameter["value"] = parameter["default"]
    name = parameter.get("name")
    given: Tree | None = {"value": placeholders.next()}
    if arguments is not None:
        given = next((each for each in items_of(arguments, "parameters") if each.get("name") == name), None)
    if given is not None:
        value = given.get("value")
        parameter["value"] = value
        parameter["valueFrom"] = given.get("valueFrom") if value is None else None
    if parameter.get("value") is not None:
        parameter["value"] = text_of(parameter["value"])
    elif (parameter.get("valueFrom") or {}).get("configMapKeyRef") is None:
        raise Refused(f"{where}.inputs.parameters.{name}: was not supplied; give it a value as an argument")
    return parameter


def _artifact(declared: Tree, arguments: Mapping[str, Any] | None, where: str) -> Tree:
    name = declared.get("name")
    given: Tree | None = {"name": name}
    if arguments is not None:
        given = next((each for each in items_of(arguments, "artifacts") if each.get("name") == name), None)
    if given is None:
        if not declared.get("optional") and not has_location(declared):
            raise Refused(f"{where}.inputs.artifacts.{name}: was not supplied; give it as an argument")
        return declared
    result = {key: value for key, value in given.items() if key not in _OF_THE_POD}
    return result | {key: value for key, value in declared.items() if key in _OF_THE_POD}


def _own_names(template: Mapping[str, Any]) -> dict[str, str]:
    inputs, outputs = template["inputs"], template.get("outputs") or {}
    values = {each["name"]: each["value"] for each in inputs["parameters"] if each.get("value") is not None}
    names = {f"inputs.parameters.{name}": value for name, value in values.items()}
    names["inputs.parameters"] = json_text([{"name": name, "value": value} for name, value in values.items()])
    for side, holder in (("inputs", inputs), ("outputs", outputs)):
        for artifact in items_of(holder, "artifacts"):
            if artifact.get("path"):
                names[f"{side}.artifacts.{artifact.get('name')}.path"] = str(artifact["path"])
    for parameter in items_of(outputs, "parameters"):
        path = (parameter.get("valueFrom") or {}).get("path")
        if path:
            names[f"outputs.parameters.{parameter.get('name')}.path"] = str(path)
    return names
