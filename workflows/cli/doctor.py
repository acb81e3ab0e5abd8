"""``argosy doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from argosy.workflows.cli.options import as_json, place
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cluster.place import ClusterPlace

SIGNS = {"ok": "ok     ", "missing": "MISSING", "unknown": "?      "}


@click.command()
@click.argument("file", metavar="[RUN.toml|WORKFLOW.yaml]", required=False, type=click.Path(path_type=Path))
@place
@as_json
def command(file: Path | None, place: ClusterPlace, as_json: bool) -> int:
    """Say what a cluster lacks for a run, and the command or manifest that mends it.

    Nothing is changed: what can be shown to the API server is shown as a dry run. With RUN.toml also what that run
    names: secrets, volumes, queue, priority class, images, room for its gang. Exit code: 0 nothing is missing, 1
    something is; a ? could not be asked and does not count.

    \b
    Example:
      argosy doctor -n research
      argosy doctor run.toml -n research --json | jq '.checks[] | select(.state == "missing")'
    """
    from argosy.workflows.cluster.doctor.examination import examine

    workflow, trigger = (None, []) if file is None else _documents(file)
    api = place.reach()
    found = []
    for check in examine(api, workflow, _account(), trigger):
        found.append(check)
        if not as_json:
            say(f"{SIGNS[check.state]}  {check.what}: {check.detail}")
            if check.remedy:
                say(f"           -> {check.remedy}")
    whole = all(check.state != "missing" for check in found)
    if as_json:
        emit({"ok": whole, "namespace": api.namespace, "checks": [check.record() for check in found]})
    elif whole:
        name = file or "run.toml"
        next_commands([(typed("argosy", "submit", name, *place.flags(api.namespace)), "submit it and follow it")])
    return 0 if whole else 1


def _account() -> str:
    from argosy.workflows.spec.gang import SERVICE_ACCOUNT

    return SERVICE_ACCOUNT


def _documents(file: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The workflow, and what starts it by itself."""
    from argosy.workflows.cli.source import from_toml, from_yaml, is_toml, with_trigger
    from argosy.workflows.engine.reading import read_documents
    from argosy.workflows.trigger.accounts import account_documents

    source = from_toml(file, None) if is_toml(file) else from_yaml(file)
    if source.run is None or source.run.trigger is None:
        return source.document, []
    started = read_documents(with_trigger(source).yaml, str(file))
    return source.document, [*account_documents(source.run, ""), *started]
