"""The workflow of a YAML file with every template it may refer to."""

from __future__ import annotations

import re
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.gotext import any_string
from argosy.workflows.engine.labels import wrong_labels
from argosy.workflows.engine.reading import read_documents

API_GROUP = "argoproj.io/"
TEMPLATE_KINDS = ("WorkflowTemplate", "ClusterWorkflowTemplate")
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What Kubernetes takes for the name of an object."""
_PART_OF_SPEC = ("templates", "arguments")


@dataclass(frozen=True)
class Source:
    """One manifest and where it stands, for messages."""

    where: str
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """``metadata.name``."""
        metadata = self.manifest.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


@dataclass
class Document:
    """A Workflow, merged with the WorkflowTemplate it refers to, and the templates by scope and name.

    ``scopes`` maps "" (the workflow's own templates) and ``Kind/name`` of every WorkflowTemplate to
    {template name: template}.
    """

    workflow: Source
    references: list[Source]
    spec: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    scopes: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    configs: ConfigMaps = field(default_factory=ConfigMaps)

    @property
    def namespace(self) -> str:
        """The workflow's namespace; ``argo`` where none is given."""
        return str(self.metadata.get("namespace") or "argo")

    def new_name(self) -> str:
        """See :func:`new_name`."""
        return new_name({"metadata": self.metadata})

    def template(self, holder: Mapping[str, Any], scope: str) -> tuple[str, dict[str, Any]]:
        """The scope and template that a step, task or hook refers to from ``scope``.

        Raises:
            LookupError: there is no such template.
        """
        reference = holder.get("templateRef")
        if reference:
            scope = scope_name(reference)
            name = str(reference.get("template"))
        elif holder.get("inline"):
            return scope, holder["inline"]
        else:
            name = str(holder.get("template"))
        found = self.scopes.get(scope, {}).get(name)
        if found is None:
            raise LookupError(f"template reference {'' if not scope else scope.split('/')[-1] + '.'}{name} not found")
        return scope, found

    def parameters(self, given: Mapping[str, str]) -> dict[str, str]:
        """Workflow parameters: ``given`` over the document's values and defaults.

        Raises:
            InputError: a name that the workflow has not, a value outside its ``enum``, none at all, or one of a
                ConfigMap that nobody gave.
        """
        declared = {str(each["name"]): each for each in (self.spec.get("arguments") or {}).get("parameters") or []}
        unknown = sorted(set(given) - set(declared))
        if unknown:
            known = ", ".join(sorted(declared)) or "none"
            raise InputError(f"parameter {unknown[0]!r}: the workflow has no such parameter; it has {known}")
        values = {}
        for name, parameter in declared.items():
            value = given.get(name, _scalar(parameter, "value"))
            value = self._configured(parameter) if value is None else value
            value = _scalar(parameter, "default") if value is None else value
            if value is None:
                raise InputError(f"parameter {name!r}: has no value; give one with -p {name}=VALUE")
            allowed = [any_string(each) for each in parameter.get("enum") or []]
            if allowed and value not in allowed:
                raise InputError(f"parameter {name!r}: {value!r} is not one of {', '.join(allowed)}")
            values[name] = value
        return values

    def _configured(self, parameter: Mapping[str, Any]) -> str | None:
        source = parameter.get("valueFrom") or {}
        reference = source.get("configMapKeyRef")
        if not reference:
            return None
        try:
            return self.configs.parameter(str(reference.get("name")), str(reference.get("key")))
        except LookupError as error:
            if source.get("default") is not None:
                return any_string(source["default"])
            raise InputError(
                f"parameter {parameter['name']!r}: {error}; give it with the YAML or --templates"
            ) from None


def _scalar(parameter: Mapping[str, Any], key: str) -> str | None:
    value = parameter.get(key)
    return None if value is None else any_string(value)


def calls_of(template: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps or tasks of a template."""
    groups = [(template.get("dag") or {}).get("tasks"), *(template.get("steps") or [])]
    return [each for group in groups for each in group or []]


def scope_name(reference: Mapping[str, Any]) -> str:
    """The scope that a ``templateRef`` or ``workflowTemplateRef`` names."""
    return f"{TEMPLATE_KINDS[1 if reference.get('clusterScope') else 0]}/{reference.get('name')}"


Sources = tuple[list[Source], list[Source], list[Source]]
"""Workflows, WorkflowTemplates and ConfigMaps."""


def read_sources(data: bytes, files: Sequence[Path], where: str = "workflow") -> Sources:
    """The Workflows, the WorkflowTemplates and the ConfigMaps of ``data`` and ``files``.

    Raises:
        InputError: not YAML, or not of a known kind.
    """
    workflows, references, configs = [], [], []
    sources = [Source(where, each) for each in read_documents(data, where)]
    for path in files:
        try:
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); give a file with WorkflowTemplates") from None
        sources += [Source(str(path), each) for each in read_documents(content, str(path))]
    for source in sources:
        version, kind = source.manifest.get("apiVersion"), source.manifest.get("kind")
        if version == "v1" and kind == "ConfigMap":
            configs.append(source)
            continue
        if not str(version).startswith(API_GROUP):
            raise InputError(f"{source.where}: apiVersion: {version!r} is not argoproj.io/v1alpha1")
        if kind == "Workflow":
            workflows.append(source)
        elif kind in TEMPLATE_KINDS:
            references.append(source)
        else:
            raise InputError(f"{source.where}: kind: {kind!r} cannot be run; a Workflow or WorkflowTemplate can")
    return workflows, references, configs


def assemble(
    workflows: list[Source], references: list[Source], configs: Sequence[Source] = (), where: str = "workflow"
) -> Document:
    """The one Workflow with everything it refers to; a lone WorkflowTemplate is run as it is.

    Raises:
        InputError: no Workflow or several, a reference to a template nobody gave, a name given twice, a name or label
            that Kubernetes does not take.
    """
    if not workflows and len(references) == 1:
        workflows = [_submitted(references[0])]
    if len(workflows) != 1:
        found = "none" if not workflows else f"{len(workflows)} of them"
        raise InputError(f"{where}: exactly one Workflow is needed, found {found}")
    document = Document(workflows[0], references)
    document.metadata = dict(document.workflow.manifest.get("metadata") or {})
    for key, text in (("name", document.metadata.get("name")), ("generateName", document.metadata.get("generateName"))):
        if text is not None and not NAME.fullmatch(str(text) + ("x" if key == "generateName" else "")):
            raise InputError(f"{where}: metadata.{key}: {text!r} is no Kubernetes name; use a-z, 0-9, '-' and '.'")
    for wrong in wrong_labels(document.metadata.get("labels"), "metadata.labels"):
        raise InputError(f"{where}: {wrong}")
    for source in configs:
        other = (source.manifest.get("metadata") or {}).get("namespace")
        if other and document.metadata.get("namespace") and other != document.namespace:
            raise InputError(
                f"{source.where}: ConfigMap {source.name!r}: is of namespace {other!r}, the workflow is not"
            )
        document.configs.add(source.manifest, source.where)
    for source in references:
        scope = f"{source.manifest['kind']}/{source.name}"
        if scope in document.scopes:
            raise InputError(f"{source.where}: metadata.name: {source.name!r} was given twice")
        document.scopes[scope] = _named(source.manifest.get("spec"), source.where)
    spec = document.workflow.manifest.get("spec")
    if not isinstance(spec, dict):
        raise InputError(f"{where}: spec: missing; a Workflow needs entrypoint and templates")
    document.spec = _merged(document, spec, where)
    for kind, values in (document.spec.get("workflowMetadata") or {}).items():
        if kind in ("labels", "annotations") and isinstance(values, dict):
            document.metadata[kind] = {**(document.metadata.get(kind) or {}), **values}
    document.scopes[""] = _named(document.spec, where)
    return document


def _submitted(source: Source) -> Source:
    metadata = {
        "generateName": f"{source.name}-",
        "annotations": (source.manifest.get("metadata") or {}).get("annotations") or {},
    }
    kind = source.manifest["kind"]
    reference = {"name": source.name, "clusterScope": kind == TEMPLATE_KINDS[1]}
    manifest = {"apiVersion": source.manifest["apiVersion"], "kind": "Workflow", "metadata": metadata}
    return Source(source.where, {**manifest, "spec": {"workflowTemplateRef": reference}})


def _named(spec: Any, where: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    templates = spec.get("templates") if isinstance(spec, dict) else None
    for index, template in enumerate(templates if isinstance(templates, list) else []):
        name = template.get("name") if isinstance(template, dict) else None
        if not isinstance(name, str) or not name:
            raise InputError(f"{where}: spec.templates[{index}].name: missing; every template needs a name")
        if name in found:
            raise InputError(f"{where}: spec.templates[{index}].name: {name!r} stands twice; names are unique")
        found[name] = template
    return found


def _merged(document: Document, spec: dict[str, Any], where: str) -> dict[str, Any]:
    reference = spec.get("workflowTemplateRef")
    if not reference:
        return spec
    scope = scope_name(reference)
    base = next((each for each in document.references if f"{each.manifest['kind']}/{each.name}" == scope), None)
    if base is None:
        raise InputError(
            f"{where}: spec.workflowTemplateRef: {reference.get('name')!r} was not given; add its file with --templates"
        )
    below = base.manifest.get("spec") or {}
    merged = {**below, **{key: value for key, value in spec.items() if key not in _PART_OF_SPEC}}
    del merged["workflowTemplateRef"]
    merged["templates"] = [*(spec.get("templates") or []), *(below.get("templates") or [])]
    arguments = [dict(each) for each in (below.get("arguments") or {}).get("parameters") or []]
    for own in (spec.get("arguments") or {}).get("parameters") or []:
        same = next((each for each in arguments if each.get("name") == own.get("name")), None)
        if same is None:
            arguments.append(own)
        else:
            same.update(own)
    merged["arguments"] = {**(below.get("arguments") or {}), **(spec.get("arguments") or {}), "parameters": arguments}
    return merged


def new_name(workflow: Mapping[str, Any]) -> str:
    """``metadata.name``, or ``generateName`` and five random letters."""
    metadata = workflow.get("metadata") or {}
    if fixed := metadata.get("name"):
        return str(fixed)
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(5))
    return f"{metadata.get('generateName') or 'workflow-'}{letters}"
