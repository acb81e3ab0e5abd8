"""A whole workflow, as ``argo submit`` judges it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from argosy.workflows.engine.validation.arguments import Tree, check_arguments, items_of, text_of
from argosy.workflows.engine.validation.calls import check_hooks
from argosy.workflows.engine.validation.library import Library
from argosy.workflows.engine.validation.names import check_names
from argosy.workflows.engine.validation.refusal import Refusals, Refused
from argosy.workflows.engine.validation.tags import Placeholders
from argosy.workflows.engine.validation.validator import Validator
from argosy.workflows.engine.validation.variables import ANY_ARTIFACT, is_parameter

if TYPE_CHECKING:
    from argosy.workflows.engine.document import Document

_LONGEST_NAME = 63
_POD_GC = ("", "OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess")
_ALWAYS = (
    "name", "namespace", "mainEntrypoint", "serviceAccountName", "uid", "annotations", "annotations.json", "labels",
    "labels.json", "status",
)  # fmt: skip


def refusals_of(document: Document, parameters: Mapping[str, str]) -> list[str]:
    """Why Argo refuses a workflow that decodes, by path; empty if it takes it. ``parameters`` are those of ``-p``."""
    specs = {f"{each.manifest['kind']}/{each.name}": each.manifest.get("spec") or {} for each in document.references}
    spec: Tree = dict(document.workflow.manifest.get("spec") or {})
    arguments = dict(spec.get("arguments") or {})
    spec["arguments"] = {**arguments, "parameters": _with_values(items_of(arguments, "parameters"), parameters)}
    judgement = _Judgement(document.workflow.manifest, spec, specs)
    with judgement.refusals.gathered():
        judgement.run()
    return judgement.refusals.texts


def _with_values(declared: list[Tree], values: Mapping[str, str]) -> list[Tree]:
    """As ``argo submit -p`` does it: a value given replaces the declared one, one that is not declared is added."""
    known = [{**each, "value": values[each["name"]]} if each.get("name") in values else each for each in declared]
    names = {each.get("name") for each in declared}
    return known + [{"name": name, "value": value} for name, value in values.items() if name not in names]


class _Judgement:
    def __init__(self, manifest: Mapping[str, Any], spec: Tree, specs: Mapping[str, Mapping[str, Any]]) -> None:
        self.metadata, self.spec = manifest.get("metadata") or {}, spec
        self.refusals = Refusals()
        self.reference = spec.get("workflowTemplateRef")
        self.library = Library({"": spec, **specs})
        self.base: Mapping[str, Any] = {}
        if self.reference is not None:
            kind = "ClusterWorkflowTemplate" if self.reference.get("clusterScope") else "WorkflowTemplate"
            self.base = specs.get(f"{kind}/{self.reference.get('name')}") or {}

    def run(self) -> None:
        """Judge everything, in Argo's order; refusals are gathered."""
        name = str(self.metadata.get("name") or "")
        if len(name) > _LONGEST_NAME:
            raise Refused(f"metadata.name: {name!r} must not be more than {_LONGEST_NAME} characters long")
        if self.reference is not None and self.spec.get("templates"):
            raise Refused("spec.templates: cannot be given beside workflowTemplateRef")
        check_names(self.spec.get("templates") or [], "spec.templates")
        arguments = {
            key: _merged(items_of(self.spec.get("arguments"), key), items_of(self.base.get("arguments"), key))
            for key in ("parameters", "artifacts")
        }
        check_arguments(arguments, "spec.arguments")
        entrypoint = str(self.spec.get("entrypoint") or self.base.get("entrypoint") or "")
        if not entrypoint:
            raise Refused("spec.entrypoint: missing; it is required: name the template to start with")
        placeholders = Placeholders()
        validator = Validator(self.library, self._global_names(arguments, placeholders), placeholders, self.refusals)
        with self.refusals.gathered():
            validator.holder(self._holder(entrypoint), "", arguments, "spec.entrypoint")
        self._exit_handler(validator)
        with self.refusals.gathered():
            check_hooks(self.spec.get("hooks"), "spec")
        with self.refusals.gathered():
            _check_pod_gc(self.spec.get("podGC"))
        for template in (self.base or self.spec).get("templates") or []:
            with self.refusals.gathered():
                validator.holder(self._holder(str(template.get("name"))), "", None, "")

    def _holder(self, template: str) -> Tree:
        return (
            {"template": template}
            if self.reference is None
            else {"templateRef": {**self.reference, "template": template}}
        )

    def _exit_handler(self, validator: Validator) -> None:
        template = self.spec.get("onExit") or self.base.get("onExit")
        if not template:
            return
        validator.global_names["workflow.failures"] = validator.placeholders.next()
        every = [*(self.spec.get("templates") or []), *(self.base.get("templates") or [])]
        outputs = [each for template in every for each in items_of(template.get("outputs"), "artifacts")]
        if any(is_parameter(str(each.get("globalName") or "")) for each in outputs):
            validator.global_names[ANY_ARTIFACT] = "true"
        with self.refusals.gathered():
            validator.holder(self._holder(str(template)), "", self.spec.get("arguments") or {}, "spec.onExit")

    def _global_names(self, arguments: Mapping[str, list[Tree]], placeholders: Placeholders) -> dict[str, str]:
        names = list(_ALWAYS)
        if arguments["parameters"]:
            names += ["parameters", "parameters.json"]
        written = [self.spec.get("workflowMetadata") or {}, self.base.get("workflowMetadata") or {}, self.metadata]
        for each in written:
            names += [f"annotations.{key}" for key in each.get("annotations") or {}]
            names += [f"labels.{key}" for kind in ("labels", "labelsFrom") for key in each.get(kind) or {}]
        found = {f"workflow.{name}": placeholders.next() for name in names}
        for each in arguments["parameters"]:
            value = each.get("value")
            text = placeholders.next() if value is None else text_of(value)
            found[f"workflow.parameters.{each['name']}"] = text
        if self.spec.get("priority") is not None:
            found["workflow.priority"] = str(self.spec["priority"])
        return found


def _merged(first: list[Tree], second: list[Tree]) -> list[Tree]:
    names = {each.get("name") for each in first}
    return first + [each for each in second if each.get("name") not in names]


def _check_pod_gc(collection: Mapping[str, Any] | None) -> None:
    strategy = str((collection or {}).get("strategy") or "")
    if strategy not in _POD_GC:
        raise Refused(f"spec.podGC.strategy: unknown strategy {strategy!r}; there are {', '.join(_POD_GC[1:])}")
    for index, each in enumerate(((collection or {}).get("labelSelector") or {}).get("matchExpressions") or []):
        where, values = f"spec.podGC.labelSelector.matchExpressions[{index}]", each.get("values")
        operator = each.get("operator")
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise Refused(f"{where}.operator: {operator!r} is not a valid label selector operator")
        if (operator in ("In", "NotIn")) != bool(values):
            raise Refused(f"{where}.values: needed for In and NotIn, and for no other operator")
        if not re.fullmatch(r"[-A-Za-z0-9_./]+", str(each.get("key") or "")):
            raise Refused(f"{where}.key: {each.get('key')!r} is no label's key")
