"""From a template and the arguments of a call to the template with its values in place."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.gotext import any_string, json_text
from argosy.workflows.engine.operation import TemplateError
from argosy.workflows.engine.substitute import Substitution

_ABSENT = re.compile(r"\{\{\s*(?:tasks|steps)\.[^{}]*\.outputs\.[^{}]*\}\}")


def processed(
    template: Mapping[str, Any], arguments: Mapping[str, Any], names: Mapping[str, str], local: Mapping[str, str]
) -> dict[str, Any]:
    """A copy of ``template`` whose inputs have values and whose tags are replaced as far as they can be.

    Raises:
        TemplateError: an input without value, or a value outside its ``enum``.
    """
    result: dict[str, Any] = copy.deepcopy(dict(template))
    inputs = result.get("inputs") or {}
    given = {each["name"]: each for each in arguments.get("parameters") or []}
    for parameter in inputs.get("parameters") or []:
        parameter["value"] = _value(parameter, given.get(parameter["name"]))
    artifacts = {each["name"]: each for each in arguments.get("artifacts") or []}
    inputs["artifacts"] = [_artifact(each, artifacts.get(each["name"])) for each in inputs.get("artifacts") or []]
    result["inputs"] = inputs
    # Two passes, as the controller does it: the template's own inputs after everything from outside.
    result = Substitution({**names, **local}).tree(result)
    result = Substitution(_own_names(result)).tree(result)
    return result


def _value(parameter: Mapping[str, Any], argument: Mapping[str, Any] | None) -> str:
    value = parameter.get("value")
    if value is None:
        value = parameter.get("default")
    if argument is not None and argument.get("value") is not None and not _is_absent(argument["value"]):
        value = argument["value"]
    if value is None:
        raise TemplateError(f"inputs.parameters.{parameter['name']} was not supplied")
    text = any_string(value)
    allowed = [any_string(each) for each in parameter.get("enum") or []]
    if allowed and text not in allowed:
        raise TemplateError(f"inputs.parameters.{parameter['name']}: {text!r} is not one of {', '.join(allowed)}")
    return text


def _is_absent(value: Any) -> bool:
    """The output of a node that was skipped: the reference stands there still."""
    return isinstance(value, str) and _ABSENT.fullmatch(value.strip()) is not None


def _artifact(declared: dict[str, Any], argument: Mapping[str, Any] | None) -> dict[str, Any]:
    if argument is not None:
        for kind in ("stored", "raw"):
            if kind in argument:
                return {**{key: value for key, value in declared.items() if key != "raw"}, kind: argument[kind]}
    if "raw" not in declared and not declared.get("optional"):
        raise TemplateError(f"inputs.artifacts.{declared['name']} was not supplied")
    return declared


def _own_names(template: Mapping[str, Any]) -> dict[str, str]:
    inputs, outputs = template.get("inputs") or {}, template.get("outputs") or {}
    parameters = inputs.get("parameters") or []
    names = {f"inputs.parameters.{each['name']}": each["value"] for each in parameters}
    if parameters:
        names["inputs.parameters"] = json_text([{"name": each["name"], "value": each["value"]} for each in parameters])
    for artifact in inputs.get("artifacts") or []:
        if artifact.get("path"):
            names[f"inputs.artifacts.{artifact['name']}.path"] = artifact["path"]
    for artifact in outputs.get("artifacts") or []:
        if artifact.get("path"):
            names[f"outputs.artifacts.{artifact['name']}.path"] = artifact["path"]
    for parameter in outputs.get("parameters") or []:
        path = (parameter.get("valueFrom") or {}).get("path")
        if path:
            names[f"outputs.parameters.{parameter['name']}.path"] = path
    return names
