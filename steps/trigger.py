"""Step ``trigger``: decide what an announcement, or a look at the data, starts; start it, once."""

from __future__ import annotations

import sys

from argosy.steps.cluster.connecting import connect
from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.admission import Admission
from argosy.steps.events.hearing import Hearing
from argosy.steps.events.journal import Decision, Journal
from argosy.steps.events.starter import ClusterStarter
from argosy.steps.outputs import step_main
from argosy.steps.store import open_store


def trigger(args: TriggerArgs) -> None:
    """Hear the payload, or look.

    Raises:
        StepError: the store or the cluster failed; a retry goes on where this stopped.
    """
    starter = ClusterStarter(connect(), args.name, args.while_running == "queue")
    admission = Admission(args, Journal(open_store(args.store_uri), args.name), starter)
    hearing = Hearing(admission, starter.installed)
    decisions = hearing.hear(args.payload, args.source) if args.payload else hearing.look(args.source)
    for decision in decisions:
        print(line(decision), flush=True)
    if not decisions:
        print("nothing new", flush=True)


def line(decision: Decision) -> str:
    """The decision as one line of printable text."""
    text = f"{decision.decision} {decision.subject}: {decision.why}"
    started = f" -> {decision.workflow}" if decision.decision == "start" else ""
    return "".join(letter if letter.isprintable() else "?" for letter in text + started)


if __name__ == "__main__":
    sys.exit(step_main(TriggerArgs, trigger))
