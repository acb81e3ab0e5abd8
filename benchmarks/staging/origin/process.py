"""The origin from outside: started as a process of its own, told how to behave, asked what it counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.staging.origin.catalogue import BUCKET
from benchmarks.staging.origin.content import Dataset

_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Counted:
    """What the origin counted since :meth:`Origin.begin`; ``first_list`` is on CLOCK_MONOTONIC, 0: no listing yet."""

    requests: dict[str, int]
    first_list: float
    bytes: int
    connections: int
    cpu: float

    @property
    def lists(self) -> int:
        """Listing requests (pages), of either version."""
        return self.requests.get("ListObjectsV2", 0) + self.requests.get("ListObjects", 0)


class Origin:
    """Serves from the constructor until the context ends."""

    def __init__(
        self,
        datasets: Iterable[Dataset] = (),
        *,
        buckets: Iterable[str] = (),
        host: str = "127.0.0.1",
        within: Sequence[str] = (),
    ) -> None:
        """``within``: a command that runs its arguments elsewhere (``ip netns exec NAME``)."""
        command = [*within, sys.executable, "-m", "benchmarks.staging.origin", "--host", host]
        command += [word for dataset in datasets for word in ("--dataset", str(dataset))]
        command += [word for bucket in buckets for word in ("--bucket", bucket)]
        self._process = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.endpoint = self._process.stdout.readline().strip()
        if not self.endpoint:
            raise RuntimeError(f"the origin did not start: exit {self._process.wait()}")

    def __enter__(self) -> Origin:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()

    def begin(self, *, latency: float = 0.0, rate: float = 0.0, refuse: float = 0.0, crc: bool = True) -> None:
        """Behave so from here on, and count from zero."""
        self._ask(f"set?latency={latency}&rate={rate}&refuse={refuse}&crc={int(crc)}")

    def counted(self) -> Counted:
        """Since :meth:`begin`."""
        told = self._ask("counters")
        firsts = [told["first"][name] for name in ("ListObjectsV2", "ListObjects") if name in told["first"]]
        return Counted(told["requests"], min(firsts, default=0.0), told["bytes"], told["connections"], told["cpu"])

    def _ask(self, path: str) -> dict[str, Any]:
        # Not through a proxy of the environment: it is this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.endpoint}/-/{path}", timeout=10) as answer:
            told: dict[str, Any] = json.load(answer)
            return told

    def environment(self) -> dict[str, str]:
        """What a client needs to find it; nothing else of AWS, and no proxy, comes from the caller's environment.

        Python may keep its bytecode, which an installed package has: else each process compiles all it imports.
        """
        others = ("aws_", "http_proxy", "https_proxy", "all_proxy", "pythondontwritebytecode")
        kept = {name: value for name, value in os.environ.items() if not name.lower().startswith(others)}
        kept |= {"AWS_ENDPOINT_URL": self.endpoint, "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
        kept |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        # s5cmd and rclone (its remote "bench") have names of their own for the endpoint.
        return kept | {"S3_ENDPOINT_URL": self.endpoint, "RCLONE_CONFIG_BENCH_ENDPOINT": self.endpoint}

    @staticmethod
    def uri(dataset: Dataset) -> str:
        """Where a data set lies."""
        return f"s3://{BUCKET}/{dataset.name}"
