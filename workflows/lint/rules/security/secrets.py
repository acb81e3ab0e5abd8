"""Secrets that stand in the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import also, rule
from argosy.workflows.manifests.argo_templates import ArgoWorkflow
from argosy.workflows.manifests.arguments import arguments
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.secret import generated, secret_name, secret_value, shown

_REMEDY = "put it into a Secret and refer to it with valueFrom.secretKeyRef; if it was real, revoke it"


@rule("SEC016", Level.WARNING, on=Container)
def in_environment(container: Container) -> Iterator[Problem]:
    """A value that anyone who reads the manifest or describes the pod has."""
    for item in container.node["env"]:
        value = item["value"]
        live = secret_value(value.text)
        if value.open or not (live or (secret_name(item["name"].text) and generated(value.text))):
            continue
        yield Problem(
            value,
            f"{item['name'].text} stands in the manifest" + (f" and looks live ({shown(live)})" if live else ""),
            _REMEDY,
            level=Level.ERROR if live else Level.WARNING,
        )
    spec = container.pod.document.spec
    yield from _in_runtime_env(spec["runtimeEnvYAML"])
    served = secret_value(spec["serveConfigV2"].text)
    if served:  # in the address of an archive, say
        message = f"a credential that looks live stands in the manifest ({shown(served)})"
        yield Problem(spec["serveConfigV2"], message, _REMEDY, level=Level.ERROR, inside=served)


@also("SEC016", on=Document)
def in_config_map(document: Document) -> Iterator[Problem]:
    """A ConfigMap is no Secret: who may read one object of the namespace reads it."""
    for name, value in document.root["data"].entries.items() if document.is_a("ConfigMap", "") else ():
        live = secret_value(value.text)
        # A text of several lines is a file, which may hold what is none.
        one_line = not value.open and "\n" not in value.text.strip()
        if one_line and (live or (secret_name(name) and generated(value.text))):
            message = f"{name} stands in a ConfigMap" + (f" and looks live ({shown(live)})" if live else "")
            yield Problem(value, message, _REMEDY, level=Level.ERROR if live else Level.WARNING)


def _in_runtime_env(node: Node) -> Iterator[Problem]:
    """What Ray sets for the entrypoint."""
    for name, value in re.findall(r"^ +(\w+): *[\"']?([^\s\"'#${<][^\s\"'#]*)", node.text, re.MULTILINE):
        live = secret_value(value)
        if live or (secret_name(name) and generated(value)):
            level = Level.ERROR if live else Level.WARNING
            message = f"{name} stands in the manifest" + (f" and looks live ({shown(live)})" if live else "")
            yield Problem(node, message, _REMEDY, level=level, inside=f"{name}:")


@rule("SEC017", Level.WARNING, on=Container)
def in_command(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A command line is seen by every process of the pod, and stands in logs."""
    seen: set[str] = set()
    for process in bundle.processes(container):
        assigned = [(each.name, each.value or "") for each in process.assignments]
        for name, value in [*arguments(process), *assigned]:
            if secret_name(name) and generated(value) and name not in seen:
                seen.add(name)
                yield Problem(
                    process.node,
                    f"{name} stands in the command: every process of the pod and every log of it can show it",
                    _REMEDY,
                    inside=value,
                )
    for node in container.argv:
        live = secret_value(node.text)
        if live and not seen:
            message = f"a credential stands in the command ({shown(live)})"
            yield Problem(node, message, _REMEDY, level=Level.ERROR, inside=live)


@rule("SEC026", Level.WARNING, on=ArgoWorkflow)
def in_parameter(workflow: ArgoWorkflow) -> Iterator[Problem]:
    """A workflow's parameters are in its status, in the UI, in the archive."""
    for name, node in workflow.parameters.items():
        value = node["value"]
        live = secret_value(value.text)
        if live or (secret_name(name) and generated(value.text) and not value.open):
            yield Problem(
                value,
                f"the parameter {name!r} is a secret" + (f" and looks live ({shown(live)})" if live else ""),
                "refer to a Secret in the env of the container that needs it",
                level=Level.ERROR if live else Level.WARNING,
            )
