"""Both transports before servers that others wrote: odd and hostile keys, pages, ranges, versions, faults, kills.

A line per server and transport. The faults come from the server of tests/s3, which stands in front and passes
everything else on; what a server does not store cannot be read from it, and is counted.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.env import S3_TRANSPORT
from argosy.steps.contract.errors import StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.staging import stage_objects
from tests.crash.cases import scratch
from tests.data.kills import Stager, served, slowly, strays
from tests.prove.record import Record
from tests.s3 import S3Server
from tests.s3.programs import CHECK_SIGNATURES, KEYS, PROGRAMS, NoServer, NotStored, RemoteBucket, serving
from tests.staging.faulty import Trial, WrongBytes, cases
from tests.staging.hostile import SEGMENTS, Escaped, judge

BUCKET = "argosy-tests"
DATASETS, FAULTY, KILLS = 30, 8, 2
ODD = ["a b+c", "é/ü~/100%", "x/%2F/&=?#", "a'(b)*!,;:@$", "日本/🙂", "-._~", '"<>|^`{}', "deep/" * 8 + "k"]
BUFFERED = 8 << 20
COLUMNS = [
    "server", "transport", "objects", "hostile datasets", "refused by us", "not stored", "faulty stagings", "faults",
    "kills", "MiB again of those missing", "failed", "held",
]  # fmt: skip


def prove(*, count: int, seed: int, minutes: float) -> int:
    """Every server that can be had, by the wire and by the library; ``count`` means nothing here."""
    record = Record("s3-servers", seed)
    todo = [(server, by) for server in PROGRAMS for by in ("wire", "library")]
    with scratch() as folder:
        record.go_on(todo[len(record.cases()) :], lambda one: _case(*one, folder, seed), minutes)
    return record.told("Servers that others wrote, read by the wire and by the library", COLUMNS, count=0)


def _case(name: str, by: str, folder: Path, seed: int) -> dict[str, Any]:
    told: Counter[str] = Counter()
    fields: dict[str, Any] = {"server": name, "transport": by}
    try:
        with serving(name, folder / name / by) as endpoint:
            bucket = RemoteBucket(endpoint, BUCKET)
            with S3Server({BUCKET: bucket}, forward=endpoint) as server:
                given = {**KEYS, "AWS_ENDPOINT_URL_S3": server.endpoint, S3_TRANSPORT: by}
                with patch.dict(os.environ, given):
                    Trials(server, bucket, folder, random.Random(seed), told, checks=name in CHECK_SIGNATURES).run()
    except NoServer as error:
        return {**fields, "failed": f"not proven here: {error}", "held": False}
    return {**{column: told[column] for column in COLUMNS}, **fields, "held": not told["failed"]}


def _refused(do: Callable[[], object], cause: Cause, words: str) -> None:
    try:
        do()
    except StepError as error:
        found = error
    else:
        raise AssertionError(f"nobody said: {words}")
    assert found.cause == cause, found
    assert words in str(found), found


class Trials:
    """One server and one transport."""

    def __init__(
        self,
        server: S3Server,
        bucket: RemoteBucket,
        folder: Path,
        draw: random.Random,
        told: Counter[str],
        checks: bool,
    ) -> None:
        """``checks``: the server knows whose signature is right."""
        self.server, self.bucket, self.folder = server, bucket, folder
        self.draw, self.told, self.checks = draw, told, checks
        self.into = folder / "into"

    def run(self) -> None:
        """All of them; what goes wrong is printed and counted."""
        for trial in (self._plain, self._versions, self._identity, self._hostile, self._faults, self._kills):
            self.server.begin()
            print(f"{trial.__name__}", file=sys.stderr, flush=True)
            try:
                trial()
            except (AssertionError, StepError) as error:
                self.told["failed"] += 1
                print(f"{trial.__name__}: {type(error).__name__}: {error}", flush=True)

    def _store(self, files: dict[str, bytes]) -> dict[str, bytes]:
        """What of it the server took."""
        self.bucket.replace({})
        stored = {}
        for key, data in files.items():
            try:
                self.bucket.put(f"set/{key}", data)
                stored[key] = data
            except NotStored as error:
                self.told["not stored"] += 1
                print(f"not stored: {str(error)[:200]}", flush=True)
        return stored

    def _stage(self) -> DatasetManifest:
        shutil.rmtree(self.into, ignore_errors=True)
        manifest = take_snapshot(f"s3://{BUCKET}/set")
        stage_objects(manifest, list(manifest), self.into)
        return manifest

    def _compare(self, files: dict[str, bytes]) -> None:
        found = {path.relative_to(self.into).as_posix() for path in self.into.rglob("*") if path.is_file()}
        found = {key for key in found if not key.startswith(".argosy-stage/")}
        assert found == set(files), f"differs: {sorted(found ^ set(files))[:5]}"
        for key, data in files.items():
            assert (self.into / key).read_bytes() == data, f"{key!r} has wrong bytes"
        assert not strays(self.into), strays(self.into)

    def _plain(self) -> None:
        """Odd keys, more than one page, one object of several ranges, an empty one."""
        files = {key: key.encode() for key in ODD} | {f"many/{n:04}": b"%d" % n for n in range(1010)}
        files |= {"large": self.draw.randbytes(40 << 20), "empty": b""}
        files = self._store(files)
        self._stage()
        self._compare(files)
        self.told["objects"] = len(files)

    def _versions(self) -> None:
        """An object that changed, and a bucket that is not there."""
        self._store({"k": b"one", "l": b"l"})
        manifest = take_snapshot(f"s3://{BUCKET}/set")
        self.bucket.put("set/k", b"two")
        shutil.rmtree(self.into, ignore_errors=True)
        _refused(lambda: stage_objects(manifest, list(manifest), self.into), Cause.S3_MISSING, "dataset changed")
        _refused(lambda: take_snapshot("s3://argosy-nowhere/set"), Cause.S3_MISSING, "bucket does not exist")

    def _identity(self) -> None:
        """A wrong key is refused by name, where the server looks at signatures at all."""
        if self.checks:
            with patch.dict(os.environ, {"AWS_SECRET_ACCESS_KEY": "another-secret"}):
                _refused(lambda: take_snapshot(f"s3://{BUCKET}/set"), Cause.S3_ACCESS, "was refused")

    def _hostile(self) -> None:
        for _ in range(DATASETS):
            dataset = ["/".join(self.draw.choices(SEGMENTS, k=self.draw.randrange(1, 4))) for _ in range(2)]
            try:
                self.told["refused by us"] += judge(self.server, sorted(set(dataset)), self.folder) == "refused"
                self.told["hostile datasets"] += 1
            except NotStored:
                self.told["not stored"] += 1
            except Escaped as error:
                self.told["failed"] += 1
                print(error, flush=True)

    def _faults(self) -> None:
        self.bucket.replace({})
        trial = Trial(self.server, self.folder, self.draw.randrange(1 << 30))
        for case in islice(cases(7), FAULTY):
            try:
                self.told["faults"] += trial.judge(case)["faults"]
                self.told["faulty stagings"] += 1
            except WrongBytes as error:
                self.told["failed"] += 1
                print(error, flush=True)

    def _kills(self) -> None:
        files = self._store({f"shard-{n}": self.draw.randbytes(24 << 20) for n in range(3)} | {"small": b"s"})
        total = sum(map(len, files.values()))
        manifest = self.folder / "manifest"
        manifest.write_bytes(take_snapshot(f"s3://{BUCKET}/set").to_bytes())
        again = missing = 0
        for _ in range(KILLS):
            shutil.rmtree(self.into, ignore_errors=True)
            self.server.slow_seconds = 3.0
            self.server.begin(slowly)
            aim = self.draw.uniform(0.2, 0.8) * total
            stager = Stager(self.server, manifest, self.into)
            assert stager.wait_for(lambda aim=aim: served(self.server) >= aim), "it ended before it was killed"  # type: ignore[misc]
            stager.kill(self.draw)
            came = served(self.server)
            self.server.begin()
            fetched = Stager(self.server, manifest, self.into).fetched()
            self._compare(files)
            assert fetched <= total - came + BUFFERED, f"{fetched} bytes came again, {total - came} were missing"
            again, missing = again + fetched, missing + total - came
            self.told["kills"] += 1
        self.told["MiB again of those missing"] = f"{again >> 20} of {missing >> 20}"  # type: ignore[assignment]
