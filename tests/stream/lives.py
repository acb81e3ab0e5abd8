"""Gangs of real processes that stream a dataset over an unkind network, are killed, and go on in another size."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from argosy.steps.data.sampler import position
from tests.s3 import TRANSIENT, S3Server, at_random
from tests.s3.faults import Plan, Seen

RECORD = 64
SCRIPT = """
import hashlib, sys, argosy
index, digest, batch, seed, begin = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
data = argosy.StreamingDataset("s3://data/set", argosy.RecordSamples(64), index=index, digest=digest)
for step, samples in data.batches(begin, global_batch_size=batch, seed=seed, epochs=2):
    print(step, *(hashlib.sha256(sample).hexdigest()[:16] for sample in samples), flush=True)
"""


def unkind(seed: int, rate: float = 0.1) -> Plan:
    """Requests fail; of one range wrong bytes come once at most, for twice is an object's fault."""
    fail = at_random(seed, rate, [kind for kind in TRANSIENT if kind != "slow"])
    lie = at_random(seed, 3 * rate, ["truncated", "wrong-bytes"])
    lied: set[tuple[str, str]] = set()

    def plan(seen: Seen) -> str:
        if seen.operation == "ListObjectsV2":  # a page that breaks off ends a listing: the step's retry is for that
            return ""
        kind = fail(seen)
        # A client that goes on in a broken answer asks for the rest: the same end.
        asked = (seen.path, seen.range.rpartition("-")[2])
        if not kind and asked not in lied and (kind := lie(seen)):
            lied.add(asked)
        return kind

    return plan


@dataclass
class Story:
    """One dataset's training; ``told`` counts what happened."""

    folder: Path
    server: S3Server
    seed: int
    told: dict[str, int] = field(default_factory=lambda: dict.fromkeys(
        ("lives", "killed", "faults", "steps", "samples", "wrong", "missing", "twice"), 0))  # fmt: skip

    def live(self) -> dict[str, int]:
        """Train two epochs in several lives; compare what was kept with the sampler and the bytes."""
        draw = random.Random(self.seed)
        files = {f"{i}": draw.randbytes(RECORD * draw.randrange(1, 2000)) for i in range(draw.randrange(1, 6))}
        for key, data in files.items():
            self.server.buckets["data"].put(f"set/{key}", data)
        every = [data[at : at + RECORD] for _, data in sorted(files.items()) for at in range(0, len(data), RECORD)]
        batch = draw.randrange(1, max(2, len(every) // 10))
        last = -(-2 * len(every) // batch)
        kept: list[list[str]] = []
        while len(kept) < last:
            steps = self._life(draw, batch, len(kept) + 1, last)
            kept += steps[: len(steps) - (draw.randrange(0, 4) if len(kept) + len(steps) < last else 0)]
        self._judge(kept, [hashlib.sha256(one).hexdigest()[:16] for one in every], batch)
        return self.told

    def _life(self, draw: random.Random, batch: int, begin: int, last: int) -> list[list[str]]:
        """What the gang read in steps that all its ranks told, until it was killed or done."""
        world, end = draw.randrange(1, 4), begin + draw.randrange(1, max(2, last))
        self.server.begin(unkind(draw.getrandbits(32)))
        ranks = [self._rank(rank, world, batch, begin) for rank in range(world)]
        found: list[list[list[str]]] = [[] for _ in ranks]
        for step in range(begin, min(end, last) + 1):
            for rank, mine in zip(ranks, found, strict=True):
                assert rank.stdout is not None
                told = rank.stdout.readline().split()
                if not told or int(told[0]) != step:
                    said = [one.communicate()[1] for one in (rank, *ranks) if one.kill() is None]
                    raise AssertionError(f"seed {self.seed}: a rank ended before step {step}: {said[0]}")
                mine.append(told[1:])
        self.told["lives"] += 1
        self.told["killed"] += sum(rank.poll() is None for rank in ranks)
        for rank in ranks:
            rank.kill()
            rank.communicate()
        self.told["faults"] += sum(bool(seen.fault) for seen in self.server.requests)
        return [[one for part in parts for one in part] for parts in zip(*found, strict=True)]

    def _rank(self, rank: int, world: int, batch: int, begin: int) -> subprocess.Popen[str]:
        words = [str(self.folder), self._digest(), str(batch), str(self.seed), str(begin)]
        environ = os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world)}
        command = [sys.executable, "-c", SCRIPT, *words]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _digest(self) -> str:
        from argosy.steps.data.listing import take_snapshot

        if not hasattr(self, "_known"):
            self.server.plan, plan = (lambda seen: ""), self.server.plan
            self._known = take_snapshot("s3://data/set").digest
            self.server.plan = plan
        return self._known

    def _judge(self, kept: list[list[str]], every: list[str], batch: int) -> None:
        read = [one for step in kept for one in step]
        total = 2 * len(every)
        order = [every[number] for step in range(1, len(kept) + 1)
                 for number in position(self.seed, step, samples=len(every), global_batch=batch)][:total]  # fmt: skip
        self.told["steps"], self.told["samples"] = len(kept), len(read)
        self.told["wrong"] = sum(a != b for a, b in zip(read, order, strict=False))
        self.told["missing"] = max(0, total - len(read))
        self.told["twice"] = max(0, len(read) - total)
