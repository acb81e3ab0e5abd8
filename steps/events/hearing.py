"""From what was announced, or from a look, to decisions: each with its reason, kept in the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.admission import Admission
from argosy.steps.events.formats import DatasetEvent, shown
from argosy.steps.events.journal import REFUSED, START, WAITING, Decision, Journal, data_key
from argosy.steps.events.look import Found, Look, dataset_below, wanted
from argosy.steps.events.matching import MARKERS, below, is_marker
from argosy.steps.events.payload import parse_events

_PAGE = 1000
UNREADABLE = "argosy:unreadable"
"""Subject of decisions on what is no notification."""


@dataclass
class Hearing:
    """Hears events of one run's trigger and looks at its data."""

    admission: Admission
    installed: Callable[[], float | None] = lambda: None
    """When what decides was installed, in seconds since 1970; None where the first look is what counts."""
    pages: int = 1
    """Requests that the last look's listing took: a store lists a thousand objects at a time."""
    _settled: str = ""

    def hear(self, payload: bytes | str, source: str) -> list[Decision]:
        """Decide on every object that a notification names; none for a test event.

        Objects of other buckets and what is no notification at all are refused in a record, and start nothing.

        Raises:
            StepError: the store or the cluster failed; the notification has to come again.
        """
        try:
            events = parse_events(payload, source)
        except InputError as error:
            return [self._refused(UNREADABLE, str(error), source)]
        if self.admission.args.on != "marker":
            return self._heard_of_any(events, source)
        decisions, folders = [], set()
        for event in events:
            inside = below(event, self.admission.args.dataset_uri)
            if refused := _refusal(self.admission.args, inside):
                decisions.append(self._refused(event.uri, refused, source))
                continue
            folder = str(inside).rpartition("/")[0]
            if folder not in folders:
                folders.add(folder)
                decisions.append(self._marked(event, folder, source))
        return decisions

    def look(self, source: str = "look") -> list[Decision]:
        """Look at all of the dataset; end what was begun, start what an event lost. Only what changed is told.

        What lay there before the trigger was installed, or else before the first look, starts nothing, unless the
        trigger says ``backfill``.

        Raises:
            StepError: the store or the cluster failed; the next look does the same.
        """
        look = Look(self.admission.args)
        state, self.pages = look.state(), look.seen // _PAGE + 1
        if state == self._settled:
            return []  # one request is all that an idle watch makes
        self.admission.finish()
        marker = self.admission.args.on == "marker"
        found = look.marked() if marker else [look.whole()]
        known = self._before(found)
        decided = self.admission.journal.all_decided()
        new = [each for each in found if each.digest not in known and self._key(each) not in decided]
        decisions = [self.admission.admit(each, source) for each in new] if marker else self._ripe(new, source)
        waiting = any(decision.decision == WAITING for decision in decisions)
        self._settled = "" if waiting else state
        return decisions

    def _heard_of_any(self, events: list[DatasetEvent], source: str) -> list[Decision]:
        """How much is there, and since when, only a look can say; of a flood of events one is as good as all."""
        args, concerned = self.admission.args, False
        decisions = []
        for event in events:
            if refused := _refusal(args, below(event, args.dataset_uri)):
                decisions.append(self._refused(event.uri, refused, source))
            else:
                concerned = True
        if concerned and args.on == "schedule":
            why = "the next time of the schedule decides"
            decisions.append(self.admission.journal.tell(Decision(WAITING, why, args.dataset_uri, source=source)))
        elif concerned:
            decisions += self.look(source)
        return decisions

    def _marked(self, event: DatasetEvent, folder: str, source: str) -> Decision:
        args = self.admission.args
        uri = dataset_below(args.dataset_uri, folder)
        found = next((each for each in Look(args, folder).marked() if each.uri == uri), None)
        if found is None:
            return self._refused(event.uri, "it was announced and is not there any more", source)
        self._settled = ""  # a failure leaves what the next look ends, and so does one that has to wait
        decision = self.admission.admit(found, source)
        if decision.decision == WAITING:  # no look would come back to what was there before the trigger
            self.admission.journal.remind(found.digest)
        return decision

    def _refused(self, subject: str, why: str, source: str) -> Decision:
        made = Decision(REFUSED, why, subject if len(subject) < 2048 else shown(subject), source=source)
        return self.admission.journal.tell(made)

    def _key(self, found: Found) -> str:
        return data_key(self.admission.args.name, found.digest)

    def _before(self, found: list[Found]) -> set[str]:
        """Digests of what was there before the trigger."""
        args, journal = self.admission.args, self.admission.journal
        if args.backfill or args.on == "schedule":
            return set()
        note = journal.note("baseline")
        if note is None:
            if (installed := self.installed()) is not None:
                # What was announced before the sensor listened is lost: it is told of what comes after (DeliverNew).
                look = Look(args, before=installed)
                found = look.marked() if args.on == "marker" else [look.whole()]
            whole = found[0] if found else None
            seen: dict[str, Any] = {
                "data": [each.digest for each in found],
                "objects": whole.objects if whole else 0,
                "size": whole.size if whole else 0,
            }
            note = journal.note("baseline", seen) or seen
        old = set(note["data"])
        return old - journal.reminded() if old else old

    def _ripe(self, new: list[Found], source: str) -> list[Decision]:
        """Whether the dataset as a whole has rested, or grown, enough."""
        if not new or not new[0].objects:
            return []
        why, ripe = self._grown(new[0]) if self.admission.args.on in ("count", "bytes") else self._rested(new[0])
        if ripe:
            return [self.admission.admit(replace(new[0], why=why), source)]
        waiting = Decision(WAITING, why, new[0].uri, source=source, fingerprint=new[0].digest)
        return [self.admission.journal.tell(waiting)]

    def _rested(self, found: Found) -> tuple[str, bool]:
        admission = self.admission
        if admission.args.on == "schedule":
            return "new data at the time of the schedule", True
        pending, now = admission.journal.note("pending"), admission.now()
        if pending is None or pending["digest"] != found.digest:
            admission.journal.renew("pending", {"digest": found.digest, "since": now})
            # Since when it rests, only the next look can tell: a copy may keep the times of what it was made from.
            began = "it is seen for the first time" if pending is None else "it has just changed"
            return f"{began}; {admission.args.quiet_seconds} s of quiet are needed", False
        rested = now - float(pending["since"])
        text = f"nothing has changed for {rested:.0f} s of {admission.args.quiet_seconds} s"
        return text, rested >= admission.args.quiet_seconds

    def _grown(self, found: Found) -> tuple[str, bool]:
        args, journal = self.admission.args, self.admission.journal
        base = journal.note("baseline") or {"objects": 0, "size": 0}
        for seq in range(journal.last(), 0, -1):
            entry = journal.entry(seq)
            if entry.decision == START:
                base = {"objects": entry.objects, "size": entry.size}
                break
        objects, size = found.objects - base["objects"], found.size - base["size"]
        if args.on == "count":
            return f"{objects} of {args.new_objects} new objects", objects >= args.new_objects
        return f"{size} of {args.new_bytes} new bytes", size >= args.new_bytes


def was_there_before(args: TriggerArgs, journal: Journal, uri: str) -> bool:
    """Whether the first look of all saw the data at ``uri`` (a dataset, or an object of it) as they are now."""
    root, note = args.dataset_uri.rstrip("/"), journal.note("baseline")
    if note is None or not f"{uri}/".startswith(f"{root}/"):
        return False
    found = Look(args)
    seen = found.marked() if args.on == "marker" else [found.whole()]
    return any(each.digest in note["data"] and f"{uri}/".startswith(f"{each.uri}/") for each in seen)


MAY_START = "an event of this object"
"""So begins what is said of an object that may start a run."""


def name_decision(args: TriggerArgs, uri: str) -> str:
    """What the trigger makes of an object by its name alone, in words."""
    root = args.dataset_uri.rstrip("/")
    inside = uri[len(root) + 1 :] if uri.startswith(f"{root}/") else None
    if inside and args.on == "marker" and not is_marker(inside, args.marker or MARKERS):
        return f"{_refusal(args, inside)}; a dataset starts when such an object is in its folder"
    when = "the next time of the schedule" if args.on == "schedule" else f"{MAY_START}, or a look,"
    return _refusal(args, inside) or f"{when} starts the run (on = {args.on})"


def _refusal(args: TriggerArgs, inside: str | None) -> str:
    """Why an object of that key (relative to the dataset; None: elsewhere) starts nothing; empty when it may."""
    if inside is None:
        return f"it is not below {args.dataset_uri}"
    if not wanted(args, inside):
        return f"its key does not match prefix = {args.prefix!r} and suffix = {args.suffix!r}"
    markers = args.marker or MARKERS
    if args.on == "marker" and not is_marker(inside, markers):
        return f"its name is no marker ({', '.join(markers)})"
    return ""
