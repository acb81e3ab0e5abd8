"""``argosy install``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from argosy.steps.cluster.api import NO_NAMESPACE, Api, ApiError
from argosy.steps.contract.errors import InputError
from argosy.workflows.cli.options import as_json, place_given
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cluster.place import ClusterPlace

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@click.command()
@place_given
@click.option("--apply", is_flag=True, help="Apply it to the cluster (server-side) instead of printing it.")
@click.option(
    "--service-account", metavar="NAME", help="Account that runs use. [default: that of gang.service_account]"
)
@click.option(
    "--create-namespace", is_flag=True, help="The namespace too, if it is not there, with Pod Security restricted."
)
@click.option("--claim", metavar="SIZE", help="The volume for file:// stores too, as large as this (100Gi).")
@click.option("--trigger", type=click.Path(path_type=Path), metavar="RUN.toml", help="What starts this run, too.")
@click.option("--storage-class", default="", help="Class of that volume; it must know ReadWriteMany.")
@as_json
def command(
    place: ClusterPlace,
    apply: bool,
    service_account: str | None,
    create_namespace: bool,
    claim: str | None,
    trigger: Path | None,
    storage_class: str,
    as_json: bool,
) -> None:
    """Render or apply what a namespace needs once: a ServiceAccount and the least it may do.

    With --trigger also the run's WorkflowTemplate and what starts it when new data come (put its code into the store
    with compile --push). Without --apply nothing is contacted. Applying again changes nothing; what others wrote on
    the account stays.

    \b
    Example:
      argosy install -n research | kubectl diff -f -
      argosy install -n research --apply --create-namespace
    """
    if not place.namespace:
        raise InputError("--namespace: not given; the account and its rights belong to one, as in -n research")
    documents = _documents(place.namespace, service_account, create_namespace, claim, storage_class)
    if trigger is not None:
        documents += _trigger_documents(trigger, place.namespace)
    for line in _apply(place.reach(), documents) if apply else ():
        if not as_json:
            say(line)
    if as_json:
        emit({"applied": apply, "documents": documents})
        return
    if not apply:
        _print(documents)
        return
    flags = place.flags(place.namespace)
    run = str(trigger or "run.toml")
    commands = [(typed("argosy", "doctor", run, *flags), "what else the run needs")]
    if trigger is None:
        commands.append((typed("argosy", "submit", run, *flags), "submit it and follow it"))
    else:
        push = typed("argosy", "compile", run, "--push", "-o", "workflow.yaml")
        commands.append((push, "the code that it starts, into the store"))
        commands.append((typed("argosy", "events", run), "what it decided"))
    next_commands(commands)


def _apply(api: Api, documents: list[dict[str, Any]]) -> Iterator[str]:
    """What became of each, as it does: the next may be refused. A namespace is made or left alone: others may live in
    it, under a Pod Security of their own.
    """
    from argosy.workflows.cluster.doctor.versions import trigger

    # Half a trigger starts runs already.
    for check in trigger(api, [each for each in documents if each["apiVersion"].startswith("argoproj.io/")]):
        if check.state == "missing":
            raise InputError(f"--trigger: nothing is applied: {check.what}: {check.detail}; {check.remedy}")
    for document in documents:
        how = "applied"
        try:
            if document["kind"] != "Namespace":
                api.apply(document)
            elif api.create(document) is None:
                how = "there already, left as it is"
        except ApiError as error:
            if NO_NAMESPACE.search(str(error)):
                raise InputError(
                    f"--namespace {api.namespace!r}: the cluster has no such namespace; add --create-namespace, or "
                    "have it made"
                ) from None
            raise
        yield f"{document['kind']} {document['metadata']['name']}: {how}"


def _documents(
    namespace: str, account: str | None, create_namespace: bool, claim: str | None, storage_class: str
) -> list[dict[str, Any]]:
    from argosy.workflows.cluster.installation import claim_manifest, manifests, namespace_manifest
    from argosy.workflows.spec.gang import Gang
    from argosy.workflows.spec.storage import Storage
    from argosy.workflows.spec.texts import quantity

    for flag, name in (("--namespace", namespace), ("--service-account", account or "a")):
        if not _NAME.fullmatch(name):
            raise InputError(f"{flag} {name!r}: no Kubernetes name; use lower-case letters, digits and '-'")
    found = [namespace_manifest(namespace)] if create_namespace else []
    found += manifests(namespace, account or Gang().service_account)
    if claim is not None:
        try:
            quantity(claim)
        except ValueError as error:
            raise InputError(f"--claim {claim!r}: no size; write for example --claim 100Gi") from error
        found.append(claim_manifest(namespace, Storage().claim, claim, storage_class))
    elif storage_class:
        raise InputError(f"--storage-class {storage_class}: for which volume? give --claim SIZE too")
    return found


def _trigger_documents(file: Path, namespace: str) -> list[dict[str, Any]]:
    """Accounts, the run's WorkflowTemplate, and what decides and announces."""
    from argosy.workflows.cli.source import from_toml, with_trigger
    from argosy.workflows.engine.reading import read_documents
    from argosy.workflows.trigger.accounts import account_documents

    source = with_trigger(from_toml(file, None, "WorkflowTemplate"))
    assert source.run is not None
    own = read_documents(source.yaml, str(file))
    for document in own:
        document["metadata"]["namespace"] = namespace
    return [*account_documents(source.run, namespace), *own]


def _print(documents: list[dict[str, Any]]) -> None:
    from argosy.workflows.yaml_text import to_yaml

    sys.stdout.write("---\n".join(_explained(to_yaml(document), document) for document in documents))
    sys.stdout.flush()


def _explained(text: str, document: dict[str, Any]) -> str:
    """A Role with a comment above each of its rules."""
    if document["kind"] != "Role":
        return text
    before, rules, after = text.partition("rules:\n")
    reasons = iter(_reasons(document))
    lines = (f"# {next(reasons)}\n{line}" if line.startswith("- ") else line for line in after.splitlines(True))
    return before + rules + "".join(lines)


def _reasons(role: dict[str, Any]) -> list[str]:
    from argosy.workflows.cluster.installation import ROLE, RULES
    from argosy.workflows.trigger.accounts import REASONS

    name = role["metadata"]["name"]
    if name == ROLE:
        return [reason for *_, reason in RULES]
    return [REASONS[name, rule["resources"][0]] for rule in role["rules"]]
