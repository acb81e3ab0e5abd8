"""Artifacts, files and logs that should outlive their pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.volume import source_of

_STORES: Final = ("s3", "gcs", "azure", "oss")


@rule("ARGO033", Level.WARNING, on=Document)
def same_key(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Pods of a loop that write their artifact under one key overwrite each other's."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
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


@rule("ARGO034", Level.WARNING, on=Document)
def handed_on_by_an_empty_dir(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Each template is a pod of its own: an emptyDir is empty in the next one."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    for volume in workflow.spec["volumes"]:
        if source_of(volume) != "emptyDir" or volume.at("emptyDir.medium").text == "Memory":
            continue
        users = [
            template.name
            for template in workflow.templates
            for key in ("container", "script")
            for mount in template.node[key]["volumeMounts"]
            if mount["name"].text == volume["name"].text
        ]
        if len(users) > 1:
            yield Problem(
                volume["emptyDir"],
                f"{', '.join(users)} mount the emptyDir {volume['name'].text!r}, and each pod gets an empty one",
                "use volumeClaimTemplates, or hand files on as artifacts",
            )


@rule("ARGO035", Level.NOTE, on=Document)
def lost_logs(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Pods that are deleted when they end take their logs along."""
    workflow = bundle.argo(document)
    if workflow is None:
        return
    strategy = workflow.spec.at("podGC.strategy")
    kept = workflow.spec["archiveLogs"].flag or any(
        template.node.at("archiveLocation.archiveLogs").flag for template in workflow.templates
    )
    if strategy.text in ("OnPodCompletion", "OnWorkflowCompletion") and not kept:
        yield Problem(
            strategy,
            f"podGC: {strategy.text} deletes failed pods too, and their logs are kept nowhere",
            "set archiveLogs: true, or strategy: OnPodSuccess",
        )


@rule("ARGO036", Level.ERROR, on=Document)
def under_a_mount(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """An output artifact without a path, or an output that no container writes to."""
    workflow = bundle.argo(document)
    for template in workflow.templates if workflow is not None else ():
        for artifact in template.node.at("outputs.artifacts"):
            runs = template.kind in ("container", "script")
            if runs and not artifact["path"] and not artifact["from"] and not artifact["fromExpression"]:
                yield Problem(
                    artifact["name"] or artifact,
                    f"the output artifact {artifact['name'].text!r} names no path",
                    "set path to the file or directory that the container writes",
                )
        yield from _base_layer(template.node)


def _base_layer(template: Node) -> Iterator[Problem]:
    """``path: /`` and the directories of the executor cannot be saved."""
    for artifact in [*template.at("outputs.artifacts"), *template.at("inputs.artifacts")]:
        if artifact["path"].text.rstrip("/") in ("", "/argo", "/var/run/argo") and artifact["path"].text:
            yield Problem(
                artifact["path"],
                f"{artifact['path'].text} cannot be an artifact: it is the image's root, or the executor's own",
                "name a directory below",
            )
