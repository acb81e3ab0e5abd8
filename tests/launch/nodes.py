"""Nodes without torchrun: launch's own savers in this process, ranks as child processes that write what they are
told, a folder per node, and the supervisor's channel over HTTP.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.gang.host import Endpoint
from argosy.steps.launch.channel_client import ChannelClient
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves
from argosy.steps.store import open_store
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.server import ChannelServer

EVERY = {"checkpoint_writers": "every", "checkpoint_timeout_seconds": 20}
"""Options of a cluster whose nodes each give the files on their own disk."""

RANK = """
import json, os, sys
kept = []
for line in sys.stdin:
    path, text, how = json.loads(line)
    if how == "close all":
        for each in kept:
            each.close()
        print("done", flush=True)
        continue
    os.makedirs(os.path.dirname(path), exist_ok=True)
    target = open(path, "w")
    target.write(text)
    target.flush()
    kept.append(target) if how == "keep open" else target.close()
    print("done", flush=True)
"""


@dataclass
class Rank:
    """One rank's process."""

    process: subprocess.Popen[str]

    @classmethod
    def start(cls) -> Rank:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return cls(subprocess.Popen([sys.executable, "-I", "-S", "-c", RANK], text=True, **pipes))  # type: ignore[call-overload]

    def write(self, path: Path, text: str, how: str = "") -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(path), text, how]), file=self.process.stdin, flush=True)
        self.process.stdout.readline()

    def kill(self) -> None:
        self.process.kill()
        self.exit()

    def exit(self) -> None:
        """End well, unless it was killed."""
        self.process.communicate()


@dataclass
class Node:
    """One node: its folder, its ranks, its savers."""

    folder: Path
    saves: Saves
    reporter: Reporter
    ranks: list[Rank]
    added: list[str] = field(default_factory=list)

    def save(self, rank: int, step: int, name: str = "checkpoint-{step}/rank{rank}.json", how: str = "") -> None:
        """Rank ``rank`` of the gang writes its file of ``step``."""
        text = json.dumps({"step": step, "rank": rank, "pad": "x" * 5000})
        self.ranks[rank % len(self.ranks)].write(
            self.folder / name.format(step=step, rank=rank), text[:2000] if how else text, how
        )

    def files(self) -> dict[str, str]:
        return {
            path.relative_to(self.folder).as_posix(): path.read_text()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def close(self) -> None:
        for rank in self.ranks:
            rank.kill()
        self.saves.stop()
        self.reporter.close()


class Cluster:
    """Nodes of one gang and its restarts, the channel between them, and the checkpoints."""

    def __init__(self, root: Path, nnodes: int = 2, nproc: int = 2, shared: bool = False, **options: Any) -> None:
        """``shared``: one folder for all nodes."""
        self.shared = shared
        self.root, self.nnodes, self.nproc = root, nnodes, nproc
        given: dict[str, Any] = {
            "checkpoint_mode": "opaque", "checkpoint_path": "out", "nproc_per_node": nproc,
            "checkpoint_expect": ("rank{rank}.json",), "resume_arg": ("--resume={newest}",), **options,
        }  # fmt: skip
        self.args = LaunchArgs(store_uri=f"file://{root}/store", name="run", **given)
        self.store = CheckpointStore(open_store(self.args.store_uri), "run/runs/r1")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = Endpoint(host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", token="secret")
        self.nodes: list[Node] = []
        self.restart = -1
        self.supervise()

    def supervise(self) -> None:
        """A supervisor with an empty memory."""
        self.channel = Channel(lambda gang, report: None)
        self.channel.expect("g", frozenset(f"p{index}" for index in range(self.nnodes)), max(self.restart, 0))
        self.server = ChannelServer(self.endpoint, self.channel)
        self.server.__enter__()

    def end_supervisor(self) -> None:
        """Its process is gone, and with it the connections that its threads hold."""
        self.server.__exit__(None, None, None)
        hang_up(self.endpoint.port)

    def begin(self, **changes: Any) -> None:
        """The next restart: every node restores, and its ranks run."""
        self.end()
        self.restart += 1
        self.channel.assign(self.restart, {})
        claim = self.store.claim(f"g/{self.restart}")
        self.generation = claim.generation
        newest = self.store.newest()
        told: dict[str, Any] = {
            "restart": self.restart, "attempt": 1, "nnodes": self.nnodes, "master_addr": "", "master_port": 0,
            "run_id": "r1", "workflow": "w", "generation": claim.generation, "log_seq": claim.seq,
            "resume_digest": newest.digest if newest else "", "resume_step": newest.step if newest else 0,
            "dataset_digest": "", "args": [], **changes,
        }  # fmt: skip
        self.nodes = [self._node(index, Assignment(node_rank=index, **told)) for index in range(self.nnodes)]

    def _node(self, index: int, assignment: Assignment) -> Node:
        identity = Identity(f"p{index}", f"node-{index}", index, self.endpoint.url, self.endpoint.token)
        reporter = Reporter(ChannelClient(self.endpoint.url, self.endpoint.token), identity, assignment)
        workdir = self.root / f"work-{0 if self.shared else index}"
        store = LeavableStore(open_store(self.args.store_uri), threading.Event())
        saves = Saves(self.args, assignment, store, workdir, reporter)
        node = Node(workdir / self.args.checkpoint_path.format(run_id="r1"), saves, reporter, [])
        node.added = saves.restore({})
        node.folder.mkdir(parents=True, exist_ok=True)
        node.ranks = [Rank.start() for _ in range(self.nproc)]
        for number, rank in enumerate(node.ranks, index * self.nproc):
            saves.started(number, rank.process.pid)
        reporter.start()
        saves.start(reporter.endings)
        return node

    def save(self, step: int, *, skip: tuple[int, ...] = (), **options: Any) -> None:
        """All ranks (but ``skip``) write their files of a step."""
        for rank in range(self.nnodes * self.nproc):
            if rank not in skip:
                self.nodes[rank // self.nproc].save(rank, step, **options)

    def until(self, ready: Callable[[], Any], what: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            assert time.monotonic() < deadline, f"no {what} within {seconds} s"
            time.sleep(0.02)

    def committed(self) -> list[int]:
        """Steps in the commits' files, each proven to be one step of every rank."""
        return [self.step_of(checkpoint) for checkpoint in self.store.commits()]

    def step_of(self, checkpoint: Checkpoint) -> int:
        """The one step of which all ranks' files in the checkpoint are."""
        into = self.root / "look"
        shutil.rmtree(into, ignore_errors=True)
        self.store.fetch(checkpoint, into)
        found = [json.loads(path.read_text()) for path in into.rglob("*rank*.json")]
        steps = {record["step"] for record in found}
        assert len(steps) == 1, f"files of steps {steps} in one checkpoint"
        assert sorted(record["rank"] for record in found) == list(range(self.nnodes * self.nproc))
        return int(steps.pop())

    def lose(self, index: int) -> None:
        """A node is gone, with its disk."""
        self.nodes[index].close()
        shutil.rmtree(self.nodes[index].folder)

    def end(self) -> None:
        """End the restart that runs."""
        for node in self.nodes:
            node.close()
        self.nodes = []

    def close(self) -> None:
        self.end()
        self.end_supervisor()


def hang_up(port: int) -> None:
    """End the connections to our ``port`` that threads of this process still hold."""
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not stat.S_ISSOCK(os.fstat(int(number)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(number))) as held:
                if held.family == socket.AF_INET and held.getsockname()[1] == port:
                    held.shutdown(socket.SHUT_RDWR)
