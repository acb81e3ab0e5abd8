"""Outputs: what a template declares, and what others may then refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from argosy.workflows.engine.validation.arguments import items_of
from argosy.workflows.engine.validation.artifacts import check_path
from argosy.workflows.engine.validation.kinds import LEAVES, has_result, kind_of
from argosy.workflows.engine.validation.names import check_names, wrong_value_name
from argosy.workflows.engine.validation.refusal import Refused
from argosy.workflows.engine.validation.variables import ANY_ARTIFACT, ANY_PARAMETER, check_variables, is_parameter

_SOURCES = ("path", "jqFilter", "jsonPath", "parameter", "expression")


def check_outputs(
    template: Mapping[str, Any], kind: str, path: str, names: Mapping[str, str], global_names: Mapping[str, str]
) -> None:
    """Judge the outputs of a template.

    Raises:
        Refused: the first broken rule.
    """
    outputs = template.get("outputs") or {}
    parameters, artifacts = items_of(outputs, "parameters"), items_of(outputs, "artifacts")
    check_names(parameters, f"{path}.outputs.parameters", of_values=True)
    check_names(artifacts, f"{path}.outputs.artifacts", of_values=True)
    check_variables(outputs, f"{path}.outputs", names, global_names)
    for artifact in artifacts:
        where = f"{path}.outputs.artifacts.{artifact['name']}"
        check_path(artifact, kind in LEAVES, where)
        _check_global_name(artifact, where)
    for parameter in parameters:
        where = f"{path}.outputs.parameters.{parameter['name']}"
        _check_source(parameter, where)
        if parameter.get("valueFrom") is not None:
            _check_kind(parameter["valueFrom"], kind, where)
        _check_global_name(parameter, where)


def _check_global_name(output: Mapping[str, Any], where: str) -> None:
    name = str(output.get("globalName") or "")
    if name and not is_parameter(name) and wrong_value_name(name):
        raise Refused(f"{where}.globalName: {name!r}: {wrong_value_name(name)}")


def _check_source(parameter: Mapping[str, Any], where: str) -> None:
    source = parameter.get("valueFrom")
    if parameter.get("value") is not None:
        if source is not None:
            raise Refused(f"{where}: has both valueFrom and value specified; choose one")
        return
    if source is None:
        raise Refused(f"{where}: does not have valueFrom or value specified")
    given = [key for key in _SOURCES if source.get(key)] + ["supplied"] * (source.get("supplied") is not None)
    if len(given) != 1:
        raise Refused(f"{where}.valueFrom: needs one of {', '.join(_SOURCES)}; it has {', '.join(given) or 'none'}")


def _check_kind(source: Mapping[str, Any], kind: str, where: str) -> None:
    if kind in ("container", "containerSet", "script") and not source.get("path"):
        raise Refused(f"{where}.valueFrom.path: must be specified for {kind} templates")
    if kind in ("dag", "steps") and not source.get("parameter") and not source.get("expression"):
        raise Refused(f"{where}.valueFrom: parameter or expression must be specified for {kind} templates")


def outputs_of(template: Mapping[str, Any] | None, prefix: str, *, loop: bool, ended: bool) -> Iterator[str]:
    """The names by which others may refer to a step or task that calls ``template`` (None: not known which).

    Args:
        loop: it stands for several, whose outputs are lists.
        ended: it ends before the one who refers to it begins.
    """
    yield from (f"{prefix}.{fact}" for fact in ("id", "startedAt", "finishedAt", "hostNodeName"))
    if template is None:
        return
    if template.get("daemon"):
        yield f"{prefix}.ip"
    if has_result(template):
        yield from (f"{prefix}.outputs.result", f"{prefix}.exitCode")
    outputs = template.get("outputs") or {}
    for key in ("parameters", "artifacts"):
        yield from (f"{prefix}.outputs.{key}.{each.get('name')}" for each in items_of(outputs, key))
    if loop:
        yield f"{prefix}.outputs.parameters"
        if kind_of(template) in ("script", "containerSet"):
            yield from (f"{prefix}.outputs.result", f"{prefix}.exitCode")
    if ended:
        yield f"{prefix}.status"


def global_outputs(template: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """Names below ``workflow.outputs`` that a template makes, and the wild cards for those known only at run time."""
    names, wild = [], []
    for key, any_of in (("parameters", ANY_PARAMETER), ("artifacts", ANY_ARTIFACT)):
        for each in items_of((template or {}).get("outputs"), key):
            name = str(each.get("globalName") or "")
            if name and is_parameter(name):
                wild.append(any_of)
            elif name:
                names.append(f"workflow.outputs.{key}.{name}")
    return names, wild
