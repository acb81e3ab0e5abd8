"""``argosy explain``: the run as a story."""

from __future__ import annotations

from pathlib import Path

import click

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.remedy import what_to_do
from argosy.steps.record.story import (
    began_again,
    ending,
    goodput_sentence,
    headline,
    injected_in,
    lost_in,
    meaning,
    outcome,
    way_on,
)
from argosy.steps.record.summary import summary
from argosy.steps.record.transport import latest_transports, remedies, transport_lines
from argosy.steps.record.wording import count, duration, short
from argosy.workflows.cli.finding import find
from argosy.workflows.cli.options import as_json, place, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.status import ways_on
from argosy.workflows.cluster.place import ClusterPlace


@click.command()
@run_id
@place
@as_json
@state_dir
def command(run_id: str | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Tell what happened to a run, why, and what to do.

    Quotes the line that each cause rests on, says what was lost and which checkpoint the run went on from.

    \b
    Example:
      argosy explain
      argosy explain gpt-x7k2p --json | jq -r .story
    """
    run = find(state_dir, run_id, place)
    record = run.record()
    told = story(record)
    if as_json:
        emit({**summary(record, str(run.report) if run.report.exists() else ""), "story": "\n".join(told)})
        return
    say("\n".join(told))
    next_commands(ways_on(record, run))


def story(record: RunRecord) -> list[str]:
    """Paragraphs, one line each; a quoted line is indented."""
    label, _ = outcome(record)
    told = [f"{record.workflow}: {label}. {headline(record)}"]
    if record.dataset_digest:
        told.append(
            f"The dataset was pinned as {short(record.dataset_digest)} ({count(record.dataset_objects, 'object')})."
        )
    for index in range(len(record.restarts)):
        told += _attempt(record, index)
    told += _network(record)
    if spares := record.spares.sentence:
        told.append(f"Spares: {spares}.")
    for node, cause in record.excluded_nodes:
        told.append(f"Node {node} was excluded from later gangs: {cause}.")
    if record.goodput:
        lost = f"; {count(record.goodput.lost_steps, 'step')} had to be done again" if record.goodput.lost_steps else ""
        told.append(f"Goodput: {goodput_sentence(record)}{lost}.")
    return [*told, *_judgement(record), *what_to_do(record)]


def _attempt(record: RunRecord, index: int) -> list[str]:
    each = record.restarts[index]
    begin = (
        f"from step {each.restored_step} ({short(each.restored_digest)})" if each.restored_digest else "from scratch"
    )
    taken = "" if each.ended is None else f" after {duration(max(0.0, each.ended - each.began))}"
    told = [f"Attempt {index + 1} began {begin} and reached step {each.last_step}."]
    again = [f"  {warning}"] if (warning := began_again(each)) else []
    if not each.failed:
        if each.ended is not None:
            told[0] += f" Every rank ended well{taken}."
        elif index + 1 < len(record.restarts):
            told[0] += " It was cut off together with its supervisor, so nothing says how it ended."
        return told + again
    lost = lost_in(record, index)
    told[0] += f" It ended{taken}: {ending(each)}. {meaning(each)}"
    if each.quote:
        told.append(f"    | {each.quote}")
    told += [f"    Injected on purpose: {fault.fault}." for fault in injected_in(record, index)]
    told.append(f"  Lost: {count(lost, 'step')}. {way_on(record, index)}")
    return told + again


def _network(record: RunRecord) -> list[str]:
    latest = latest_transports(record.transports)
    checked = record.preflight
    told = [f"Preflight: {said}." for said in (checked.summary, *checked.flaws)] if checked else []
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
