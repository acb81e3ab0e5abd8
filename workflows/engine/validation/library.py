"""The templates that a step, task or hook can mean: its own manifest's, a WorkflowTemplate's, or one written inline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.workflows.engine.validation.arguments import Tree
from argosy.workflows.engine.validation.refusal import PLACEHOLDER, Refused
from argosy.workflows.engine.validation.tags import texts_of

CLUSTER = "ClusterWorkflowTemplate"


@dataclass(frozen=True)
class Library:
    """The spec of every manifest by scope: "" is the workflow's own, others are ``Kind/name``."""

    specs: Mapping[str, Mapping[str, Any]]

    def find(self, holder: Mapping[str, Any], scope: str, where: str) -> tuple[str, Tree] | None:
        """The scope and the template that ``holder`` means; None where its name is known only at run time.

        Raises:
            Refused: there is none.
        """
        reference, name = holder.get("templateRef"), holder.get("template")
        if reference is not None:
            return self._referred(reference, name, where)
        if name:
            own = self._named(scope, str(name))
            if own is None:
                there = ", ".join(str(each.get("name")) for each in self.specs[scope].get("templates") or []) or "none"
                raise Refused(f"{where}.template: no template is called {name!r}; there are {there}")
            if holder.get("inline") is None:
                return scope, own
        if holder.get("inline") is None:
            raise Refused(f"{where}: names no template; give template, templateRef or inline")
        return scope, dict(holder["inline"])

    def _referred(self, reference: Mapping[str, Any], name: Any, where: str) -> tuple[str, Tree] | None:
        path = f"{where}.templateRef"
        if name:
            raise Refused(f"{where}: template cannot be specified with templateRef; choose one")
        for key in ("name", "template"):
            if not reference.get(key):
                raise Refused(f"{path}.{key}: is required")
        if any(texts_of(dict(reference))):
            return None
        scope = f"{CLUSTER if reference.get('clusterScope') else 'WorkflowTemplate'}/{reference['name']}"
        found = self._named(scope, str(reference["template"]))
        if found is None:
            if scope in self.specs and PLACEHOLDER in str(reference["template"]):
                return None
            what = f"WorkflowTemplate {reference['name']!r} with template {reference['template']!r}"
            raise Refused(f"{path}: {what} was not given; add its file with --templates")
        return scope, found

    def _named(self, scope: str, name: str) -> Tree | None:
        templates = (self.specs.get(scope) or {}).get("templates") or []
        return next((each for each in templates if each.get("name") == name), None)

    def default_image(self, scope: str, kind: str) -> bool:
        """Whether ``templateDefaults`` of a manifest give containers or scripts an image; a ClusterWorkflowTemplate's
        do not count."""
        defaults = (self.specs.get(scope) or {}).get("templateDefaults") or {}
        return not scope.startswith(CLUSTER) and bool((defaults.get(kind) or {}).get("image"))
