"""Fields: unknown ones, those at a wrong level, values of a wrong type, and fields that must be there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from typing import Final

from argosy.workflows.lint.finding import Level, Problem, RenameKey
from argosy.workflows.lint.rule import declare, rule
from argosy.workflows.lint.rules.api.types import misfit
from argosy.workflows.lint.rules.api.versions import MOVED, OLD_WORDS
from argosy.workflows.lint.schema.fields import fields_of, inner, path_to, type_of_kind
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node

Trail = tuple[tuple[str, str], ...]  # (type, path) of what is above, the nearest last

# They stand at many levels and say nothing of which one was meant.
_EVERYWHERE: Final = frozenset(
    ("name", "kind", "apiVersion", "metadata", "spec", "status", "type", "value", "key", "items", "path", "labels")
) | {"namespace"}


_REALTIME: Final = ("ArgoprojV1alpha1WorkflowSpecMetricsPrometheusGauge", "realtime")
_OF_PROJECTS: Final = re.compile("Argoproj|BatchV1alpha1|Jobset|Kubeflow|Kueue|RayV1|Scheduling|Coscheduling|Trainer")
_OF_METADATA: Final = ("labels", "annotations", "name", "namespace")
_MEANT: Final = {
    **dict.fromkeys(("environment", "enviroment", "envVars", "envs", "environmentVariables", "variables"), "env"),
    **dict.fromkeys(("cmd", "entrypoint", "commands"), "command"),
    **dict.fromkeys(("arguments", "argument"), "args"),
    **dict.fromkeys(("nodes", "numWorkers"), "replicas"),
    "imagePullSecret": "imagePullSecrets",
    "gracePeriodSeconds": "terminationGracePeriodSeconds",
    "maxRetries": "backoffLimit",
    "retries": "backoffLimit",
    "serviceaccount": "serviceAccountName",
    "toleration": "tolerations",
    "dependsOn": "depends",
}
"""Other words for a field."""


@rule("API002", Level.ERROR, on=Document)
def fields(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """Walk a document along its kind's type: API002 (unknown) to API005 (missing)."""
    type_name = type_of_kind(document.api_version, document.kind)
    for problem in _object(document.root, type_name, ()) if type_name else ():
        if problem.rule == "API005" and bundle.is_named_patch(document):
            continue
        printed = problem.rule == "API005" and document.metadata["uid"].exists  # by a server, and shortened since
        yield replace(problem, level=Level.NOTE) if printed else problem


declare("API003", Level.ERROR)
declare("API004", Level.ERROR)
declare("API005", Level.WARNING)


def _value(node: Node, type_name: str, trail: Trail) -> Iterator[Problem]:
    kind = type_name.rstrip("!")
    if not node or kind in ("any", ""):
        return
    found = misfit(node, kind)
    if found is not None and not _of_a_command(node):
        yield found
    elif kind.startswith("["):
        for item in node:
            yield from _value(item, inner(kind), trail)
    elif kind.startswith("{"):
        for below in node.entries.values():
            yield from _value(below, inner(kind), trail)
    elif fields_of(kind):
        yield from _object(node, kind, trail)


def _of_a_command(node: Node) -> bool:
    """Whether it is a container's command or a word of it, of which ARGV003 speaks."""
    holder = node if node.key in ("command", "args") else node.parent
    if holder is None or holder.key not in ("command", "args") or holder.parent is None:
        return False
    return holder.parent["image"].exists


def _object(node: Node, type_name: str, trail: Trail) -> Iterator[Problem]:
    known = fields_of(type_name)
    here = (*trail, (type_name, node.path))
    for key, value in node.entries.items():
        place = (type_name, key)
        if place in MOVED and key not in known:
            message = f"{key} is not taken any more: {MOVED[place]}"
            yield Problem(value, message, "write what took its place", level=Level.WARNING, rule="API006")
        elif value.text in OLD_WORDS.get(place, ()):
            message = f"{key}: {value.text} is not taken any more: the field is a number in current releases"
            yield Problem(value, message, "write a number", level=Level.WARNING, rule="API006")
        elif key in known:
            yield from _value(value, known[key], here)
        elif key == "kind" and "apiVersion" in node.entries and "apiVersion" not in known:
            continue  # an object's head where none is wanted is one finding
        elif "..." not in known and not key.startswith("x-") and "{" not in key:
            found = _unknown(value, key, here)  # one misspelling that was copied is one cause
            yield replace(found, cause=found.cause or f"{key} of {type_name}")
    for key, kind in known.items():
        if kind.endswith("!") and not node[key] and (node[key].exists or not node.open):
            where, older = node.path or "the object", key.removesuffix("s")
            if key != older and node[older]:
                continue  # the word of an earlier release, of which API002 speaks
            # Argo's full CRD asks for it, its minimal one does not, and its controller does without. The labels that a
            # Kustomization gives all objects become the selectors of those that have none. A release that knows a
            # field more may ask for one less.
            newer = bool(_OF_PROJECTS.match(type_name)) and any(each not in known for each in node.entries)
            level = Level.NOTE if (type_name, key) == _REALTIME or key == "selector" or newer else None
            remedy = f"write {key}: the API refuses it without"
            yield Problem(node[key], f"{where} has no {key}", remedy, level=level, rule="API005")


def _unknown(node: Node, key: str, trail: Trail) -> Problem:
    type_name = trail[-1][0]
    known = fields_of(type_name)
    of_a_pod = any(each.startswith("Pod") or each.endswith(("Container", "Script")) for each, _ in trail)
    of_a_pod = of_a_pod or known.get("spec") == "PodSpec"  # a template of pods, under whatever name
    kubernetes = not _OF_PROJECTS.match(trail[0][0])
    # A pod's fields are known; a project's next release may have one more, and its CRD may keep what it does not know.
    known_whole = kubernetes or of_a_pod
    kept = any("~" in fields_of(above) for above, _ in trail)
    level = Level.WARNING if kept else None
    where = node.parent.path if node.parent is not None and node.parent.path else "the top of the object"
    names = [each for each in known if each.isalnum()]
    meant = _MEANT.get(key, "")
    same = meant if meant in known else next(iter(get_close_matches(key.lower(), _lowered(names), 1, 0.88)), "")
    same = _lowered(names).get(same.lower(), same)
    place = "" if same else _elsewhere(key, trail)
    if place:
        message = f"{key} is no field of {where}: it would be refused, or dropped without a word"
        if not known_whole and len(trail) > 1:  # Argo's fields are those of its newest release
            level = Level.NOTE if kept and not trail[0][0].startswith("Argoproj") else Level.WARNING
        cause = "metadata" if place.startswith("metadata.") else ""
        return Problem(node, message, f"it belongs to {place}", level=level, rule="API003", cause=cause)
    near = same or next(iter(get_close_matches(key, names, 1, 0.75)), "")
    message = f"{key} is no field of {where}: the API refuses it, or drops it without a word"
    if near:
        fits = near not in (node.parent or node) and misfit(node, known[near].rstrip("!")) is None
        edits = [RenameKey(node, near)] if fits else []
        level = level if same or known_whole else Level.NOTE
        return Problem(node, message, f"write {near}", edits, level)
    finished = type_name.startswith("KubeflowOrg") and "-" not in key  # v1 gets no fields; a fork names its own so
    sure = of_a_pod or (kubernetes and not kept) or finished
    level = Level.WARNING if sure else Level.NOTE
    remedy = "remove it, or look its name up: kubectl explain"
    if key == "namespace" and of_a_pod:
        remedy = "remove it: what a pod refers to lies in the pod's own namespace"
    return Problem(node, message, remedy, level=level)


def _lowered(names: list[str]) -> dict[str, str]:
    return {name.lower(): name for name in names}


def _elsewhere(key: str, trail: Trail) -> str:
    """Where the field belongs: above, below, or beside; ``""`` when that cannot be said."""
    if key in _OF_METADATA and "metadata" in fields_of(trail[-1][0]):
        return f"{trail[-1][1]}.metadata.{key}".lstrip(".")
    if key in _EVERYWHERE:
        return ""
    below = path_to(trail[-1][0], key, 3)
    for type_name, path in reversed(trail[:-1]):
        if key in fields_of(type_name):
            return f"{path}.{key}".lstrip(".")
    if below:
        return f"{trail[-1][1]}.{below}".lstrip(".")
    for type_name, path in reversed(trail[:-1]):
        beside = path_to(type_name, key, 2)
        if beside:
            return f"{path}.{beside}".lstrip(".")
    return ""
