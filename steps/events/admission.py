"""The one way from new data to a run: first writer wins, and whoever is killed leaves what the next one ends.

A start is decided by an entry of the journal's log, and nobody appends one before the last is settled: its data are
marked as decided, its workflow is started (under a name made of its data, so that starting twice is starting once),
and that is noted. Two that decide at the same moment want the same number, and one of them looks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.journal import (
    DUPLICATE,
    REFUSED,
    START,
    WAITING,
    Decision,
    Journal,
    data_key,
    numbered,
)
from argosy.steps.events.look import Found
from argosy.steps.events.starter import Starter
from argosy.steps.pointers import Pointer
from argosy.steps.store.opening import check_uri

HOUR_SECONDS = 3600.0
_NAMED_DIGITS = 10


@dataclass
class Admission:
    """Decides what is started for one run's trigger."""

    args: TriggerArgs
    journal: Journal
    starter: Starter
    now: Callable[[], float] = time.time

    def admit(self, found: Found, source: str) -> Decision:
        """Decide on data that are there, and start their run if that is the decision.

        Raises:
            StepError: the store or the cluster failed; the same call later goes on where this one stopped.
        """
        key = data_key(self.args.name, found.digest)
        while True:
            last = self.journal.last()
            if last:
                self._see_through(self.journal.entry(last))
            earlier = self.journal.decided(key)
            if earlier is not None:
                if not self.journal.is_done(earlier.seq):
                    self._see_through(earlier)
                return self._said(found, source, key, DUPLICATE, _repeated(earlier), earlier.workflow)
            decision = self._judged(found, source, key, last)
            if decision.decision == WAITING:
                return decision
            entry = numbered(decision, last + 1)
            if self.journal.append(entry):
                self._see_through(entry)
                return entry

    def finish(self) -> int:
        """Carry out what was decided and not carried out, as after a kill; how many that were."""
        unfinished = self.journal.undone()
        for seq in unfinished:
            self._see_through(self.journal.entry(seq))
        return len(unfinished)

    def _see_through(self, entry: Decision) -> None:
        if self.journal.is_done(entry.seq):
            return
        self.journal.settle(entry)
        if entry.decision == START:
            if entry.place != self.starter.place:
                return  # another machine's or another cluster's: it does so itself
            others = self.starter.running() if self.args.while_running == "replace" else []
            self.starter.start(entry)
            for name in others:
                if name != entry.workflow:
                    self.starter.stop(name)
        self.journal.mark_done(entry.seq)

    def _judged(self, found: Found, source: str, key: str, last: int) -> Decision:
        if not found.objects:
            return self._said(found, source, key, WAITING, "no object but the marker lies there yet")
        if rule := unusable(found.uri):
            return self._said(found, source, key, REFUSED, rule, final=True)
        busy = self.starter.running() if self.args.while_running != "queue" else []
        if busy and self.args.while_running == "skip":
            why = f"{busy[0]} is running, and while_running = skip"
            return self._said(found, source, key, REFUSED, why, final=True)
        recent = self._recent_starts(last)
        if len(recent) >= self.args.max_starts_per_hour:
            free = time.strftime("%H:%M:%SZ", time.gmtime(recent[-1] + HOUR_SECONDS))
            limit = f"max_starts_per_hour = {self.args.max_starts_per_hour}"
            why = f"{limit}: {len(recent)} within the last hour; from {free}"
            return self._said(found, source, key, WAITING, why)
        why = f"{found.why}; {busy[0]} is asked to end" if busy else found.why
        return self._said(found, source, key, START, why, f"{self.args.name}-{key[:_NAMED_DIGITS]}", final=True)

    def _recent_starts(self, last: int) -> list[float]:
        """Times of the starts within an hour, newest first; no more are read than the limit counts."""
        times: list[float] = []
        for seq in range(last, 0, -1):
            entry = self.journal.entry(seq)
            if entry.time < self.now() - HOUR_SECONDS or len(times) >= self.args.max_starts_per_hour:
                break
            if entry.decision == START:
                times.append(entry.time)
        return times

    def _said(
        self, found: Found, source: str, key: str, decision: str, why: str, workflow: str = "", final: bool = False
    ) -> Decision:
        parameters = self._parameters(found, key) if decision == START else {}
        if parameters and (pointer := self.args.continue_from):
            on, digest = parameters.get("run-id"), parameters.get("resume-from", "")[:12]
            known = f"goes on in run {on} from {digest}, promoted as {pointer}"
            why += f"; {known if on else f'nothing is promoted as {pointer}, so it begins anew'}"
        made = Decision(
            decision=decision, why=why, subject=found.uri, source=source, time=self.now(), key=key,
            fingerprint=found.digest, objects=found.objects, size=found.size, workflow=workflow,
            place=self.starter.place if decision == START else "",
            parameters=parameters,
        )  # fmt: skip
        return made if final else self.journal.tell(made)

    def _parameters(self, found: Found, key: str) -> dict[str, str]:
        given = {"event": f"data {key[:32]}", "dataset-uri": found.uri}
        if self.args.continue_from:
            history = Pointer(self.journal.store, self.args.name, self.args.continue_from).history()
            if history:
                given |= {"run-id": history[-1].run_id, "resume-from": history[-1].digest}
        return given


def unusable(uri: str) -> str:
    """Why a uri made of a bucket's keys cannot be a workflow's parameter; empty when it can."""
    try:
        check_uri(uri)
        if uri.startswith("file:"):
            unquote(uri, errors="strict")
    except (InputError, UnicodeDecodeError) as error:
        return str(error)
    return "its name holds {{ or }}, which Argo would take for a placeholder" if "{{" in uri or "}}" in uri else ""


def _repeated(earlier: Decision) -> str:
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(earlier.time))
    if earlier.decision != START:
        return f"these data were decided on at {when}: {earlier.why}"
    return f"{earlier.workflow} was started for these data at {when}, announced by {earlier.source or 'nobody'}"
