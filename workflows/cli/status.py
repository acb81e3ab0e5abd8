"""``argosy status``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from argosy.workflows.cli.options import as_json, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say
from argosy.workflows.cli.run_folder import RunFolder, find_run
from argosy.workflows.record.facts import RunRecord
from argosy.workflows.record.story import ending, goodput_sentence, headline, outcome, streaming_sentence
from argosy.workflows.record.summary import summary
from argosy.workflows.record.transport import latest_transports, transport_lines
from argosy.workflows.record.wording import count, duration, figure, short, size


@click.command()
@run_id
@as_json
@state_dir
def command(run_id: str | None, as_json: bool, state_dir: Path) -> None:
    """Say where a run stands.

    RUN_ID is a workflow name or run id; without it, the run started last.

    \b
    Example:
      argosy status
      argosy status gpt-x7k2p --json | jq .attempts
    """
    folder = find_run(state_dir, run_id)
    record = folder.record()
    if as_json:
        emit(summary(record, str(folder.report) if folder.report.exists() else ""))
        return
    for line in lines(record, time.time()):
        say(line)
    next_commands(ways_on(record, folder))


def lines(record: RunRecord, now: float) -> list[str]:
    """The status as lines of text; ``now`` in seconds since 1970."""
    label, _ = outcome(record)
    # When an interrupted run stopped is not written down, and it is not spending time now.
    until = record.ended or (None if record.interrupted else now)
    spent = "" if record.started is None or until is None else f", {duration(max(0.0, until - record.started))}"
    found = [f"{record.workflow}: {label}{spent}", f"  {headline(record)}"]
    if record.message and not record.duplicate and record.restarts:
        found.append(f"  {record.message}")
    width = max((len(node.name) for node in record.nodes), default=0)
    for node in record.nodes:
        taken = duration(node.ended - node.began) if node.ended is not None and node.began is not None else ""
        found.append(f"  {node.name:<{width}}  {node.phase:<9}  {taken}".rstrip())
    found += [*_training(record), *_results(record)]
    return found


def _training(record: RunRecord) -> list[str]:
    found = []
    if record.restarts and record.restarts[-1].points:
        latest = record.restarts[-1].points[-1]
        total = f" of {record.end_step}" if record.end_step else ""
        loss = "" if latest.loss is None else f", loss {figure(latest.loss)}"
        speed = "" if latest.tokens_per_second is None else f", {latest.tokens_per_second:,.0f} tokens/s"
        found.append(f"  training: step {latest.step}{total}{loss}{speed}")
    for number, each in enumerate(record.restarts, 1):
        if each.failed:
            found.append(f"  attempt {number}: ended at step {each.last_step}, {ending(each)}")
    if record.transports:
        lines = transport_lines(latest_transports(record.transports))
        more = f" (and {count(len(lines) - 1, 'more line')}: argosy explain)" if len(lines) > 1 else ""
        found.append(f"  transport: {lines[0]}{more}")
    if record.checkpoints:
        newest = record.checkpoints[-1]
        held = f"{short(newest.digest)}, {size(newest.bytes)}"
        found.append(f"  checkpoints: {count(len(record.checkpoints), 'commit')}, newest step {newest.step} ({held})")
    if record.streaming:
        found.append(f"  streamed: {streaming_sentence(record)}")
    if record.goodput:
        found.append(f"  goodput: {goodput_sentence(record)}")
    return found


def _results(record: RunRecord) -> list[str]:
    found = []
    if record.evaluation:
        held = short(record.evaluation.checkpoint_digest)
        found.append(f"  evaluation: {record.evaluation.metric} {figure(record.evaluation.value)} of checkpoint {held}")
    if record.gate:
        found.append(f"  gate: {record.gate.decision}, {record.gate.reason}")
    if record.promotion:
        found.append(f"  promoted: {record.promotion.pointer} -> {short(record.promotion.digest)}")
    return found


def ways_on(record: RunRecord, folder: RunFolder) -> list[tuple[str, str]]:
    """The next commands that make sense for a run in this state."""
    name = folder.path.name
    explain = (folder.command("explain", name), "what happened, why, what to do")
    if record.interrupted:
        return [(folder.command("run", folder.path / "workflow.yaml"), "go on where it stopped"), explain]
    if not record.done:
        return [(folder.command("logs", "-f", name), "follow the ranks"), explain]
    shown = (folder.command("report", name), "write the HTML report")
    if record.phase != "Succeeded":
        return [explain, (folder.command("logs", name), "what every rank wrote"), shown]
    return [shown, explain]
