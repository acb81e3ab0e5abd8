"""Staging from a slow S3, SIGKILLed at random instants, the dataset sometimes changed meanwhile; then run to its end.

After each: every file has its bytes, nothing is left over, and what came again is what had not come before, but for
what was in the buffers of the connections. Every fourth case is the bar of the issue: 8 x 64 MiB, killed when half
of it had left the server; what comes then is at most 1.05 of what was missing.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

from argosy.steps.data.folder import records_of
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.transfer.crc import OWN, crc
from tests.data.kills import BUCKET, Stager, served, slowly, strays
from tests.prove.record import Record
from tests.s3 import S3Server, nothing

COUNT = 40
BUFFERED = 8 << 20
"""Bytes that a kill may cost: what had left the server and was not written yet."""
COLUMNS = [
    "case", "MiB", "killed", "changed", "MiB that had come", "MiB that came then", "of the missing",
    "files that differ", "left over", "held",
]  # fmt: skip
Files = dict[str, bytes]


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Run until ``count`` cases are recorded or ``minutes`` are over; 0 when all that were run held."""
    record = Record("stage-kills", seed)
    with S3Server((BUCKET,)) as server:
        environ = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        os.environ.update({**environ, "AWS_ENDPOINT_URL": server.endpoint})

        def judged(number: int) -> dict[str, Any]:
            return Case(server, record.folder / "stage-kills", number, random.Random(f"{seed}-{number}")).run()

        record.go_on(record.left(count), judged, minutes)
    return record.told("Staging killed (SIGKILL) at random instants, and run again", COLUMNS)


class Case:
    """One dataset, one folder, some kills."""

    def __init__(self, server: S3Server, work: Path, number: int, draw: random.Random) -> None:
        self.server, self.work, self.number, self.draw = server, work, number, draw
        self.bar = number % 4 == 3
        # Slow enough for a client that has a fraction of a processor: what waits in buffers is lost with it.
        server.slow_seconds = 8.0 if self.bar else draw.uniform(0.5, 2.0)

    def run(self) -> dict[str, Any]:
        """What was done and what came of it."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        files = self._files()
        total = self._store(files)
        kills, came, changed = self._strike(total)
        # After a change it is not known how much of what came is of use.
        if changed:
            files = self._other(files)
            total = self._store(files)
        self.server.begin(nothing)
        fetched = Stager(self.server, self.work / "manifest", self.work / "in").fetched()
        return self._judged(files, total, kills, came, fetched, changed)

    def _files(self) -> Files:
        draw = self.draw
        if self.bar:
            return {f"shards/{i}.tar": draw.randbytes(64 << 20) for i in range(8)}
        sizes = [draw.randrange(33 << 20, 50 << 20) for _ in range(draw.randrange(1, 3))]
        sizes += [draw.randrange(4 << 20, 12 << 20) for _ in range(draw.randrange(4))]
        sizes += [draw.randrange(3000) for _ in range(draw.randrange(400))]
        return {f"d{i % 7}/{i:04d}": draw.randbytes(size) for i, size in enumerate(sizes)}

    def _other(self, files: Files) -> Files:
        """A later version: some objects gone, some changed, some new, a file where a folder was."""
        kept = {key: data for key, data in files.items() if self.draw.random() < 0.7 and key[:2] != "d3"}
        for key in self.draw.sample(sorted(kept), len(kept) // 5):
            kept[key] = kept[key][::-1] + b"."
        return {**kept, "d3": b"a file now", "new/folder/file": b"new"}

    def _store(self, files: Files) -> int:
        bucket = self.server.buckets[BUCKET]
        bucket.replace({})
        for key, data in files.items():
            bucket.put(f"set/{key}", data)
        manifest = take_snapshot(f"s3://{BUCKET}/set")
        (self.work / "manifest").write_bytes(manifest.to_bytes())
        return manifest.total_bytes

    def _strike(self, total: int) -> tuple[int, int, bool]:
        """How many kills struck, bytes that had left the server by then, and whether the dataset changes now."""
        draw = self.draw
        shares = [0.5] if self.bar else sorted(draw.uniform(0, 1) for _ in range(draw.randrange(1, 4)))
        kills = came = 0
        for share in shares:
            self.server.begin(slowly)
            stager = Stager(self.server, self.work / "manifest", self.work / "in", draw.randrange(1, 3))
            before = came
            if not stager.wait_for(lambda aim=share * total, had=before: had + served(self.server) >= aim):  # type: ignore[misc]
                break
            stager.kill(draw)
            kills += 1
            came += served(self.server)
        return kills, came, self.number % 4 == 1

    def _judged(self, files: Files, total: int, kills: int, came: int, fetched: int, changed: bool) -> dict[str, Any]:
        into = self.work / "in"
        manifest = DatasetManifest.from_bytes((self.work / "manifest").read_bytes())
        sums = {record.key: record.crc64nvme for record in records_of(into)}
        there = {path.relative_to(into).as_posix() for path in into.rglob("*") if path.is_file()}
        differ = {
            key for key, data in files.items() if (into / key).read_bytes() != data or sums[key] != crc(OWN, data)
        }
        differ |= {key for key in there - files.keys() if not key.startswith(".argosy-stage/")}
        missing = max(0, total - came)
        ratio = fetched / missing if missing and not changed else None
        most = 1.05 * missing if self.bar else missing + kills * BUFFERED
        cheap = changed or fetched <= most
        left = strays(into)
        return {
            "case": self.number,
            "MiB": round(total / (1 << 20), 1),
            "killed": kills,
            "changed": changed,
            "MiB that had come": round(came / (1 << 20), 1),
            "MiB that came then": round(fetched / (1 << 20), 1),
            "of the missing": f"{ratio:.3f}" if ratio is not None else "",
            "files that differ": len(differ),
            "left over": len(left),
            "held": cheap and not differ and not left and manifest.count == len(sums),
        }
