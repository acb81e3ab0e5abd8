"""Templates, one by one as they are referred to, each judged whole once and its inputs at every call."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.workflows.engine.validation.arguments import Tree, items_of, with_arguments
from argosy.workflows.engine.validation.artifacts import check_path
from argosy.workflows.engine.validation.dag import check_dag
from argosy.workflows.engine.validation.kinds import LEAVES, PODS, kind_of, kinds_of
from argosy.workflows.engine.validation.leaf import check_leaf
from argosy.workflows.engine.validation.library import Library
from argosy.workflows.engine.validation.metrics import check_metrics
from argosy.workflows.engine.validation.names import check_names
from argosy.workflows.engine.validation.outputs import check_outputs
from argosy.workflows.engine.validation.refusal import Refusals, Refused
from argosy.workflows.engine.validation.steps import check_steps
from argosy.workflows.engine.validation.tags import Placeholders

_POLICIES = ("Always", "OnFailure", "OnError", "OnTransientError")
_RETRY_NAMES = ("retries", "lastRetry.exitCode", "lastRetry.status", "lastRetry.duration", "lastRetry.message")


@dataclass
class Validator:
    """What is known of the workflow while its templates are judged.

    ``global_names`` maps names that can be referred to everywhere to their values or stand-ins; templates add the
    outputs that they make global.
    """

    library: Library
    global_names: dict[str, str]
    placeholders: Placeholders
    refusals: Refusals = field(default_factory=Refusals)
    _judged: set[tuple[str, str]] = field(default_factory=set)

    def holder(
        self, holder: Mapping[str, Any], scope: str, arguments: Mapping[str, Any] | None, where: str
    ) -> Tree | None:
        """The template that a step, task or hook refers to, judged; None where only the run can tell which it is.

        Args:
            arguments: what it is called with; None for any.
            where: the caller, for messages.

        Raises:
            Refused: there is no such template, or it cannot be called with these arguments.
        """
        found = self.library.find(holder, scope, where)
        if found is None:
            return None
        own_scope, template = found
        policy = (template.get("retryStrategy") or {}).get("retryPolicy")
        if policy and policy not in _POLICIES:
            raise Refused(f"{_path(template)}.retryStrategy.retryPolicy: {policy!r} is none of {', '.join(_POLICIES)}")
        self._template(template, own_scope, arguments, where)
        return template

    def _template(self, template: Tree, scope: str, arguments: Mapping[str, Any] | None, where: str) -> None:
        kinds = kinds_of(template)
        path = _path(template)
        if len(kinds) != 1:
            raise Refused(
                f"{path}: needs exactly one of container, script, dag, steps, …; it has {', '.join(kinds) or 'none'}"
            )
        names = _input_names(template, path)
        for container in items_of(template, "initContainers"):
            if not (container or {}).get("name"):
                raise Refused(f"{path}.initContainers: must all have a container name")
        local = self._local_names(template)
        try:
            new = with_arguments(template, arguments, self.global_names, local, self.placeholders)
        except Refused as refused:
            raise Refused(f"{where}: {refused}" if where else str(refused)) from None
        _check_timeout(new, path)
        key = (scope, str(template.get("name") or ""))
        if key in self._judged:
            return
        self._judged.add(key)
        with self.refusals.gathered():
            self._whole(new, scope, path, {**dict.fromkeys(names, ""), **local, **self.global_names})

    def _whole(self, template: Tree, scope: str, path: str, names: dict[str, str]) -> None:
        kind = kind_of(template)
        if kind in ("steps", "dag"):
            if template.get("activeDeadlineSeconds") is not None:
                raise Refused(f"{path}.activeDeadlineSeconds: is only valid for leaf templates, not for {kind}")
            (check_steps if kind == "steps" else check_dag)(self, template, scope, path, names)
        else:
            check_leaf(template, kind, path, names, self.global_names, self.library.default_image(scope, kind))
        check_outputs(template, kind, path, names, self.global_names)
        check_metrics(template, path)

    def _local_names(self, template: Tree) -> dict[str, str]:
        local = {}
        if kind_of(template) in PODS:
            local["pod.name"] = self.placeholders.next()
        if template.get("retryStrategy") is not None:
            local |= {name: self.placeholders.next() for name in _RETRY_NAMES}
        return local


def _path(template: Mapping[str, Any]) -> str:
    return f"templates.{template.get('name') or 'inline'}"


def _check_timeout(template: Mapping[str, Any], path: str) -> None:
    timeout = template.get("timeout")
    if not timeout:
        return
    kind = kind_of(template)
    if kind not in LEAVES:
        raise Refused(f"{path}.timeout: {kind} template doesn't support timeout field; put it on what it calls")
    if re.fullmatch(r"[-+]?[0-9]+", str(timeout)):
        raise Refused(f"{path}.timeout: {timeout!r} is an invalid duration; give a unit, as in {timeout}s")


def _input_names(template: Mapping[str, Any], path: str) -> list[str]:
    inputs, is_leaf = template.get("inputs") or {}, kind_of(template) in LEAVES
    parameters, artifacts = items_of(inputs, "parameters"), items_of(inputs, "artifacts")
    check_names(parameters, f"{path}.inputs.parameters", of_values=True)
    check_names(artifacts, f"{path}.inputs.artifacts", of_values=True)
    names = [f"inputs.parameters.{each['name']}" for each in parameters] + ["inputs.parameters"][: len(parameters)]
    for artifact in artifacts:
        name = f"inputs.artifacts.{artifact['name']}"
        names += [name, *([f"{name}.path"] if is_leaf else [])]
        check_path(artifact, is_leaf, f"{path}.{name}")
        if artifact.get("from"):
            raise Refused(f"{path}.{name}.from: not valid in inputs; the caller's arguments say where it is from")
    if is_leaf:
        outputs = template.get("outputs") or {}
        names += [
            f"outputs.artifacts.{each.get('name')}.path" for each in items_of(outputs, "artifacts") if each.get("path")
        ]
        for parameter in items_of(outputs, "parameters"):
            if (parameter.get("valueFrom") or {}).get("path"):
                names.append(f"outputs.parameters.{parameter.get('name')}.path")
    return names
