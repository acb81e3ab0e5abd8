"""New data start exactly one run: whatever is announced how often, by whom, and whoever is killed when."""

from __future__ import annotations

import contextlib
import json
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import pointer_prefix
from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events import look
from argosy.steps.events.admission import unusable
from argosy.steps.events.journal import Decision, Journal
from argosy.steps.events.look import Look
from argosy.steps.store import ObjectInfo, ObjectStore, open_store
from tests.events.world import Cluster, World, s3_event


class Killed(BaseException):
    """The process is gone: nothing of ours may catch it."""


class Mortal:
    """A store whose user dies at request number ``at``, before or after it took effect."""

    def __init__(self, store: ObjectStore, at: int, after: bool) -> None:
        self._store, self._at, self._after, self.asked = store, at, after, 0
        self.uri = store.uri

    def __getattr__(self, verb: str) -> Any:
        def request(*args: Any, **rest: Any) -> Any:
            self.asked += 1
            if self.asked == self._at and not self._after:
                raise Killed
            answer = getattr(self._store, verb)(*args, **rest)
            answer = list(answer) if isinstance(answer, Iterator) else answer
            if self.asked == self._at:
                raise Killed
            return answer

        return request


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def told(decisions: list[Decision]) -> list[str]:
    return [decision.decision for decision in decisions]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("way", ["event", "look"])
def test_killed_at_every_request_it_starts_once_and_says_so(tmp_path: Path, way: str, after: bool) -> None:
    """Every instant between two requests of a decision; then another process hears the same, or looks."""
    at = 0
    while True:
        at += 1
        world = World(tmp_path / f"{at}", settings={"backfill": True})
        event = world.dataset("v1")
        mortal = Mortal(open_store(world.store_uri), at, after)
        hearing = world.hearing(mortal)  # type: ignore[arg-type]
        with contextlib.suppress(Killed):
            hearing.hear(event, "sensor") if way == "event" else hearing.look()
        if mortal.asked < at:
            break
        world.hearing().look()
        assert told(world.hearing().hear(event, "sensor")) == ["duplicate"], at
        assert len(world.cluster.started) == 1, at
        journal = Journal(open_store(world.store_uri), "run")
        assert (journal.last(), journal.undone()) == (1, []), at
        assert "start" in told(journal.about(f"{world.dataset_uri}/v1")), at
    assert at > 8


def test_many_at_once_start_each_dataset_once(world: World) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    names = [f"v{number}" for number in range(12)]
    events = [world.dataset(name) for name in names for _ in range(3)]
    random.Random(seed).shuffle(events)
    failures: list[BaseException] = []

    def sensor(part: list[str]) -> None:
        hearing = world.hearing()
        try:
            for event in part:
                hearing.hear(event, "sensor")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=sensor, args=(events[number::4],)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(world.cluster.started) == len(names)
    journal = Journal(open_store(world.store_uri), "run")
    starts = Counter(journal.entry(seq).subject for seq in range(1, journal.last() + 1))
    assert set(starts.values()) == {1}
    assert len(starts) == len(names)


def test_decisions_have_their_reasons(world: World) -> None:
    event = world.dataset("v1")
    cases = {
        event: ("start", "_SUCCESS marks a complete dataset"),
        world.dataset("v1") + " ": ("duplicate", "was started for these data"),
        s3_event("bucket", "corpus/gone/_SUCCESS"): ("refused", "not there any more"),
        s3_event("bucket", "corpus/v1/part-0"): ("refused", "its name is no marker"),
        s3_event("other", "elsewhere/v1/_SUCCESS"): ("refused", "is not below"),
        "{": ("refused", "not JSON"),
        s3_event("bucket", "corpus/a%00b/_SUCCESS"): ("refused", "control character"),
    }
    (world.folder / "bucket/corpus/v1/part-0").touch()  # the second announcement is of the same version
    for number, (payload, (decision, why)) in enumerate(cases.items()):
        if number == 1:
            payload = event
        made = world.hearing().hear(payload, "test")[0]
        assert (made.decision, why in made.why) == (decision, True), made
        kept = Journal(open_store(world.store_uri), "run").about(made.subject)
        assert any((each.decision, each.why) == (made.decision, made.why) for each in kept), made
        if number == 0:
            world.put("v1/part-1", "more")
            assert told(world.hearing().hear(event, "test")) == ["start"]  # other data: another run
            (world.folder / "bucket/corpus/v1/part-1").unlink()
    assert world.hearing().hear(json.dumps({"Event": "s3:TestEvent", "Bucket": "bucket"}), "test") == []


@pytest.mark.parametrize("name", ["{{workflow.name}}", "a}}b", "a?b", "a#b", "a\nb"])
def test_a_name_that_would_not_arrive_as_it_is_never_becomes_a_parameter(name: str) -> None:
    assert unusable(f"s3://bucket/corpus/{name}")
    assert not unusable("s3://bucket/corpus/2026-11-22 $(date) %41 ü")


def test_what_was_there_before_the_first_look_starts_when_it_is_announced(world: World) -> None:
    event = world.dataset("old")
    assert world.hearing().look() == []
    new = world.dataset("new")
    assert [each.subject for each in world.hearing().look()] == [f"{world.dataset_uri}/new"]
    assert told(world.hearing().hear(event, "s3")) == ["start"]
    assert told(world.hearing().hear(new, "s3")) == ["duplicate"]


@pytest.mark.parametrize("looked", ["before", "after"])
def test_what_was_there_before_and_has_to_wait_when_it_is_announced_starts_later(world: World, looked: str) -> None:
    """It was said to wait until the hour was over, and no look ever came back to it."""
    world.settings = {"max_starts_per_hour": 1}
    events = [world.dataset(f"old{number}") for number in range(2)]
    if looked == "before":
        assert world.hearing().look() == []
    assert [told(world.hearing().hear(event, "s3")) for event in events] == [["start"], ["waiting"]]
    assert told(world.hearing().look()) == ["waiting"]
    world.clock += 3601
    assert told(world.hearing().look()) == ["start"]
    assert len(world.cluster.started) == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_watch_that_saw_nothing_change_comes_back_to_what_was_announced_and_not_started(
    world: World, fails: bool
) -> None:
    """Old data that were announced again, and had to wait or whose start failed, waited until other data came."""

    class Away(Cluster):
        def start(self, decision: Decision) -> None:
            raise StepError(Cause.UNKNOWN, "the API server is away")

    world.settings = {"max_starts_per_hour": 1}
    old, hearing = world.dataset("old"), world.hearing()
    assert hearing.look() == []
    if fails:
        hearing.admission.starter = Away()
        with pytest.raises(StepError):
            hearing.hear(old, "s3")
        hearing.admission.starter = world.cluster
    else:
        world.dataset("new")
        assert told(hearing.look()) == ["start"]
        assert hearing.look() == []
        world.cluster.started.clear()
        assert told(hearing.hear(old, "s3")) == ["waiting"]
        world.clock += 3601
    hearing.look()
    (started,) = world.cluster.started.values()
    assert started["dataset-uri"] == f"{world.dataset_uri}/old"


def test_an_announcement_does_not_start_what_a_schedule_starts(world: World) -> None:
    """It started at once, for "new data at the time of the schedule"."""
    world.settings = {"on": "schedule"}
    world.put("a")
    (made,) = world.hearing().hear(s3_event("bucket", "corpus/a"), "s3")
    assert (made.decision, made.why) == ("waiting", "the next time of the schedule decides")
    assert told(world.hearing().look()) == ["start"]


@pytest.mark.parametrize("marker", ["DONE", "x.manifest.json", "_SUCCESS"])
def test_a_marker_alone_is_no_data_whatever_its_name(world: World, marker: str) -> None:
    """A run was started on nothing but the marker unless that was one of the two usual names."""
    world.settings = {"marker": ("DONE", ".manifest.json", "_SUCCESS")}
    world.hearing().look()
    world.put(f"v1/{marker}", "")
    assert told(world.hearing().look()) == ["waiting"]
    world.put("v1/part-0")
    assert told(world.hearing().look()) == ["start"]


def test_a_folder_whose_name_is_no_text_is_refused_and_stops_no_other(world: World) -> None:
    """Every look ended in an error of ours, and nothing was started any more."""
    world.hearing().look()
    world.dataset(os.fsdecode(b"\xff"), "x")
    world.dataset("v1")
    assert sorted(told(world.hearing().look())) == ["refused", "start"]
    (started,) = world.cluster.started.values()
    assert started["dataset-uri"] == f"{world.dataset_uri}/v1"


def test_a_marker_of_ones_own_with_words_in_it_may_be_the_data(world: World) -> None:
    """Of ".parquet" none was started any more: "no object but the marker lies there yet"."""
    world.settings = {"marker": (".parquet",)}
    world.hearing().look()
    world.put("v1/a.parquet")
    assert told(world.hearing().look()) == ["start"]


class Listed:
    """A bucket that always says the same."""

    def __init__(self, uri: str) -> None:
        assert uri == "s3://bucket/corpus"

    def scan(self) -> Iterator[ObjectInfo]:
        return (ObjectInfo(key=key, size=1, etag=key) for key in ("v1/part-0", "v1/x.manifest.json"))


def test_a_version_keeps_the_name_that_earlier_releases_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Had it another, all that a trigger has seen would be new, and be trained again."""
    monkeypatch.setattr(look, "open_store", Listed)
    (found,) = Look(TriggerArgs(store_uri="s3://b", name="run", dataset_uri="s3://bucket/corpus")).marked()
    assert (found.objects, found.digest[:16]) == (1, "32e397ab68d0b59a")


@pytest.mark.parametrize("on", ["marker", "quiet", "count"])
def test_what_comes_after_the_installation_and_before_the_first_look_is_new(world: World, on: str) -> None:
    """Its event was lost, because the Sensor did not listen yet, and the reconciler took it for old."""
    world.settings = {"on": on, "quiet_seconds": 1, "new_objects": 2}
    world.dataset("old")
    last = world.folder / "bucket/corpus/old/_SUCCESS"
    world.dataset("new")
    first, marker = (world.folder / "bucket/corpus/new" / name for name in ("part-0", "_SUCCESS"))
    while first.stat().st_ctime <= last.stat().st_ctime:
        first.touch()
    world.put("new/part-1")
    marker.touch()
    world.installed = first.stat().st_ctime
    first = world.hearing().look()
    looked = [told(first)]
    world.clock += 2
    looked.append(told(world.hearing().look()))
    assert looked == ([["waiting"], ["start"]] if on == "quiet" else [["start"], []])
    if on == "quiet":  # "it has just changed" was said of data that had rested for a week
        assert first[0].why == "it is seen for the first time; 1 s of quiet are needed"
    (started,) = world.cluster.started.values()
    assert started["dataset-uri"] == world.dataset_uri + ("/new" if on == "marker" else "")


@pytest.mark.parametrize("policy", ["queue", "skip", "replace"])
def test_while_a_run_trains(world: World, policy: str) -> None:
    world.settings = {"while_running": policy}
    world.cluster.busy = ["by-hand"]
    event = world.dataset("v1")
    made = world.hearing().hear(event, "s3")[0]
    assert made.decision == ("refused" if policy == "skip" else "start")
    assert world.cluster.stopped == (["by-hand"] if policy == "replace" else [])
    world.cluster.busy = []
    assert told(world.hearing().hear(event, "s3")) == ["duplicate"]  # skipped is decided, too
    assert len(world.cluster.started) == (policy != "skip")


def test_more_than_the_limit_of_an_hour_wait_and_start_later(world: World) -> None:
    world.settings = {"max_starts_per_hour": 2}
    world.hearing().look()
    events = [world.dataset(f"v{number}") for number in range(3)]
    assert [told(world.hearing().hear(event, "s3"))[0] for event in events] == ["start", "start", "waiting"]
    assert told(world.hearing().look()) == ["waiting"]
    world.clock += 3601
    assert told(world.hearing().look()) == ["start"]
    assert len(world.cluster.started) == 3
    waited = Journal(open_store(world.store_uri), "run").about(f"{world.dataset_uri}/v2")
    assert told(waited) == ["start"]


def test_quiet_counts_from_the_last_change(world: World) -> None:
    world.settings = {"on": "quiet", "quiet_seconds": 100}
    assert world.hearing().look() == []
    world.put("a")
    assert told(world.hearing().look()) == ["waiting"]
    world.clock += 99
    assert told(world.hearing().look()) == ["waiting"]
    world.put("b")
    world.clock += 99
    assert told(world.hearing().look()) == ["waiting"]
    world.clock += 100
    assert told(world.hearing().look()) == ["start"]
    assert world.hearing().look() == []


@pytest.mark.parametrize(("on", "field"), [("count", "new_objects"), ("bytes", "new_bytes")])
def test_growth_counts_from_the_last_start(world: World, on: str, field: str) -> None:
    world.settings = {"on": on, field: 3, "suffix": ".bin"}
    world.put("before.bin")
    assert world.hearing().look() == []
    looks = []
    for name in ("a.bin", "b.txt", "c.bin", "d.bin", "e.bin", "f.bin", "g.bin"):
        world.put(name)
        looks += told(world.hearing().hear(s3_event("bucket", f"corpus/{name}"), "s3"))
    expected = ["waiting", "refused", "waiting", "start", "waiting", "waiting", "start"]
    assert looks == expected


def test_the_promoted_checkpoint_is_gone_on_from(world: World) -> None:
    """Whoever promotes: the run itself, another of its name, or a person; while nobody has, it is told."""
    world.settings = {"continue_from": "production"}
    (first,) = world.hearing().hear(world.dataset("v0"), "s3")
    assert first.why.endswith("; nothing is promoted as production, so it begins anew")
    world.cluster.started.clear()
    entry = {"pointer": "production", "digest": "d" * 64, "uri": "", "metric": "", "value": None, "run_id": "first",
             "workflow": "w", "workflow_uid": "u", "previous": "", "time": 1.0}  # fmt: skip
    open_store(world.store_uri).put(
        f"{pointer_prefix('run', 'production')}/0000000001.json", json.dumps(entry).encode()
    )
    (second,) = world.hearing().hear(world.dataset("v1"), "s3")
    (parameters,) = world.cluster.started.values()
    assert (parameters["run-id"], parameters["resume-from"]) == ("first", "d" * 64)
    assert second.why.endswith("; goes on in run first from dddddddddddd, promoted as production")


def test_another_place_decides_and_leaves_the_start_to_whom_it_belongs(world: World) -> None:
    class Away(Cluster):
        def start(self, decision: Decision) -> None:
            raise StepError(Cause.UNKNOWN, "the API server is away")

    away, here = Away(place="there"), world.cluster
    event, other = world.dataset("v1"), world.dataset("v2")
    world.cluster = away
    with pytest.raises(StepError):
        world.hearing().hear(event, "s3")
    world.cluster = here
    assert told(world.hearing().hear(event, "s3")) == ["duplicate"]
    assert told(world.hearing().hear(other, "s3")) == ["start"]
    assert len(here.started) == 1
    world.cluster = Cluster(place="there")
    world.hearing().look()
    assert len(world.cluster.started) == 1
