"""Secrets that stand in the file."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.arguments import arguments
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.secret import literal, secret_name, secret_value, shown

_REMEDY = "put it into a Secret and refer to it with valueFrom.secretKeyRef; if it was real, revoke it"


@rule("SEC016", Level.WARNING, on=Container)
def in_environment(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A value that anyone who reads the manifest or describes the pod has."""
    del bundle
    for item in container.node["env"]:
        value = item["value"]
        live = secret_value(value.text)
        if value.open or not (live or (secret_name(item["name"].text) and literal(value.text))):
            continue
        yield Problem(
            value,
            f"{item['name'].text} stands in the manifest" + (f" and looks live ({shown(live)})" if live else ""),
            _REMEDY,
            level=Level.ERROR if live else Level.WARNING,
        )


@rule("SEC017", Level.WARNING, on=Container)
def in_command(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A command line is seen by every process of the pod, and stands in logs."""
    seen: set[str] = set()
    for process in bundle.processes(container):
        assigned = [(each.name, each.value or "") for each in process.assignments]
        for name, value in [*arguments(process), *assigned]:
            if secret_name(name) and _written(value) and name not in seen:
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


def _written(value: str) -> bool:
    return literal(value) and not value.startswith(("$", "{{", "<", "-")) and "$(" not in value and "{{" not in value


@rule("SEC026", Level.WARNING, on=Document)
def in_parameter(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A workflow's parameters are in its status, in the UI, in the archive."""
    workflow = bundle.argo(document)
    for name, node in workflow.parameters.items() if workflow is not None else ():
        value = node["value"]
        live = secret_value(value.text)
        if live or (secret_name(name) and literal(value.text) and not value.open):
            yield Problem(
                value,
                f"the parameter {name!r} is a secret" + (f" and looks live ({shown(live)})" if live else ""),
                "refer to a Secret in the env of the container that needs it",
                level=Level.ERROR if live else Level.WARNING,
            )


@rule("SEC018", Level.WARNING, on=Document)
def in_config_map(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A ConfigMap is no Secret: whoever may read objects of the namespace reads it."""
    del bundle
    if not document.is_a("ConfigMap", ""):
        return
    for name, value in document.root["data"].entries.items():
        live = secret_value(value.text)
        plain = secret_name(name) and literal(value.text) and not value.open
        if live or plain:
            yield Problem(
                value,
                f"{name} in a ConfigMap"
                + (f" holds a credential ({shown(live)})" if live else " is a secret by its name"),
                "keep it in a Secret, made outside of the repository",
                level=Level.ERROR if live else Level.WARNING,
                inside=live,
            )


@rule("SEC019", Level.NOTE, on=Document)
def committed(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A Secret's data is encoded, not encrypted."""
    del bundle
    if not document.is_a("Secret", "") or document.root["type"].text == "kubernetes.io/service-account-token":
        return
    for part in ("stringData", "data"):
        for name, value in document.root[part].entries.items():
            if value.text and not value.open:
                yield Problem(
                    value,
                    f"the Secret {document.name!r} holds its value of {name!r} in the file"
                    + ("; base64 hides nothing" if part == "data" else ""),
                    "make it with the cluster's secret store (External Secrets, Sealed Secrets, SOPS)",
                    level=Level.WARNING if secret_value(value.text) else Level.NOTE,
                )
                break
