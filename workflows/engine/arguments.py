"""From a template and the arguments of a call to the template with its values in place."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from argosy.workflows.engine.artifacts import SOURCES
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.gotext import any_string, json_text
from argosy.workflows.engine.operation import TemplateError
from argosy.workflows.engine.substitute import EVERYTHING, Substitution

ABSENT = "\x00absent"
"""Stands for an argument that is nothing but the output of a skipped node; no value of a workflow can hold a NUL."""


def processed(
    template: Mapping[str, Any],
    arguments: Mapping[str, Any],
    names: Mapping[str, str],
    local: Mapping[str, str],
    configs: ConfigMaps,
) -> dict[str, Any]:
    """A copy of ``template`` whose inputs have values and whose tags are replaced as far as they can be.

    Raises:
        TemplateError: an input without value.
        ExpressionError: a value that no JSON can hold.
    """
    result: dict[str, Any] = copy.deepcopy(dict(template))
    inputs = result.get("inputs") or {}
    given = {each["name"]: each for each in arguments.get("parameters") or []}
    for parameter in inputs.get("parameters") or []:
        parameter["value"] = _value(parameter, given.get(parameter["name"]), names, configs)
        parameter.pop("valueFrom", None)
    artifacts = {each["name"]: each for each in arguments.get("artifacts") or []}
    inputs["artifacts"] = [_artifact(each, artifacts.get(each["name"])) for each in inputs.get("artifacts") or []]
    result["inputs"] = inputs
    # Two passes, as the controller does it: the template's own inputs after everything from outside.
    result = Substitution({**names, **local}).tree(result)
    result = Substitution(_own_names(result)).tree(result)
    return result


def _value(
    parameter: Mapping[str, Any], argument: Mapping[str, Any] | None, names: Mapping[str, str], configs: ConfigMaps
) -> str:
    value, source = parameter.get("value"), parameter.get("valueFrom")
    if value is None:
        value = parameter.get("default")
    given = None if argument is None else argument.get("value")
    if given == ABSENT:
        if value is None and source is None:
            raise TemplateError(
                f"inputs.parameters.{parameter['name']}: argument references an absent optional "
                "(skipped/omitted node output with no default)"
            )
    elif argument is not None:
        value, source = given, None if given is not None else argument.get("valueFrom")
    if (source or {}).get("configMapKeyRef"):
        return _configured(str(parameter["name"]), source or {}, names, configs)
    if value is None:
        raise TemplateError(f"inputs.parameters.{parameter['name']} had no value")
    return any_string(value)


def _configured(name: str, source: Mapping[str, Any], names: Mapping[str, str], configs: ConfigMaps) -> str:
    reference = Substitution(names, EVERYTHING).tree(source["configMapKeyRef"])
    try:
        return configs.parameter(str(reference.get("name")), str(reference.get("key")))
    except LookupError as error:
        if source.get("default") is not None:
            return any_string(source["default"])
        raise TemplateError(f"unable to retrieve inputs.parameters.{name} from ConfigMap: {error}") from None


def _artifact(declared: dict[str, Any], argument: Mapping[str, Any] | None) -> dict[str, Any]:
    source = {key: argument[key] for key in (*SOURCES, "archive") if key in argument} if argument is not None else {}
    if not source and not any(key in declared for key in SOURCES) and not declared.get("optional"):
        wrong = "was not supplied" if argument is None else "missing location information"
        raise TemplateError(f"inputs.artifacts.{declared['name']} {wrong}")
    if argument is None:
        return declared
    # What the call gives stands for all of it but its place in the pod.
    kept = {key: value for key, value in declared.items() if key not in (*SOURCES, "archive", "optional")}
    return {**kept, **source, "optional": argument.get("optional", False)}


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
