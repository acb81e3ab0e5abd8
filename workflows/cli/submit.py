"""``argosy submit``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from argosy.steps.cluster.api import ApiSilent
from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import RUN_NAME, STORE_URI
from argosy.steps.record.summary import summary
from argosy.steps.record.wording import duration
from argosy.workflows.cli.described import description_here
from argosy.workflows.cli.finding import as_far_as_known, told_deleted
from argosy.workflows.cli.live import PlainScreen, RichScreen, Screen, Watch
from argosy.workflows.cli.options import as_json, place
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run import FAILED, exit_code
from argosy.workflows.cli.source import Source, from_toml, is_toml, read_bytes
from argosy.workflows.cli.starting import code_digests, read_parameters
from argosy.workflows.cli.status import lines, ways_on
from argosy.workflows.cli.unwritten import UnwrittenWatch
from argosy.workflows.cluster.place import ClusterPlace
from argosy.workflows.cluster.run import ClusterRun
from argosy.workflows.cluster.state import UNNOTICED_SECONDS, facts_of
from argosy.workflows.cluster.store import open_run_store
from argosy.workflows.cluster.submission import check_accounts, create, declaring, named, rehearse, started_from

POLL_SECONDS = 1.0
LISTEN_SECONDS = 10.0
"""Between two looks at the supervisor's log: each asks for it anew."""
GONE_SECONDS = 1800.0
"""An API server that is silent for so long is not waited for any more."""
INTERRUPTED = 130


@dataclass(frozen=True)
class Submission:
    """A Workflow, the templates that come with it, and what they were read from."""

    source: Source
    workflow: dict[str, Any]
    templates: tuple[dict[str, Any], ...]


@click.command()
@click.argument("file", metavar="RUN.toml|WORKFLOW.yaml", type=click.Path(path_type=Path))
@click.option(
    "-p", "--parameter", "given", multiple=True, metavar="KEY=VALUE", help="Set a workflow parameter; repeat."
)
@click.option("--template", is_flag=True, help="Keep the run as a WorkflowTemplate and start from that.")
@click.option("--detach", is_flag=True, help="Do not follow; print the workflow's name.")
@place
@as_json
def command(
    file: Path, given: tuple[str, ...], template: bool, detach: bool, place: ClusterPlace, as_json: bool
) -> int:
    """Submit a run.toml or a workflow to a cluster and follow it.

    Puts the code into the run's store, creates the Workflow of the bytes that compile prints, and tells what happens
    until the end; Ctrl-C only stops the telling. WorkflowTemplates of a file are created or updated first. Exit code:
    0 done, 1 failed, 3 trained but refused by the gate, 130 left.

    \b
    Example:
      argosy submit run.toml -n research
      argosy submit run.toml -n research --template -p 'args=["--steps", "10"]' --detach
    """
    found = _read(file, template)
    run = start(found, place, given, lambda text: click.echo(text, err=True))
    name, api = run.name, run.api
    click.echo(f"yaml sha256 {found.source.sha256}\nworkflow {name} in namespace {api.namespace}", err=True)
    if not detach:
        return _follow(run, as_json)
    if as_json:
        emit({"workflow": name, "namespace": api.namespace, "yaml_sha256": found.source.sha256})
    else:
        click.echo(name)
        next_commands(_ways_back(run), err=True)
    return 0


def start(
    found: Submission, place: ClusterPlace, given: Sequence[str], tell: Callable[[str], None] = lambda text: None
) -> ClusterRun:
    """Put the code into the store, apply the templates, create the Workflow; ``given`` are parameters as KEY=VALUE.

    The API server judges them first, where there is code to put: the store keeps nothing of what it refuses.

    Raises:
        InputError: a wrong parameter, no way to the store. ApiError: the cluster refused.
    """
    api = place.reach()
    known = declaring(api, found.workflow, found.templates)
    parameters = read_parameters(Source(found.source.path, b"", dict(known), None, None), given, {})
    check_accounts(api, [found.workflow, *found.templates])
    document, fixed = (
        named(found.workflow, parameters, found.source.sha256),
        bool((found.workflow.get("metadata") or {}).get("name")),
    )
    if found.source.archive is not None:
        rehearse(api, document, found.templates, fixed=fixed)
    _push(found.source, facts_of(known), api.namespace, tell)
    for each in found.templates:
        api.apply(each)
        tell(f"template {each['metadata']['name']}")
    create(api, document, fixed=fixed)
    return ClusterRun(api, place, document["metadata"]["name"])


def _read(file: Path, template: bool) -> Submission:
    if is_toml(file):
        source = from_toml(file, None, "WorkflowTemplate" if template else "Workflow")
        if not template:
            return Submission(source, source.document, ())
        return Submission(source, started_from(source.document), (source.document,))
    from argosy.workflows.engine.document import read_sources

    data = read_bytes(file)
    workflows, references, configs = read_sources(data, (), str(file))
    if configs:
        raise InputError(
            f"{file}: holds the ConfigMap {configs[0].name!r}, which `argosy submit` does not create: create it with "
            "kubectl, so that it stays there for other workflows, and take it out of the file"
        )
    templates = tuple(each.manifest for each in references)
    if template and not workflows and len(templates) == 1:
        return Submission(Source(file, data, templates[0], None, None), started_from(templates[0]), templates)
    if template or len(workflows) != 1:
        held = f"{len(workflows)} Workflows and {len(templates)} WorkflowTemplates"
        raise InputError(f"{file}: holds {held}; one Workflow is submitted, or with --template one WorkflowTemplate")
    return Submission(Source(file, data, workflows[0].manifest, None, None), workflows[0].manifest, templates)


def _push(source: Source, facts: Mapping[str, str], namespace: str, tell: Callable[[str], None]) -> None:
    """The code into the store; of a workflow that was compiled before, see that it is there."""
    from argosy.steps.contract.layout import code_key

    uri, digests = facts.get(STORE_URI, ""), code_digests(source)
    if not uri or not digests:
        return
    try:
        store = open_run_store(uri, source.document, namespace)
    except InputError as error:
        if source.archive is None:
            tell(f"warning: whether its code is in the store cannot be seen from here: {error}")
            return
        raise InputError(
            f'{source.path}: the code cannot be put there: {error}; or into the image (code = "")'
        ) from None
    if source.archive is not None and source.run is not None:
        from argosy.workflows.code import push

        tell(f"code {push(source.archive, store, source.run.name)}")
        return
    for digest in digests:
        if store.head(code_key(facts.get(RUN_NAME, ""), digest)) is None:
            raise InputError(
                f"{source.path}: code-digest = {digest[:12]}…: no such code archive in {uri}; put it there with: "
                f"{typed('argosy', 'compile', description_here(), '-o', source.path, '--push')}"
            )


def _follow(run: ClusterRun, as_json: bool) -> int:
    screen: Screen
    if not as_json and sys.stdout.isatty():
        screen = RichScreen(run.name)
    else:
        screen = PlainScreen(sys.stderr if as_json else sys.stdout)
    try:
        with Watch(screen, poll_seconds=POLL_SECONDS) as watch:
            watch.found(run)
            _wait(run, screen, watch)
            deleted = run.is_gone()
    except (KeyboardInterrupt, ApiSilent) as left:
        gone = f"the cluster was not heard of for {duration(GONE_SECONDS)}: " if isinstance(left, ApiSilent) else "\n"
        click.echo(f"{gone}{run.name} goes on without us.", err=True)
        next_commands(_ways_back(run), err=True)
        return INTERRUPTED
    if deleted:
        told_deleted(run, watch.seen)
        return FAILED
    record, missing = as_far_as_known(run)
    if missing:
        say(f"warning: only what the cluster says, its event log cannot be read here: {missing}", err=True)
    if as_json:
        emit(summary(record, ""))
    else:
        for line in lines(record, record.ended or time.time()):
            say(line)
        next_commands(ways_on(record, run))
    return exit_code(record)


def _wait(run: ClusterRun, screen: Screen, watch: Watch) -> None:
    """Until it has ended; an API server that is away for a while, as in an upgrade, is not the run's end.

    Raises:
        ApiSilent: one that is gone.
    """
    began, told, silent = time.monotonic(), False, 0.0
    unwritten, listened = UnwrittenWatch(screen.line), began
    while True:
        try:
            if run.has_ended():
                return
            if not told and time.monotonic() - began > UNNOTICED_SECONDS:
                if not (state := run.state())["phase"] and state["message"]:
                    screen.line(state["message"])
                told = bool(state["phase"] or state["message"])
            if time.monotonic() - listened > LISTEN_SECONDS:
                with suppress(InputError):  # deleted in between, which the next look finds
                    unwritten.look(run.seen()[0], away=watch.is_store_away)
                listened = time.monotonic()
            silent = 0.0
        except ApiSilent as error:
            if not silent:
                screen.line(f"{error}; the run goes on meanwhile, and is asked for again")
            silent = silent or time.monotonic()
            if time.monotonic() - silent > GONE_SECONDS:
                raise
        time.sleep(POLL_SECONDS)


def _ways_back(run: ClusterRun) -> list[tuple[str, str]]:
    return [
        (run.command("status", run.name), "where it stands"),
        (run.command("logs", "-f", run.name), "follow the ranks"),
        (run.command("top"), "all runs of the namespace"),
    ]
