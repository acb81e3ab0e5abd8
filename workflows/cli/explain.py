"""``argosy explain``: the run as a story."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.contract.causes import Cause
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.meaning import injected_in, meaning
from argosy.steps.record.remedy import what_to_do
from argosy.steps.record.story import (
    began_again,
    capacity,
    ending,
    goodput_sentence,
    headline,
    lost_in,
    lost_words,
    outcome,
    silence,
    way_on,
)
from argosy.steps.record.summary import summary
from argosy.steps.record.supervisors import supervisors_lost
from argosy.steps.record.transport import latest_transports, remedies, transport_lines
from argosy.steps.record.waiting import waiting_sentence
from argosy.steps.record.wording import count, duration, short
from argosy.workflows.cli.finding import Run, find
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.status import ways_on
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@run_id
@click.option(
    "--bundle",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Fetch what the nodes kept of failed starts into DIR.",
)
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, bundle: Path | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Tell what happened to a run, why, and what to do.

    Quotes the line that each cause rests on, says what was lost and which checkpoint the run went on from.

    \b
    Example:
      argosy explain
      argosy explain gpt-x7k2p --json | jq -r .story
      argosy explain gpt-x7k2p --bundle evidence
    """
    run = find(state_dir, run_id, place)
    if bundle is not None:
        return _fetch(run, bundle, as_json)
    record = run.record()
    told = story(record, run.command("explain", run.name, "--bundle", "DIR"))
    if record.train_cause == Cause.FINISHED_WITHOUT_CHECKPOINT and isinstance(run, RunFolder):
        told += _left_by_ranks(run, record)
    if as_json:
        emit({**summary(record, str(run.report) if run.report.exists() else ""), "story": "\n".join(told)})
        return
    say("\n".join(told))
    this = run.command("explain", run.name)
    next_commands([way for way in ways_on(record, run) if way[0] != this])


def _left_by_ranks(run: RunFolder, record: RunRecord) -> list[str]:
    """Where the files of its last gang's scripts lie, of the first node."""
    gangs = [gang.name for gang in record.gangs[-1:]]
    found = sorted(path for gang in gangs for path in run.path.glob(f"nodes/*/pods/{gang}-*/volumes/workspace"))
    several = f" (1 of {len(found)} nodes)" if len(found) > 1 else ""
    return [f"What its ranks wrote, until argosy rm {run.name}: {path}{several}" for path in found[:1]]


def _fetch(run: Run, folder: Path, as_json: bool) -> None:
    from argosy.workflows.cli.bundle import fetch

    found = fetch(run, folder)
    if as_json:
        return emit({"folder": str(folder), "files": [path.as_posix() for path in found]})
    for path in found:
        say(str(path))
    say(f"{count(len(found), 'file')} in {folder}")


def story(record: RunRecord, bundle: str = "") -> list[str]:
    """Paragraphs, one line each; a quoted line is indented. ``bundle``: the command that fetches evidence of a run that
    has another name than its workflow's.
    """
    bundle = bundle or f"argosy explain {record.workflow} --bundle DIR"
    label, _ = outcome(record)
    told = [" ".join(filter(None, (f"{record.workflow}: {label}.", headline(record), silence(record))))]
    if record.message and record.restarts and not record.done:
        told.append(f"{record.message}.")
    if record.stillborn and not record.restarts and not record.done:
        told.append(f"    | {record.stillborn[-1].quote}")
    if record.dataset_digest:
        told.append(
            f"The dataset was pinned as {short(record.dataset_digest)} ({count(record.dataset_objects, 'object')})."
        )
    for index in range(len(record.restarts)):
        told += _attempt(record, index, bundle)
    told += [f"{record.unwritten[0].upper()}{record.unwritten[1:]}."] if record.unwritten else []
    told += supervisors_lost(record)
    if waited := waiting_sentence(record):
        told.append(f"{'Waits' if record.waiting and record.waiting.now else 'Waited'} for nodes: {waited}.")
    told += [f"Slow: {each.sentence}." for each in record.slow_ranks]
    told += [f"The data of steps {first} to {last} were passed over." for first, last in record.skipped_steps]
    told += _network(record)
    if on := capacity(record):
        told.append(f"Capacity: {on}.")
    if spares := record.spares.sentence:
        told.append(f"Spares: {spares}.")
    for node, cause in record.excluded_nodes:
        told.append(f"Node {node} was excluded from later gangs: {cause}.")
    if goodput := goodput_sentence(record):
        told.append(f"Goodput: {'; '.join(filter(None, (goodput, lost_words(record))))}.")
    return [*told, *_judgement(record), *what_to_do(record)]


def _attempt(record: RunRecord, index: int, bundle: str) -> list[str]:
    each = record.restarts[index]
    begin = (
        f"from step {each.restored_step} ({short(each.restored_digest)})" if each.restored_digest else "from scratch"
    )
    taken = "" if each.ended is None else f" after {duration(max(0.0, each.ended - each.began))}"
    told = [f"Attempt {index + 1} began {begin} and reached step {each.last_step}."]
    again = [f"  {warning}"] if (warning := began_again(each)) else []
    if not each.failed:
        if each.grown:
            told[0] += f" Nodes were back{taken}, so its gang was {ending(each)}; charged to nothing."
        elif each.ended is not None:
            told[0] += f" Every rank ended well{taken}."
        elif index + 1 < len(record.restarts) or record.done or record.interrupted:
            told[0] += " It was cut off together with its supervisor, so nothing says how it ended."
        return told + again
    of_it = [kept for kept in record.evidence if (kept.attempt, kept.restart) == (each.attempt, each.restart)]
    if of_it:
        again.append(f"  Evidence of its nodes: {of_it[-1].sentence} ({bundle}).")
    lost = lost_in(record, index)
    told[0] += f" It ended{taken}: {ending(each)}. {meaning(record, index)}"
    if each.quote:
        told.append(f"    | {each.quote}")
    told += [f"    Injected on purpose: {fault.words}." for fault in injected_in(record, index)]
    told.append(f"  Lost: {count(lost, 'step')}. {way_on(record, index)}")
    return told + again


def _network(record: RunRecord) -> list[str]:
    latest = latest_transports(record.transports)
    checked = record.preflight
    told = [f"Preflight: {said}." for said in (checked.summary, *checked.flaws)] if checked else []
    if checked and checked.flaws and not checked.enforced:
        told.append(
            '  To end a start that has such a flaw, and leave out a node that is named: gang.preflight = "enforce".'
        )
    told += [f"Transport {line}." for line in transport_lines(latest)]
    told += [f"  To mend it: {remedy}" for remedy in remedies(latest)]
    return told + [f"Environment: {found}." for found in record.environment_findings]


def _judgement(record: RunRecord) -> list[str]:
    told = []
    if record.gate:
        told.append(f"The gate said {record.gate.decision}: {record.gate.reason}.")
    if record.promotion:
        told.append(f"{record.promotion.pointer} now points to {short(record.promotion.digest)}.")
    elif record.refused:
        told.append("The pointer did not move.")
    return told
