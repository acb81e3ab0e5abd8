"""Datasets announced one to five times each, shuffled, some never, while all who serve the trigger are killed in turn.

Two sensors take the announcements from a queue of SQS (moto), a reconciler looks; each is a process that decides and
starts by itself. One line per hundred datasets, ``--count`` is how many lines (10: a thousand datasets).
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3

from argosy.steps.events.journal import Journal
from argosy.steps.store import open_store
from tests.events.hand import hearing
from tests.events.world import World
from tests.prove.record import ROOT, Record, kept
from tests.s3.moto import moto

COUNT = 10
DATASETS = 100
NEVER = 0.05
"""Part of the datasets of which no announcement arrives."""
HANDS = ("sensor", "sensor", "reconciler")
LONGEST_SECONDS = 900
COLUMNS = ["datasets", "announced", "never announced", "kills", "started", "lost", "twice", "unexplained"]
COLUMNS += ["seconds", "held"]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run the lines that are not run yet; 0 when every one held."""
    os.environ.update({"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"})
    record = Record("events", seed)
    with moto() as endpoint:
        record.go_on(record.left(count), lambda number: _case(number, seed, endpoint), minutes)
    note = "Two sensors and a reconciler decide and start by themselves, and are killed with signal 9 in turn."
    return record.told("Announced often or never, started once", COLUMNS, note=note, by=())


def _case(number: int, seed: int, endpoint: str) -> dict[str, Any]:
    dice, began = random.Random(f"{seed}-{number}"), time.monotonic()
    folder = kept() / "events" / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    world = World(folder)
    (folder / "bucket" / "corpus").mkdir(parents=True)
    hearing(folder).look()  # the first look of all: what comes from now on is new
    sqs = boto3.client("sqs", endpoint_url=endpoint)
    queue = f"events-{number}"
    url = sqs.create_queue(QueueName=queue, Attributes={"VisibilityTimeout": "5"})["QueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    events = {f"v{index}": world.dataset(f"v{index}") for index in range(DATASETS)}
    never = {name for name in events if dice.random() < NEVER}
    bodies = [body for name, body in events.items() if name not in never for _ in range(dice.randint(1, 5))]
    dice.shuffle(bodies)
    for body in bodies:
        sqs.send_message(QueueUrl=url, MessageBody=body)
    kills = _serve(folder, queue, endpoint, dice, lambda: _left(sqs, url))
    return _judged(folder, events, never, len(bodies), kills) | {"seconds": round(time.monotonic() - began)}


def _left(sqs: Any, url: str) -> int:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    return sum(map(int, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"].values()))


def _serve(folder: Path, queue: str, endpoint: str, dice: random.Random, left: Any) -> int:
    """Start the hands, kill one after the other until nothing is left to do; how many kills."""
    kills, deadline = 0, time.monotonic() + LONGEST_SECONDS
    with (folder / "hands.log").open("ab") as log:

        def begin(role: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "tests.events.hand", role, str(folder), queue, endpoint]
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)

        hands = [begin(role) for role in HANDS]
        try:
            while (left() or len(list((folder / "started").glob("*"))) < DATASETS) and time.monotonic() < deadline:
                time.sleep(dice.uniform(2.0, 10.0))
                victim = dice.randrange(len(hands))
                hands[victim].kill()
                hands[victim].wait()
                kills += 1
                hands[victim] = begin(HANDS[victim])
        finally:
            for hand in hands:
                hand.kill()
                hand.wait()
    return kills


def _judged(folder: Path, events: dict[str, str], never: set[str], announced: int, kills: int) -> dict[str, Any]:
    hearing(folder).look()  # what the last kill left open
    started = Counter(unquote(urlsplit(path.read_text()).path) for path in (folder / "started").iterdir())
    wanted = {f"{folder}/bucket/corpus/{name}" for name in events}
    journal = Journal(open_store(f"file://{folder}/store"), "run")
    entries = Counter(journal.entry(seq).subject for seq in range(1, journal.last() + 1))
    subjects = [f"file://{folder}/bucket/corpus/{name}" for name in events]
    explained = [[each.decision for each in journal.about(subject)].count("start") for subject in subjects]
    found = {
        "datasets": len(events),
        "announced": announced,
        "never announced": len(never),
        "kills": kills,
        "started": sum(started.values()),
        "lost": len(wanted - set(started)),
        "twice": sum(number - 1 for number in [*started.values(), *entries.values()]) + len(set(started) - wanted),
        "unexplained": sum(number != 1 for number in explained),
    }
    held = (found["started"], found["lost"], found["twice"], found["unexplained"]) == (len(events), 0, 0, 0)
    return found | {"held": held and not journal.undone()}
