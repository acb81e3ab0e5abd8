"""Artifacts, files and logs that should outlive their pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow

_STORES: Final = ("s3", "gcs", "azure", "oss")


@rule("ARGO033", Level.WARNING, on=ArgoWorkflow)
def same_key(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """Pods of a loop that write their artifact under one key overwrite each other's."""
    looped = {call.target.text for each in workflow.templates for call in each.calls if call.loop}
    for template in workflow.templates:
        for artifact in template.node.at("outputs.artifacts"):
            key = next(
                (artifact[store]["key"] or artifact[store]["blob"] for store in _STORES if artifact[store]), None
            )
            if key is None or not key.text:
                continue
            if "{{" not in key.text:
                many = template.name in looped
                yield Problem(
                    key,
                    f"the artifact is always written to {key.text!r}: "
                    + ("every item of the loop" if many else "every run")
                    + " overwrites it",
                    "put {{workflow.name}}/{{pod.name}} into the key",
                    level=Level.WARNING if many else Level.NOTE,
                )
            elif template.name in looped and not any(each in key.text for each in ("pod.name", "inputs.", "item", "=")):
                yield Problem(
                    key,
                    f"{key.text!r} is the same for every item of the loop that runs {template.name!r}",
                    "put {{pod.name}}, or an input that differs, into the key",
                )
