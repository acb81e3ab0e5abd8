"""One staging through a store whose requests go wrong: right bytes or a named failure, and a rerun that ends well."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from argosy.steps.contract.errors import StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.staging import stage_objects
from tests.s3 import KINDS, Plan, S3Server, Seen, at, at_random

BUCKET = "argosy-tests"
READING = ("slow-down", "error-before", "reset-before", "cut", "slow", "expired", "truncated", "wrong-bytes")
"""What can go wrong with a request that reads."""
SMALL, LARGE = 40, 40 << 20


class WrongBytes(AssertionError):
    """A file was published that is not the object, or a rerun without faults did not mend everything."""


@dataclass(frozen=True)
class Case:
    """``kind`` at ``number`` for ``length`` requests; ``rate`` > 0 instead: that share of all requests, any kind."""

    seed: int
    kind: str
    number: int
    length: int
    rate: float

    def plan(self) -> Plan:
        """As the server takes it; only reads go wrong."""
        inner = at_random(self.seed, self.rate, READING) if self.rate else at(self.number, self.kind, self.length)

        def plan(seen: Seen) -> str:
            return inner(seen) if seen.operation in ("GetObject", "ListObjectsV2", "HeadObject") else ""

        return plan


def cases(seed: int) -> Iterator[Case]:
    """Without end; case ``n`` of a seed is always the same."""
    number = 0
    while True:
        drawn = random.Random(f"{seed}-{number}")
        storm = drawn.random() < 0.25
        rate = drawn.uniform(0.02, 0.3) if storm else 0.0
        length = drawn.choice((1, 1, 1, 3, 10))
        yield Case(number, drawn.choice(READING), drawn.randrange(50), length, rate)
        number += 1


class Trial:
    """The bucket, made once, and a folder that is new for each case."""

    def __init__(self, server: S3Server, folder: Path, seed: int) -> None:
        self._server, self._folder = server, folder
        drawn = random.Random(seed)
        self.objects = {f"small/{n:03}.bin": drawn.randbytes(drawn.randrange(0, 40_000)) for n in range(SMALL)}
        self.objects["large.bin"] = drawn.randbytes(LARGE)
        for key, data in self.objects.items():
            server.buckets[BUCKET].put(f"d/{key}", data)

    def judge(self, case: Case) -> Counter[str]:
        """What happened: how the first staging ended, and how many requests went wrong.

        Raises:
            WrongBytes: see there.
        """
        into = self._folder / "data"
        shutil.rmtree(into, ignore_errors=True)
        self._server.begin(case.plan())
        told: Counter[str] = Counter()
        try:
            told[self._stage(into)] += 1
        finally:
            told["faults"] = sum(bool(seen.fault) for seen in self._server.requests)
            self._server.begin()
        self._compare(case, into, whole=bool(told["staged"]))
        if not told["staged"]:
            if self._stage(into) != "staged":
                raise WrongBytes(f"{case}: a rerun without faults failed")
            self._compare(case, into, whole=True)
        return told

    def _stage(self, into: Path) -> str:
        try:
            manifest = take_snapshot(f"s3://{BUCKET}/d")
            stage_objects(manifest, list(manifest), into)
        except StepError as error:
            return str(error.cause)
        return "staged"

    def _compare(self, case: Case, into: Path, *, whole: bool) -> None:
        found = {path.relative_to(into).as_posix(): path for path in into.rglob("*") if path.is_file()}
        found = {key: path for key, path in found.items() if not key.startswith(".argosy-stage/")}
        for key, path in found.items():
            if self.objects.get(key) != path.read_bytes():
                raise WrongBytes(f"{case}: {key} was published with wrong bytes")
        if whole and set(found) != set(self.objects):
            raise WrongBytes(f"{case}: not all is there, or more: {set(found) ^ set(self.objects)}")


assert set(READING) <= set(KINDS)
