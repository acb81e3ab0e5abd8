"""``argosy events``."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.objects import trigger_name
from argosy.workflows.cli.options import as_json, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import open_embedded
from argosy.workflows.cli.source import Source, from_toml, from_yaml, is_toml
from argosy.workflows.cluster.store import open_run_store

if TYPE_CHECKING:
    from argosy.steps.events.journal import Decision, Journal

WHY = "why"
_RUN = "run.toml"


@click.command()
@click.argument("words", nargs=-1, metavar="[why URI] [RUN]")
@click.option("--last", default=50, show_default=True, type=click.IntRange(1), help="So many decisions.")
@as_json
@state_dir
def command(words: tuple[str, ...], last: int, as_json: bool, state_dir: Path) -> int:
    """Say what new data started, or did not, and why.

    RUN is a run.toml, a compiled workflow, or the run's place in its store (s3://bucket/store/NAME); run.toml if it is
    left out. Of every announced object there is a decision: start, duplicate, waiting or refused. "why URI" tells all
    decisions about one dataset or object, and what would be decided now; exit code 1 when nothing is known of it.

    \b
    Example:
      argosy events run.toml
      argosy events why s3://bucket/corpus/v7/_SUCCESS run.toml
    """
    from argosy.steps.events.journal import Journal

    uri, run = _words(words)
    source, store_uri, name = _run(run)
    document = source.document if source else None
    store = open_run_store(store_uri, {}, "") if document is None else open_embedded(store_uri, document, state_dir)
    journal = Journal(store, name)
    if uri:
        return _why(journal, source, uri, as_json)
    decisions = journal.newest(last)
    if as_json:
        emit({"run": name, "decisions": [asdict(each) for each in decisions]})
        return 0
    undone = set(journal.undone())
    for each in decisions:
        say(_row(each, undone))
    if not decisions:
        if source is not None and source.run is not None and source.run.trigger is None:
            say(f"no decision: {run} has no [trigger], so nothing starts it (argosy explain-config trigger)")
            return 0
        looked = journal.note("baseline") is not None
        found = "the looks have found nothing new" if looked else "nobody has looked"
        say(f"no decision yet: nothing was announced, and {found}")
        look = typed("argo", "submit", "--from", f"workflowtemplate/{trigger_name(name)}")
        here = [(typed("argosy", "watch", run), "look at the data from here")] if source else []
        next_commands([*here, (look, "look now, where argosy install put the trigger")])
    return 0


def _words(words: Sequence[str]) -> tuple[str, str]:
    if words[:1] == (WHY,):
        example = "write for example argosy events why s3://bucket/corpus/v7 run.toml"
        if not 2 <= len(words) <= 3:
            raise InputError(f"why: which data? {example}")
        if "://" not in words[1]:
            raise InputError(f"why {words[1]!r}: no uri, by which data are announced; {example}")
        return words[1], words[2] if len(words) == 3 else _RUN
    if len(words) > 1:
        raise InputError(f"{' '.join(words)}: one run is named, or why and a uri")
    return "", words[0] if words else _RUN


def _run(run: str) -> tuple[Source | None, str, str]:
    """The description if there is one, the store's uri, and the run's name."""
    if "://" in run:
        from argosy.steps.store.opening import check_uri

        store, _, name = check_uri(run, "RUN").rpartition("/")
        if store.endswith(("/", ":")) or not name:
            raise InputError(f"RUN {run!r}: no run's place in a store; write for example s3://bucket/store/NAME")
        return None, store, name
    path = Path(run)
    source = from_toml(path, None) if is_toml(path) else from_yaml(path)
    if not source.store_uri:
        raise InputError(f"{run}: a workflow that is none of ours; name the run.toml")
    return source, source.store_uri, source.run_name


def _why(journal: Journal, source: Source | None, uri: str, as_json: bool) -> int:
    decisions: list[Decision] = []
    parts = uri.rstrip("/")
    while not decisions and parts.count("/") > 2:
        decisions = journal.about(parts)
        parts = parts.rpartition("/")[0]
    outlook = "" if decisions else _outlook(journal, source, uri)
    if as_json:
        emit({"uri": uri, "decisions": [asdict(each) for each in decisions], "now": outlook})
    else:
        undone = set(journal.undone())
        for each in decisions:
            say(_row(each, undone))
        if not decisions:
            say(f"{uri}: no decision: it was never announced, and no look has found it")
        if outlook:
            say(f"now: {outlook}")
    return 0 if decisions else 1


def _outlook(journal: Journal, source: Source | None, uri: str) -> str:
    """Why nothing was decided, as far as the run's description and the first look tell."""
    if source is None or source.run is None or source.run.trigger is None:
        return ""
    from argosy.steps.events.hearing import MAY_START, name_decision, was_there_before
    from argosy.workflows.templates.trigger import trigger_args

    args = trigger_args(source.run)
    if was_there_before(args, journal, uri):
        return "it was there before the trigger was; trigger.backfill = true starts it, and so does announcing it again"
    told = name_decision(args, uri)
    if journal.note("baseline") is None and not args.backfill and told.startswith(MAY_START):
        return f"nobody has looked yet: what was there before the trigger starts nothing; {MAY_START} starts the run"
    return told


def _row(decision: Decision, undone: Collection[int]) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(decision.time))
    started = f" -> {decision.workflow}" if decision.workflow else ""
    data = f" [{decision.fingerprint[:12]}]" if decision.fingerprint else ""
    by = f" ({decision.source})" if decision.source else ""
    open_yet = ", not created yet: the next event or look does" if decision.seq in undone else ""
    return f"{when}  {decision.decision:<9}  {decision.subject}{data}{started}{open_yet}: {decision.why}{by}"
