"""``argosy watch``."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from argosy.steps.contract.errors import InputError, StepError
from argosy.workflows.cli.document import claim_mounts
from argosy.workflows.cli.options import as_json, place_or_here, state_dir
from argosy.workflows.cli.output import say
from argosy.workflows.cli.run_folder import mounted
from argosy.workflows.cli.source import Source, from_toml, is_toml, push_code
from argosy.workflows.cli.starting import check_gpus
from argosy.workflows.cli.state_dir import check_state_dir
from argosy.workflows.cli.watch.local_runs import LocalRuns
from argosy.workflows.cli.watch.sources import SECRET, Queue, Webhook, open_queue
from argosy.workflows.cli.written import write_whole
from argosy.workflows.cluster.place import ClusterPlace
from argosy.workflows.cluster.store import take_address

if TYPE_CHECKING:
    from argosy.steps.events.hearing import Hearing
    from argosy.steps.events.journal import Decision

_TURN_SECONDS = 0.2
_LOOKS_PER_QUEUE = 10
"""With a queue, looks only find what it lost."""
_QUEUE_PAUSE = 1.2


@click.command()
@click.argument("file", metavar="RUN.toml", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Look once, run what that starts, and end.")
@click.option("--listen", default="", metavar="HOST:PORT", help=f"Take announcements by HTTP; ${SECRET} signs them.")
@place_or_here
@as_json
@state_dir
def command(file: Path, once: bool, listen: str, place: ClusterPlace, as_json: bool, state_dir: Path) -> int:
    """Start the run whenever its [trigger] says so, exactly once for the same data.

    Looks at the dataset every trigger.poll_seconds; with [trigger.event_source.sqs] it waits for the queue's messages
    as well. Runs happen on this machine, one after the other; with -n on a cluster, from the run's WorkflowTemplate.
    It may be killed at any time: started again, it goes on. What lay there before the first look starts nothing.
    --once ends with the exit code of argosy run where a run that it started failed.

    \b
    Example:
      argosy watch run.toml
      argosy watch run.toml -n research --listen 127.0.0.1:8080
    """
    if not is_toml(file):
        raise InputError(f"RUN.toml {file}: a run's description is wanted here, with [trigger]")
    if once and listen:
        raise InputError(f"--listen {listen}: --once looks once and ends, and hears nobody; leave one of the two out")
    source = from_toml(file, None)
    with mounted(claim_mounts(source.document, state_dir)), _alone(source, state_dir):
        watching = _Watching(source, place, state_dir, as_json)
        return watching.once() if once else watching.forever(listen)


@contextmanager
def _alone(source: Source, state_dir: Path) -> Iterator[None]:
    check_state_dir(state_dir, source)
    path = state_dir / "watch" / source.run_name / "watch.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{source.path}: another argosy watch follows {source.run_name} here; end it first"
            ) from None
        yield


class _Watching:
    def __init__(self, source: Source, place: ClusterPlace, state_dir: Path, as_json: bool) -> None:
        from argosy.steps.events.admission import Admission
        from argosy.steps.events.hearing import Hearing
        from argosy.steps.events.journal import Journal
        from argosy.steps.store.opening import PERSON_SECONDS, open_store
        from argosy.workflows.templates.trigger import need_trigger, trigger_args

        assert source.run is not None
        take_address(source.document)
        self._trigger, self._as_json = need_trigger(source.run), as_json
        self._local = None if place.named else _local_runs(source, state_dir, self._tell)
        starter = self._local or _cluster(place, source, self._trigger.while_running == "queue")
        store = open_store(source.run.storage.uri, retry_seconds=PERSON_SECONDS)
        journal = Journal(store, source.run.name)
        self._hearing: Hearing = Hearing(Admission(trigger_args(source.run), journal, starter))
        self._lock = threading.Lock()
        self._remote = not source.run.dataset or not source.run.dataset.uri.startswith("file:")
        self._ending = threading.Event()
        # A machine that slept, or whose clock was set, is not late for a time of the day.
        self._clock = time.time if self._trigger.on == "schedule" else time.monotonic
        self._shown = False
        self._queue = open_queue(self._trigger.event_source)
        self._tell(f"watching {trigger_args(source.run).dataset_uri}; runs start {_where(starter.place)}")

    def once(self) -> int:
        self._look()
        if not self._shown:
            self._tell("nothing new")
        while self._local is not None and self._local.turn():
            time.sleep(_TURN_SECONDS)
        return 0 if self._local is None else self._local.exit_code

    def forever(self, listen: str) -> int:
        webhook = Webhook(listen, os.environ.get(SECRET, ""), self._hear) if listen else None
        if webhook is not None:
            self._tell(f"listening at {webhook.url}")
        if self._queue is not None:
            threading.Thread(target=self._follow, args=(self._queue,), daemon=True).start()
        signal.signal(signal.SIGTERM, _interrupt)
        due = self._due(1) if self._trigger.on == "schedule" else 0.0
        try:
            while True:
                if self._clock() >= due:
                    due = self._looked()
                if self._local is not None:
                    with self._lock:
                        self._local.turn()
                time.sleep(_TURN_SECONDS)
        except KeyboardInterrupt as asked:
            self._ending.set()
            if webhook is not None:
                webhook.close()
            if self._local is not None:
                self._tell("stopping; what runs goes on with the next argosy watch")
                self._local.leave()
            return 128 + next(iter(asked.args), signal.SIGINT)

    def _looked(self) -> float:
        """Look; when the next look is due, by the clock."""
        try:
            return self._due(self._look())
        except (StepError, OSError) as error:
            self._tell(f"warning: {error}; looking again later")
            return self._clock() + self._trigger.poll_seconds

    def _due(self, pages: int) -> float:
        if self._trigger.on == "schedule":
            from argosy.steps.contract.cron import next_time

            return next_time(self._trigger.schedule, self._clock())
        pause = float(self._trigger.poll_seconds)
        if self._remote:
            pause *= max(1, pages) * (_LOOKS_PER_QUEUE if self._queue is not None else 1)
        return self._clock() + pause

    def _look(self) -> int:
        with self._lock:
            for decision in self._hearing.look("look"):
                self._show(decision)
            return self._hearing.pages

    def _hear(self, payload: bytes | str, source: str) -> list[Decision]:
        with self._lock:
            decisions = self._hearing.hear(payload, source)
            for decision in decisions:
                self._show(decision)
            return decisions

    def _follow(self, queue: Queue) -> None:
        while not self._ending.is_set():
            began, received = time.monotonic(), 0
            try:
                received = queue.receive(self._hear)
            except (StepError, OSError) as error:
                self._tell(f"warning: {error}")
            if not received:  # at most fifty requests an hour while nothing happens
                self._ending.wait(max(0.0, began + self._trigger.poll_seconds * _QUEUE_PAUSE - time.monotonic()))

    def _show(self, decision: Decision) -> None:
        import json

        from argosy.steps.trigger import line

        self._shown = True
        click.echo(json.dumps(asdict(decision)) if self._as_json else line(decision))

    def _tell(self, text: str) -> None:
        say(text, err=True)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


def _local_runs(source: Source, state_dir: Path, tell: Callable[[str], None]) -> LocalRuns:
    check_gpus(source)
    push_code(source, state_dir)
    path = state_dir / "watch" / source.run_name / "workflow.yaml"
    write_whole(path, source.yaml)
    return LocalRuns(state_dir, source.run_name, path, tell)


def _cluster(place: ClusterPlace, source: Source, one_by_one: bool) -> Any:
    from argosy.steps.cluster.kinds import WORKFLOW_TEMPLATE
    from argosy.steps.events.starter import ClusterStarter

    api = place.reach()
    if api.get(WORKFLOW_TEMPLATE, source.run_name) is None:
        raise InputError(
            f"{source.path}: no WorkflowTemplate {source.run_name} in namespace {api.namespace}; create it with: "
            f"argosy install -n {api.namespace} --trigger {source.path} --apply"
        )
    return ClusterStarter(api, source.run_name, one_by_one)


def _where(place: str) -> str:
    kind, _, rest = place.partition(":")
    return f"on this machine, in {rest.partition(':')[2]}" if kind == "local" else f"in the namespace {rest}"
