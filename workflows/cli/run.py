"""``argosy run``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from signal import Signals
from typing import TYPE_CHECKING

import click

from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.summary import summary
from argosy.steps.store.leaving import UNWRITTEN
from argosy.workflows.cli.code_difference import starting_anew
from argosy.workflows.cli.document import read_resolved
from argosy.workflows.cli.finding import as_far_as_known
from argosy.workflows.cli.last_words import last_words, told
from argosy.workflows.cli.live import PlainScreen, RichScreen, Screen, Watch
from argosy.workflows.cli.logs import RankLines
from argosy.workflows.cli.options import as_json, ranks, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import ENDED, RunFolder, own_run
from argosy.workflows.cli.source import Source, from_toml, from_yaml, is_toml, push_code
from argosy.workflows.cli.starting import (
    ONCE,
    check_code,
    check_faults,
    check_gpus,
    check_not_running,
    checked_name,
    read_event,
    read_parameters,
)
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.cli.status import lines, ways_on
from argosy.workflows.cli.written import write_whole

if TYPE_CHECKING:
    from argosy.steps.contract.injection import Injection
    from argosy.workflows.engine.api import RunOptions, WorkflowState

FAILED = 1
REFUSED = 3


@dataclass(frozen=True)
class Request:
    """The flags of one call."""

    parameters: tuple[str, ...]
    named: dict[str, str]
    event: Path | None
    inject: tuple[str, ...]
    new: bool
    templates: tuple[Path, ...]
    follow: bool
    as_json: bool
    state_dir: Path
    name: str = ""
    command: str = ""
    """What runs this description again."""


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@ranks
@click.option(
    "-p", "--parameter", "given", multiple=True, metavar="KEY=VALUE", help="Set a workflow parameter; repeat."
)
@click.option(
    "--event", type=click.Path(path_type=Path), help="Start only if this S3, SQS or MinIO notification says so."
)
@click.option(
    "--inject",
    multiple=True,
    metavar="FAULT",
    help="Cause a real fault, as in kill:rank=1@step=40, @seconds=9 or @phase=save; repeat.",
)
@click.option("--replay", default="", metavar="RUN", help="Cause the failures that RUN had, at the same steps.")
@click.option("--name", default="", help="Name of the workflow; one that was interrupted goes on. [default: chosen]")
@click.option("--run-id", default="", help="Stable id of the run. [default: the workflow's name]")
@click.option("--once", is_flag=True, help="Do not start when the same run on the same data has been started before.")
@click.option("--force", is_flag=True, help="Start whatever was started before.")
@click.option("--resume-from", default="", help="latest, none, or a checkpoint's digest. [default: latest]")
@click.option("--new", is_flag=True, help="Start a new run even if an interrupted one could go on.")
@click.option(
    "--templates",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with WorkflowTemplates or ConfigMaps; repeat.",
)
@click.option("-f", "--follow", is_flag=True, help="Also show what the ranks write, as it comes.")
@as_json
@state_dir
def command(
    file: Path,
    ranks: tuple[int, int] | None,
    given: tuple[str, ...],
    event: Path | None,
    inject: tuple[str, ...],
    replay: str,
    name: str,
    run_id: str,
    once: bool,
    force: bool,
    resume_from: str,
    new: bool,
    templates: tuple[Path, ...],
    follow: bool,
    as_json: bool,
    state_dir: Path,
) -> int:
    """Run a run.toml or a workflow on this machine.

    FILE is a run's description (.toml) or what compile made of it (.yaml). An interrupted run of the same bytes
    goes on where it stopped. Exit code: 0 done, 1 failed, 3 trained but refused by the gate.

    \b
    Example:
      argosy run run.toml -j 2x2 --inject kill:rank=1@step=40
      argosy run workflow.yaml --event event.json --json
      argosy run workflow.yaml --replay s3://bucket/store/gpt/runs/gpt-x7k2p
    """
    from argosy.steps.contract.injection import parse

    if once and force:
        raise InputError("--once --force: one refuses a second start, the other wants it; leave one of them out")
    named = {
        "run-id": run_id,
        "force": "true" if force else "",
        "resume-from": resume_from,
        "event": ONCE if once else "",
    }
    faults = [*(parse(text) for text in inject), *(_replayed(replay, state_dir) if replay else ())]
    texts = tuple(fault.text for fault in faults)
    again = _typed(file, ranks, given) if is_toml(file) else ""
    if not (new or name or given or event or any(named.values())) and (own := own_run(file, state_dir)) is not None:
        name, given, templates = own.name, own.given(), templates or own.templates()
    request = Request(given, named, event, texts, new, templates, follow, as_json, state_dir, checked_name(name), again)
    if is_toml(file):
        source = from_toml(file, ranks)
    elif ranks is not None:
        raise InputError(f"-j: {file} holds its number of nodes already; use -j with the run.toml it was compiled from")
    else:
        source = from_yaml(file)
    check_faults(source, faults)
    if replay:
        _compare(replay, state_dir, source)
    if templates:
        source = replace(source, document=read_resolved(source.yaml, templates))
    return _start(source, request)


def _typed(file: Path, ranks: tuple[int, int] | None, given: Sequence[str]) -> str:
    """Without what names one run, or is done to one."""
    shape = () if ranks is None else ("-j", f"{ranks[0]}x{ranks[1]}")
    kept = (word for each in given if not each.startswith("run-id=") for word in ("-p", each))
    return typed("argosy", "run", file, *shape, *kept)


def _replayed(name: str, state_dir: Path) -> list[Injection]:
    from argosy.workflows.cli.finding import find
    from argosy.workflows.cli.replay import replayed

    found = replayed(find(state_dir, name, None).record())
    say(f"replaying {name}: {', '.join(fault.text for fault in found)}", err=True)
    return found


def _compare(name: str, state_dir: Path, source: Source) -> None:
    """Say it when the failures are replayed on another YAML than theirs: they may not come as they did."""
    from argosy.workflows.cli.finding import find

    theirs = find(state_dir, name, None).record().yaml_sha256
    if theirs and theirs != source.sha256:
        say(f"warning: {name} ran the YAML with sha256 {theirs[:12]}, {source.path} is another", err=True)


def _start(source: Source, request: Request) -> int:
    named = dict(request.named)
    if request.event is not None:
        starts, reason, values = read_event(source, request.event)
        if not starts:
            return _not_started(source, request, reason)
        named |= values
    options = _options(source, request, read_parameters(source, request.parameters, named))
    check_not_running(source, options.parameters, request.state_dir)
    check_gpus(source)
    check_state_dir(request.state_dir, source)
    check_code(source, request.state_dir)
    push_code(source, request.state_dir)
    _announce(source, options, request)
    state, away = _watched(source, options, request)
    code = _conclude(RunFolder(state.run_dir, request.state_dir), request, away=away and bool(state.interrupted))
    return 128 + Signals[state.interrupted] if state.interrupted else code


def _options(source: Source, request: Request, parameters: dict[str, str]) -> RunOptions:
    from argosy.workflows.engine.api import RunOptions, check, latest_unfinished

    known = RunOptions(request.state_dir, parameters, request.templates, inject=request.inject, command=request.command)
    try:
        check(source.yaml, known)
    except InputError as error:
        submit = "argo submit" if source.run is None else "argosy submit"
        remedy = f"correct it; what only a cluster can run goes there with: {submit} {source.path}"
        raise InputError(f"{source.path}: {error}; {remedy}") from error
    if request.name:
        return replace(known, workflow_name=request.name)
    if request.new:
        return known
    interrupted = latest_unfinished(request.state_dir, source.sha256, parameters)
    return known if interrupted is None else replace(known, workflow_name=interrupted.name)


def _announce(source: Source, options: RunOptions, request: Request) -> None:
    from argosy.workflows.engine.api import ignored

    click.echo(f"yaml sha256 {source.sha256}", err=True)
    if idle := sorted({each.path.rpartition(".")[2].partition("[")[0] for each in ignored(source.yaml, options)}):
        say(f"without effect on one machine: {', '.join(idle)}", err=True)
    named = RunFolder(request.state_dir / "runs" / (options.workflow_name or ""), request.state_dir)
    known = {} if not options.workflow_name or named.engine_runs() else named.state()
    if known.get("yaml_sha256") == source.sha256 and known.get("phase") not in ENDED:
        click.echo(f"going on with the interrupted run {options.workflow_name} (--new starts another)", err=True)
    elif not request.new and not request.named["run-id"] and (told := starting_anew(source, request.state_dir)):
        say(told, err=True)


def _watched(source: Source, options: RunOptions, request: Request) -> tuple[WorkflowState, bool]:
    """The state at the end, and whether the store does not answer then."""
    from argosy.workflows.engine.api import run

    screen: Screen = PlainScreen(sys.stderr if request.as_json else sys.stdout)
    if not request.as_json and sys.stdout.isatty():
        screen = RichScreen(source.run_name or source.path.name)
    # Only a run that goes on has a past; nothing else may depend on the clock.
    since = time.time() if options.workflow_name or request.named["run-id"] else 0.0
    written, folder = RankLines(skip=bool(since)) if request.follow else None, request.state_dir
    with Watch(screen, since, written=written) as watch:
        state = run(source.yaml, options, lambda now: watch.found(RunFolder(now.run_dir, folder), now.record()))
    return state, watch.is_store_away


def _conclude(folder: RunFolder, request: Request, *, away: bool = False) -> int:
    from argosy.workflows.report.page import render

    record, unread = (folder.outline(), UNWRITTEN) if away else as_far_as_known(folder)
    if unread:
        say(f"warning: what the run's store has of it is missing here: {unread}", err=True)
    words = last_words(folder, record)
    write_whole(report := folder.report, render(record, words).encode())
    for text in not_injected(record, request.inject):
        click.echo(f"warning: --inject {text}", err=True)
    if request.as_json:
        emit(summary(record, str(report)))
    else:
        for line in lines(record, record.ended or 0.0):
            say(line)
        for line in told(words):
            say(line)
        click.echo(f"  report: {report}")
        next_commands(ways_on(record, folder))
    return exit_code(record)


def not_injected(record: RunRecord, wanted: tuple[str, ...]) -> list[str]:
    """Faults that were asked for and did not happen: a test of nothing must not look like a test that was passed."""
    from argosy.steps.contract.injection import CANNOT_EXIT, parse

    happened = [fault.asked for fault in record.injected]
    left = [each for each in map(parse, wanted) if each.text not in happened]
    unable = any(each.quote.startswith(CANNOT_EXIT) for each in record.restarts)
    why = ("its step, time or phase never came", "its script does not call argosy.report")
    return [f"{each.text} did not happen: {why[unable and each.fault == 'exit']}" for each in left]


def exit_code(record: RunRecord) -> int:
    """0 done, 1 failed, 3 trained but refused by the gate."""
    if record.phase != "Succeeded":
        return FAILED
    return REFUSED if record.refused else 0


def _not_started(source: Source, request: Request, reason: str) -> int:
    """The event is for something else: nothing is wrong, nothing runs."""
    state = {"name": "", "phase": "NotStarted", "message": reason, "yaml_sha256": source.sha256}
    if request.as_json:
        emit({**summary(build_record([], state), ""), "admission": {"decision": "ignore", "reason": reason}})
    else:
        say(f"not started: {reason}")
        next_commands([(typed("argosy", "run", source.path), "start it by hand")])
    return 0
