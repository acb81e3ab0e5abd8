"""What to tell of each event as it comes, and the figures of the moment. Knows nothing of terminals."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.steps.record.injected import injected_of
from argosy.steps.record.preflight import preflight_of
from argosy.steps.record.reading import number, text, texts, whole
from argosy.steps.record.restarts import as_it_ended, cause_of, reached_step, told_by
from argosy.steps.record.slow_ranks import slow_rank_of
from argosy.steps.record.spares import lost_line, standing_line, take_over_line
from argosy.steps.record.stalling import stall_sentence
from argosy.steps.record.story import began_again_at, ending
from argosy.steps.record.waiting import gang_stands
from argosy.steps.record.wording import count, duration, figure, short, size
from argosy.steps.runlog import Event

SURE_SECONDS = 2.0
"""Steps arrive in batches: over a shorter time their distance says nothing."""
RECENT_STEPS = 50
"""Steps that the speed is measured over."""


@dataclass
class Tally:
    """Absorbs events in the order in which they are seen."""

    step: int = 0
    end_step: int = 0
    loss: float | None = None
    tokens_per_second: float | None = None
    attempts: int = 0
    failures: int = 0
    running: bool = False
    """Steps are being made: the figures are of now."""
    checkpoint: str = ""
    staging: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Node -> (bytes, bytes in total), while its data is on the way."""
    _standing: str = ""
    """Of a gang that has not all its nodes yet, or has trained."""
    _start: tuple[int, int] = (0, 0)
    """Attempt and restart of the latest start, until it has ended."""
    _numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    """Of the attempts, by gang and restart."""
    _findings: set[str] = field(default_factory=set)
    """Told already: every node finds the same."""
    _told: dict[str, int | None] = field(default_factory=dict)
    """Checkpoint -> what the script had told when it was saved; None: that counts anew in each process."""
    _saves: list[Event] = field(default_factory=list)
    """Of this start."""
    _restored: int | None = None
    _below: int | None = None
    """The first step of this start, when it lies before what was restored."""
    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))

    def absorb(self, event: Event) -> str:
        """Take note; returns a line worth printing, or ""."""
        teller = _TELLERS.get(event.kind)
        return teller(self, event) if teller else ""

    def seconds_left(self) -> float | None:
        """Time to the end at the recent speed; None when the end or the speed is not known."""
        if len(self._recent) < 2 or not self.end_step:
            return None
        (first_time, first), (last_time, last) = self._recent[0], self._recent[-1]
        if last <= first or last_time - first_time < SURE_SECONDS:
            return None
        return max(0, self.end_step - self.step) * (last_time - first_time) / (last - first)

    def progress(self) -> str:
        """``step 47 of 200, loss 2.31, 41,000 tokens/s, 1 min 10 s left``."""
        parts = [f"step {self.step}" + (f" of {self.end_step}" if self.end_step else "")]
        if self.loss is not None:
            parts.append(f"loss {figure(self.loss)}")
        if self.tokens_per_second is not None:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        left = self.seconds_left()
        if left is not None and self.step < self.end_step:
            parts.append(f"{duration(left)} left")
        return ", ".join(parts)

    def waiting(self) -> str:
        """For the time before the first step of an attempt: nodes, imports and rendezvous take their time."""
        if self._standing:
            return self._standing
        return f"starting from step {self.step}, no step yet" if self.step else "starting, no step yet"

    def _began(self, event: Event) -> str:
        self.attempts += 1
        self._recent.clear()
        self._saves.clear()
        self.staging.clear()
        self.loss = self.tokens_per_second = None
        self.running = False
        self._standing = ""
        self._start = _start_of(event)
        self._numbers[self._start] = self.attempts
        self.step = whole(event.fields, "restored_step") or 0
        digest = text(event.fields, "restored_digest")
        self._restored, self._below = self._told.get(digest, self.step), None
        begin = f"from step {self.step} ({short(digest)})" if digest else "from scratch"
        skipped = ", ".join(short(each) for each in texts(event.fields, "skipped"))
        return f"attempt {self.attempts}: {begin}" + (f", passing over {skipped}" if skipped else "")

    def _stepped(self, event: Event) -> str:
        step = whole(event.fields, "step")
        if step is None or _start_of(event) != self._start:
            return ""  # the latter: a late report of the attempt before
        # Another start may train to another end, and may not tell it.
        self.end_step = whole(event.fields, "end_step") or (self.end_step if self.running else 0)
        speed = number(event.fields, "tokens_per_second")
        self.tokens_per_second = self.tokens_per_second if speed is None else speed
        first, self.running = not self.running, True
        warning, below = "", self._below
        self._below = step if first and step < (self._restored or 0) else None
        if below is not None and below < step < (self._restored or 0):
            warning = f"warning: {began_again_at(below, self._restored or 0)}"
        if step != self.step:
            self.step = step
            self._recent.append((event.time, step))
        self.loss = number(event.fields, "loss") if "loss" in event.fields else self.loss  # NaN is told as a text
        return warning

    def _ended(self, event: Event) -> str:
        late = _start_of(event) != self._start  # one that was fenced, or that came to no start
        cause, reached = cause_of(event), whole(event.fields, "last_step") or 0
        if not late:
            reached = reached_step(reached, self.step if self.running else None, self._saves, self.step)
            self._start = (0, 0)
        self.running = self.running and late
        if not cause:
            return f"attempt {self.attempts}: every rank ended well at step {reached}"
        self.failures += 1
        each = as_it_ended(event)
        number = self._numbers.get(_start_of(event))
        which = f"attempt {number}: ended at step {reached}" if number else _not_begun(*_start_of(event))
        line = f"{which}: {ending(each)}"
        return f"{line}\n    | {each.quote}" if each.quote else line

    def _trained(self, event: Event) -> str:
        self._standing = f"trained: {self.progress()}" if self.running and not cause_of(event) else ""
        self.running = False
        return ""

    def _committed(self, event: Event) -> str:
        step, digest = whole(event.fields, "step") or 0, short(text(event.fields, "digest"))
        self._saves.append(event)
        self._told[text(event.fields, "digest")] = None if event.fields.get("relative") else told_by(event)
        seconds = number(event.fields, "seconds")
        taken = "" if seconds is None else f" in {duration(seconds)}"
        self.checkpoint = f"step {step} ({digest}, {size(whole(event.fields, 'bytes') or 0)}{taken})"
        return f"checkpoint: {self.checkpoint}" + (", final" if event.fields.get("final") else "")

    def _sets_aside(self, event: Event) -> str:
        self._saves = [save for save in self._saves if save.fields.get("digest") != event.fields.get("digest")]
        return ""

    def _waits(self, event: Event) -> str:
        self._standing = gang_stands(event)
        why = text(event.fields, "why")
        return self._standing + (f": {why}" if why else "")

    def _stages(self, event: Event) -> str:
        done, total = whole(event.fields, "bytes") or 0, whole(event.fields, "bytes_total") or 0
        self.staging[text(event.fields, "node")] = (done, total)
        return ""

    def _staged(self, event: Event) -> str:
        node = text(event.fields, "node")
        self.staging.pop(node, None)
        fetched, seconds = whole(event.fields, "fetched_bytes") or 0, number(event.fields, "seconds") or 0.0
        return (
            f"data: {size(whole(event.fields, 'bytes') or 0)} on {node}, {size(fetched)} fetched in {duration(seconds)}"
        )

    def _environment(self, event: Event) -> str:
        new = [found for found in texts(event.fields, "findings") if found not in self._findings]
        self._findings.update(new)
        return "\n    ".join(f"environment: {found}" for found in new)


def _not_begun(gang: int, restart: int) -> str:
    return f"gang {gang} failed before its ranks were started{' again' if restart else ''}"


def _start_of(event: Event) -> tuple[int, int]:
    return whole(event.fields, "attempt") or 0, whole(event.fields, "restart") or 0


def _snapshot(_: Tally, event: Event) -> str:
    held = f"{count(whole(event.fields, 'objects') or 0, 'object')}, {size(whole(event.fields, 'bytes') or 0)}"
    return f"dataset: pinned as {short(text(event.fields, 'dataset_digest'))} ({held})"


def _admission(_: Tally, event: Event) -> str:
    return f"admission: {text(event.fields, 'decision')}, {text(event.fields, 'reason')}"


def _gang(_: Tally, event: Event) -> str:
    nodes, each = whole(event.fields, "nnodes") or 0, whole(event.fields, "nproc_per_node") or 0
    without = ", ".join(texts(event.fields, "excluded"))
    shape = f"gang {whole(event.fields, 'attempt') or 0}: {count(nodes, 'node')} × {count(each, 'rank')}"
    shape += f", {capacity} nodes" if (capacity := text(event.fields, "capacity")) else ""
    return f"{shape}, without {without}" if without else shape


def _grows(_: Tally, event: Event) -> str:
    gang, step, nodes, more = (whole(event.fields, name) or 0 for name in ("attempt", "last_step", "nnodes", "to"))
    return f"gang {gang}: nodes are back, at step {step} it grows from {nodes} to {count(more, 'node')}"


def _stalled(_: Tally, event: Event) -> str:
    return f"warning: {stall_sentence(event)}"


def _slow(_: Tally, event: Event) -> str:
    return f"warning: {slow_rank_of(event).sentence}"


def _skipped(_: Tally, event: Event) -> str:
    return f"the data of steps {whole(event.fields, 'first')} to {whole(event.fields, 'last')} are passed over"


def _excluded(_: Tally, event: Event) -> str:
    return f"node {text(event.fields, 'node')} is excluded: {text(event.fields, 'cause')}"


def _transport(_: Tally, event: Event) -> str:
    state = text(event.fields, "state")
    warning = "warning: " if state == "wrong" else ""
    remedy = text(event.fields, "remedy")
    line = f"{warning}transport on {text(event.fields, 'node')}: {text(event.fields, 'sentence')}"
    return f"{line}\n    {remedy}" if remedy else line


def _preflight(_: Tally, event: Event) -> str:
    return f"preflight: {preflight_of(event).sentence}"


def _evaluated(_: Tally, event: Event) -> str:
    value = number(event.fields, "value")
    shown = text(event.fields, "value") if value is None else figure(value)
    return f"evaluated: {text(event.fields, 'metric')} {shown} of {short(text(event.fields, 'checkpoint_digest'))}"


def _gated(_: Tally, event: Event) -> str:
    return f"gate: {text(event.fields, 'decision')}, {text(event.fields, 'reason')}"


def _promoted(_: Tally, event: Event) -> str:
    return f"promoted: {text(event.fields, 'pointer')} -> {short(text(event.fields, 'digest'))}"


_TELLERS: dict[str, Callable[[Tally, Event], str]] = {
    "snapshot_taken": _snapshot,
    "admission": _admission,
    "staging": Tally._stages,
    "staged": Tally._staged,
    "gang_created": _gang,
    "gang_grows": _grows,
    "gang_waits": Tally._waits,
    "restart_began": Tally._began,
    "step": Tally._stepped,
    "restart_ended": Tally._ended,
    "train_ended": Tally._trained,
    "stalled": _stalled,
    "slow_rank": _slow,
    "skipped": _skipped,
    "checkpoint_committed": Tally._committed,
    "set_aside": Tally._sets_aside,
    "injected": lambda _, event: f"injected: {injected_of(event).words}",
    "node_excluded": _excluded,
    "standing_by": lambda _, event: standing_line(event),
    "spare_lost": lambda _, event: lost_line(event),
    "took_over": lambda _, event: take_over_line(event),
    "environment": Tally._environment,
    "transport": _transport,
    "preflight": _preflight,
    "evaluated": _evaluated,
    "gated": _gated,
    "promoted": _promoted,
}
"""Kind -> what to make of it; other kinds say nothing new to a person who watches."""
