"""``argosy status``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from argosy.steps.record.facts import RunRecord
from argosy.steps.record.story import (
    capacity,
    ending,
    goodput_sentence,
    headline,
    measures,
    outcome,
    silence,
    streaming_sentence,
)
from argosy.steps.record.summary import summary
from argosy.steps.record.transport import latest_transports, transport_lines
from argosy.steps.record.waiting import waiting_sentence
from argosy.steps.record.wording import called, count, duration, figure, short, size
from argosy.workflows.cli.finding import Run, find, known
from argosy.workflows.cli.options import as_json, place_or_here, run_id, state_dir
from argosy.workflows.cli.output import emit, next_commands, say, typed
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cluster.place import ClusterPlace

OLD_SECONDS = 60.0
"""Steps come into the log of a store each 30 seconds at the least."""


@click.command()
@run_id
@place_or_here
@as_json
@state_dir
def command(run_id: str | None, place: ClusterPlace, as_json: bool, state_dir: Path) -> None:
    """Say where a run stands.

    RUN_ID is a workflow name or run id; without it, the run started last. With -n or --context a run of a cluster,
    by its workflow's name; or the uri of its place in a store, s3://…/NAME/runs/RUN_ID.

    \b
    Example:
      argosy status
      argosy status gpt-x7k2p -n research
      argosy status gpt-x7k2p --json | jq .attempts
    """
    run = find(state_dir, run_id, place)
    record = known(run)
    if as_json:
        emit(summary(record, str(run.report) if run.report.exists() else ""))
        return
    for line in lines(record, time.time()):
        say(line)
    next_commands(ways_on(record, run))


def lines(record: RunRecord, now: float) -> list[str]:
    """The status as lines of text; ``now`` in seconds since 1970."""
    label, _ = outcome(record)
    # When an interrupted run stopped is not written down, and it is not spending time now.
    until = record.ended or (None if record.interrupted else now)
    spent = "" if record.started is None or until is None else f", {duration(record.spent(record.started, until))}"
    if record.silent_since is not None:
        spent = f" for {duration(now - record.silent_since)}"
    found = [f"{called(record.workflow, record.run_id)}: {label}{spent}", f"  {headline(record)}"]
    found += [f"  {said}"] if (said := silence(record)) else []
    if record.message and not record.duplicate and record.restarts:
        found.append(f"  {record.message}")
    width = max((len(node.name) for node in record.nodes), default=0)
    for node in record.nodes:
        taken = ""
        if node.began is not None and node.ended is not None:
            taken = duration(record.spent(node.began, node.ended))
        phase = "Cut off" if record.interrupted and node.phase == "Running" else node.phase
        found.append(f"  {node.name:<{width}}  {phase:<9}  {taken}".rstrip())
    found += [*_training(record, now), *_results(record)]
    return found


def _training(record: RunRecord, now: float) -> list[str]:
    found = []
    if record.restarts and record.restarts[-1].points:
        latest = record.restarts[-1].points[-1]
        total = f" of {record.end_step}" if record.end_step else ""
        loss = "" if latest.loss is None else f", loss {figure(latest.loss)}"
        step, speed = latest.step, latest.tokens_per_second
        if record.done:  # a script that prints each tenth step has not ended at the last it printed
            step, speed = max(step, record.last_step), record.speed
        told = "" if speed is None else f", {speed:,.0f} tokens/s"
        runs = record.phase == "Running" and not record.interrupted and record.train_ended is None
        # Of a store that takes nothing, the event log among it, nothing else would tell.
        old = f", told {duration(now - latest.time)} ago" if runs and now - latest.time > OLD_SECONDS else ""
        found.append(f"  training: step {step}{total}{loss}{told}{old}")
    found += [f"  {record.unwritten}"] if record.unwritten else []
    if record.stalled and not record.done:
        found.append(f"  stalled: {record.stalled}")
    found += [f"  slow: {each.sentence}" for each in record.slow_ranks[-3:]]
    for number, each in enumerate(record.restarts, 1):
        if each.failed:
            found.append(f"  attempt {number}: ended at step {each.last_step}, {ending(each)}")
        elif each.grown:
            found.append(f"  attempt {number}: {ending(each)} at step {each.last_step}")
    if on := capacity(record):
        found.append(f"  capacity: {on}")
    if record.preflight:
        found.append(f"  preflight: {record.preflight.sentence}")
    if record.transports:
        lines = transport_lines(latest_transports(record.transports))
        more = f" (and {count(len(lines) - 1, 'more line')}: argosy explain)" if len(lines) > 1 else ""
        found.append(f"  transport: {lines[0]}{more}")
    if record.checkpoints:
        newest, aside = record.newest, sum(bool(each.set_aside) for each in record.checkpoints)
        told = count(len(record.checkpoints), "commit") + (f", {aside} set aside" if aside else "")
        if newest is not None:
            told += f", newest step {newest.step} ({short(newest.digest)}, {size(newest.bytes)})"
        found.append(f"  checkpoints: {told}")
    if waited := waiting_sentence(record):
        found.append(f"  {'waits' if record.waiting and record.waiting.now else 'waited'}: {waited}")
    if spares := record.spares.sentence:
        found.append(f"  spares: {spares}")
    if record.streaming:
        found.append(f"  streamed: {streaming_sentence(record)}")
    if goodput := goodput_sentence(record):
        found.append(f"  goodput: {goodput}")
    return found


def _results(record: RunRecord) -> list[str]:
    found = []
    if record.evaluation:
        held = short(record.evaluation.checkpoint_digest)
        found.append(f"  evaluation: {record.evaluation.metric} {figure(record.evaluation.value)} of checkpoint {held}")
    if record.gate:
        found.append(f"  gate: {record.gate.decision}, {record.gate.reason}")
    if record.promotion:
        moved = "went back" if record.promotion.rollback else "promoted"
        found.append(f"  {moved}: {record.promotion.pointer} -> {short(record.promotion.digest)}")
    return found


def ways_on(record: RunRecord, run: Run) -> list[tuple[str, str]]:
    """The next commands that make sense for a run in this state."""
    name = run.name
    explain = (run.command("explain", name), "what happened, why, what to do")
    if record.interrupted and isinstance(run, RunFolder):
        return [(run.command("run", run.path / "workflow.yaml"), "go on where it stopped"), explain]
    if record.silent_since is not None:
        again = typed("argosy", "submit", "run.toml", "-p", f"run-id={record.run_id}")
        here = typed("argosy", "run", "run.toml", "--run-id", record.run_id)
        if record.was_local:
            return [(here, "go on from its checkpoints"), explain]
        waits = typed("argosy", "status", record.workflow, "-n", "NAMESPACE")
        return [
            (waits, "whether its cluster still has it, and what it waits for"),
            (again, "go on from its checkpoints if it died, on a cluster"),
            (here, "the same on this machine"),
            explain,
        ]
    if not record.done:
        return [(run.command("logs", "-f", name), "follow the ranks"), explain]
    shown = (run.command("report", name), "write the HTML report")
    if record.phase != "Succeeded":
        return [explain, (run.command("logs", name), "what every rank wrote"), shown]
    if measures(record) and record.store_uri.partition(":")[0] != "file":
        place = f"{record.store_uri}/{record.name}/runs/{record.run_id}"
        return [(typed("argosy", "checkpoint", "get", place, "bench"), "result.json and the plot"), explain]
    return [shown, explain]
