"""A record in sentences: the outcome, each failure, each way on."""

from __future__ import annotations

from collections.abc import Sequence
from signal import SIGTERM, Signals
from typing import Literal

from argosy.steps.bench_comm import ENDING
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.record.facts import RunRecord, StepNode
from argosy.steps.record.goodput import in_words, lost_at_end_of, lost_steps, redone_steps
from argosy.steps.record.restart import Restart
from argosy.steps.record.termination import STOPPED, held_up
from argosy.steps.record.wording import clock, count, duration, figure, short, size

OFTEN = 3
"""A cause that comes oftener is told at once, however far the run comes."""
Tone = Literal["good", "warn", "bad", "busy", "quiet"]


def outcome(record: RunRecord) -> tuple[str, Tone]:
    """How the run stands, in two or three words, and the tone to say it in."""
    if record.phase in ("Failed", "Error"):
        return "Failed", "bad"
    if not record.done:
        if record.silent_since is not None:
            return "Silent", "warn"
        return ("Interrupted", "warn") if record.interrupted else (record.phase, "busy")
    if record.duplicate:
        return "Not started: duplicate", "quiet"
    if record.refused:
        return "Refused by the gate", "warn"
    return ("Promoted", "good") if record.promotion else ("Succeeded", "good")


def headline(record: RunRecord) -> str:
    """What happened, in one or two sentences."""
    if record.duplicate and record.admission:
        return f"Nothing ran: {record.admission.reason}."
    failures = [each for each in record.restarts if each.failed and not _was_stopped(record, each)]
    if not record.restarts:
        return _without_training(record)
    gang = record.gangs[-1] if record.gangs else None
    where = f" on {count(gang.nnodes, 'node')} × {count(gang.nproc_per_node, 'rank')}" if gang else ""
    one = 1 if record.phase == "Succeeded" else 0  # the last of 12 that are counted from 0 is 11
    end = 0 if record.newest is not None and record.newest.counts_otherwise else record.end_step
    reached = f"{record.last_step}" + (f" of {end}" if end > record.last_step + one else "")
    reached = f"Measured {reached} exchanges" if measures(record) else f"Trained to step {reached}"
    done = reached if record.last_step else _without_steps(record)
    parts = [f"{done}{where} in {count(len(record.restarts), 'attempt')}"]
    if failures:
        parts.append(f"{count(len(failures), 'failure')} on the way")
    for cause in sorted({each.cause for each in failures}):
        if (often := sum(each.cause == cause for each in failures)) > OFTEN:
            goes_on = "" if record.phase in ("Failed", "Error") else ", which will go on until it is mended"
            parts.append(f"{often} times for {cause}{goes_on}")
    if lost := lost_words(record):
        parts.append(lost)
    if record.unsaved and record.newest is not None:
        parts.append(f"the last checkpoint being of step {record.newest.step}")
    sentence = ", ".join(parts) + "."
    if record.gate:
        sentence += f" Gate: {record.gate.reason.rstrip('.')}." if record.gate.reason else ""
    elif record.phase in ("Failed", "Error"):
        sentence += _failure(record)
    elif record.evaluation:
        sentence += f" {record.evaluation.metric} is {figure(record.evaluation.value)}."
    return sentence + _held_up(record)


def silence(record: RunRecord) -> str:
    """What a run means of which nothing is heard; "" for every other."""
    if record.silent_since is None:
        return ""
    said = f"Nothing was heard of it since {clock(record.silent_since)}, and its end is not recorded"
    if record.was_local:
        return f"{said}: it was interrupted, or died, on the machine that ran it."
    return f"{said}: it died, or its next pod waits for a node, which its cluster alone knows."


def measures(record: RunRecord) -> bool:
    """Whether it trains nothing: a run of ``argosy bench-comm``."""
    return record.name.endswith(ENDING)


def _without_steps(record: RunRecord) -> str:
    if record.train_ended is not None and not record.train_cause:
        return "Trained"
    return "No step was read" if record.checkpoints else "No step was made" if record.done else "No step yet"


def _without_training(record: RunRecord) -> str:
    if record.phase in ("Failed", "Error") and failed_step(record) is not None:
        return f"{record.message}." if STOPPED.search(record.message) else _failure(record).strip()
    ran = f"{count(len(record.nodes), 'step')} ran." if record.nodes else "No step has run."  # a workflow not of ours
    said = record.message or (_not_begun(record) if record.name else ran)
    return f"{said.rstrip('.')}.{held}" if (held := _held_up(record)) else said


def _not_begun(record: RunRecord) -> str:
    if record.outline and any(node.template == "train" and node.phase != "Pending" for node in record.nodes):
        return "How far it came stands in its event log alone."
    if any(node.template == "train" and node.phase == "Succeeded" for node in record.nodes):
        return "How far it came stood in its event log, of which nothing is left in the store."
    if record.stillborn and not record.done:
        often = count(len(record.stillborn), "start")
        return f"Training has not begun: {often} failed, the last for {ending(record.stillborn[-1])}."
    return "Training has not begun."


def _held_up(record: RunRecord) -> str:
    """Which pod of the workflow cannot begin, or could not, and why."""
    found = [(each.name, why) for each in record.nodes if (why := held_up(each.phase, each.message))]
    if found:
        return f" The step {found[-1][0]} waits: {found[-1][1].rstrip('.')}."
    # While the next try of a step runs, why the last one ended is all there is to say; a training has more.
    ended = [each for each in record.nodes if record.restarts or each.phase not in ("Pending", "Running")]
    # A failed training tells of itself in its restarts; not so where its supervisor found, say, a full disk.
    told = record.stillborn or (record.restarts and record.restarts[-1].failed)
    how = {"Error": "ended in an error", "Failed": "" if told else "failed"}
    if record.done or not ended or not (said := how.get(ended[-1].phase)) or not ended[-1].message:
        return ""
    return f" The step {ended[-1].name} {said}: {ended[-1].message.rstrip('.')}."


def _failure(record: RunRecord) -> str:
    step = failed_step(record)
    if step is None:
        return ""
    if stopped(record):
        return f" It was stopped at the step {step.name}."
    return f" The step {step.name} failed" + (f" for {cause}." if (cause := step.cause) else ".")


def ending(each: Restart) -> str:
    """How an attempt ended: ``native_crash: rank 1 on node-0, signal 9 (SIGKILL)``."""
    if not each.failed:
        if each.grown:
            return f"made anew for {count(each.grown, 'node')}"
        return "running" if each.ended is None else "every rank ended well"
    parts = []
    if each.rank is not None:
        parts.append(f"rank {each.rank}" + (f" on {each.node}" if each.node else ""))
    elif each.node:
        parts.append(each.node)
    if each.signal is not None:
        parts.append(f"signal {each.signal} ({signal_name(each.signal)})")
    elif each.exit_code is not None:
        parts.append(f"exit code {each.exit_code}")
    return f"{each.cause}: {', '.join(parts)}" if parts else each.cause


def signal_name(number: int) -> str:
    """``SIGKILL`` for 9."""
    try:
        return Signals(number).name
    except ValueError:
        return "no name here"


def capacity(record: RunRecord) -> str:
    """``on-demand nodes since gang 4: 3 preemptions on spot nodes``; "" for a run that asked for none of these."""
    latest = record.gangs[-1] if record.gangs else None
    if latest is None or not latest.capacity:
        return ""
    lost = count(latest.preemptions, "preemption")
    if latest.capacity == "spot":
        return f"spot nodes, {lost} before gang {latest.attempt}"
    first = next(gang for gang in record.gangs if gang.capacity == latest.capacity)
    return f"on-demand nodes since gang {first.attempt}: {count(first.preemptions, 'preemption')} on spot nodes"


def began_again(each: Restart) -> str:
    """A warning when the script told steps before the restored one; "" when it went on."""
    if each.began_again is None:
        return ""
    return began_again_at(each.began_again[0], each.restored_told or each.restored_step)


def began_again_at(told: int, restored: int) -> str:
    """The warning's text, for the first step that was ``told`` after step ``restored`` had been put back."""
    return (
        f"The script began again at step {told} although step {restored} was restored: it does not read its "
        "checkpoint (see argosy explain-config checkpoint.resume_args), or it counts its steps anew."
    )


def lost_in(record: RunRecord, index: int) -> int:
    """Steps that had to be done again, or are lost, because of how attempt ``index`` ended."""
    return lost_at_end_of(record.restarts, index)


def lost_words(record: RunRecord) -> str:
    """How many steps were done again, and how many nobody has done again so far; "" for none."""
    return _fate(record, range(len(record.restarts)))


def fate_of_lost(record: RunRecord, index: int) -> str:
    """The same of attempt ``index`` alone."""
    return _fate(record, [index])


def _fate(record: RunRecord, attempts: Sequence[int]) -> str:
    again = sum(redone_steps(record.restarts, index) for index in attempts)
    lost = sum(lost_steps(record.restarts, index) for index in attempts) - again
    told = ((again, "done again"), (lost, "lost"))
    return ", ".join(f"{count(steps, 'step')} {how}" for steps, how in told if steps)


def _was_stopped(record: RunRecord, each: Restart) -> bool:
    """Its end is that of the training, by Ctrl-C or ``argosy stop``, and no failure.

    A rank that was told to stop by somebody else is one: argosy gives up after some of them, with another exit code.
    """
    told = record.train_cause == Cause.SIGTERM and record.train_exit_code == ExitCode.PREEMPTED
    return each.stopped or (told and each is record.restarts[-1] and each.cause == Cause.SIGTERM)


def way_on(record: RunRecord, index: int) -> str:
    """What was done after attempt ``index`` had failed, and why from there."""
    if index + 1 >= len(record.restarts):
        if _was_stopped(record, record.restarts[index]):
            return "The training was stopped; started again it goes on."
        if record.train_cause == Cause.FINISHED_WITHOUT_CHECKPOINT:
            newest = record.newest
            kept = f"the checkpoint of step {newest.step} ({short(newest.digest)})" if newest else "nothing"
            return f"Not started again, since every rank had ended well. Kept in the store: {kept}."
        if record.train_cause == Cause.FENCED:
            return "Not started again, since another supervisor took the run over."
        if record.train_cause:
            return f"argosy gave up: the train step ended with {record.train_cause}."
        over = record.done or record.interrupted
        return "Nothing was started after it." if over else "The next start is under way."
    here, after = record.restarts[index], record.restarts[index + 1]
    pause = "" if here.ended is None else f" after {duration(max(0.0, after.began - here.ended))}"
    kind = "the same pods" if after.attempt == here.attempt else "a new gang"
    others = [each.sentence for each in record.spares.take_overs if each.began(after.attempt, after.restart)]
    kind += f", {', '.join(others)}" if others else ""
    if after.restored_step == 0 and not after.restored_digest:
        begin = "from scratch, because no verified checkpoint existed"
    else:
        damaged = after.cause == Cause.CHECKPOINT_CORRUPT  # it was verified as it was written
        which = "newest checkpoint, which was found damaged" if damaged else "newest verified checkpoint"
        begin = f"from step {after.restored_step}, the {which} ({short(after.restored_digest)})"
    sentence = f"Started again on {kind}{pause}, {begin}."
    if after.skipped:
        named = ", ".join(short(digest) for digest in after.skipped)
        sentence += f" Passed over {named}: quarantined, never deleted."
    return sentence


def failed_step(record: RunRecord) -> StepNode | None:
    """The pipeline step the run failed at: the last that ended badly, retries included.

    Not the one that runs whatever becomes of the others, unless it alone did.
    """
    bad = [node for node in record.nodes if node.phase in ("Failed", "Error")]
    root = [node for node in bad if node.template != "finalize"]
    return (root or bad)[-1] if bad else None


def stopped(record: RunRecord) -> bool:
    """Whether somebody had Argo end the workflow: a step that did as it was told has not failed."""
    step = failed_step(record)
    heeded = step is None or step.cause == Cause.SIGTERM or (not step.cause and step.exit_code == 128 + SIGTERM)
    return bool(STOPPED.search(record.message if step is None or heeded else step.message))


def goodput_sentence(record: RunRecord) -> str:
    """``93.1% of 1 min 20 s ...``; empty before training."""
    goodput = record.goodput
    if record.outline or measures(record):
        return ""
    if goodput is None:
        if record.checkpoints or _without_steps(record) == "Trained":
            read = "one step was" if any(each.points for each in record.restarts) else "no step was"
            return f"not known: {read} read from what the script printed (see argosy explain-config progress_pattern)"
        return ""
    return in_words(goodput)


def streaming_sentence(record: RunRecord) -> str:
    """``1.2 GiB by 4 ranks (...); rank 3 on node-1 waited longest, 12.0 s``; empty when nothing was streamed."""
    told = record.streaming
    if told is None:
        return ""
    again = f", {told.refetched} of them again" if told.refetched else ""
    fetched = f"{size(told.fetched_bytes)} fetched in {count(told.requests, 'request')}{again}"
    where = f" on {told.node}" if told.node else ""
    longest = f"rank {told.rank}{where} waited longest, {duration(told.waited_seconds)}"
    return f"{size(told.bytes)} of samples by {count(told.ranks, 'rank')}, {fetched}; {longest}"
