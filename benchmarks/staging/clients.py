"""Who stages: ours and the peers, each as a command; what cannot be had here is left out by name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import rclone as rclone_program
from benchmarks.environments import s5cmd as s5cmd_program
from benchmarks.paired import BenchError
from benchmarks.staging.origin.catalogue import BUCKET

OURS = "argosy"
Command = Callable[[str, Path], list[str]]
"""(name of the data set, folder to fill) -> argv."""


@dataclass(frozen=True)
class Client:
    """One way to bring a data set to disk. ``verifies``: against what the store says of the bytes."""

    name: str
    command: Command
    verifies: str
    environment: Mapping[str, str] = field(default_factory=dict)


def argosy() -> Client:
    """``take_snapshot`` and ``stage_objects``."""
    module = [sys.executable, "-m", "benchmarks.staging.ours", "stage"]
    return Client(OURS, lambda name, folder: [*module, f"s3://{BUCKET}/{name}", str(folder)], "yes")


def argosy_by_library() -> Client:
    """The same, read by the library that takes over where our own wire does not know the way."""
    return Client(f"{OURS} (library)", argosy().command, "yes", {"ARGOSY_S3_TRANSPORT": "library"})


def argosy_by_manifest(manifest: Path) -> Client:
    """``stage_objects`` with a manifest taken before: nothing is listed."""
    module = [sys.executable, "-m", "benchmarks.staging.ours", "restage", str(manifest)]
    return Client(f"{OURS}, manifest at hand", lambda name, folder: [*module, str(folder)], "yes")


def snapshot(manifest: Path) -> Client:
    """``take_snapshot``, into a file."""
    module = [sys.executable, "-m", "benchmarks.staging.ours", "snapshot"]
    return Client(f"{OURS} snapshot", lambda name, folder: [*module, f"s3://{BUCKET}/{name}", str(manifest)], "")


def node(manifest: Path, rank: int, nnodes: int) -> Client:
    """One node's share of a manifest."""
    module = [sys.executable, "-m", "benchmarks.staging.ours", "node", str(manifest)]
    return Client(f"node {rank}", lambda name, folder: [*module, str(folder), str(rank), str(nnodes)], "yes")


def boto3(threads: int) -> Client:
    """TransferManager."""
    return _library("boto3", f"boto3 TransferManager({threads})", threads, "crc64nvme")


def obstore(threads: int) -> Client:
    """A pool of threads over its synchronous verbs."""
    return _library("obstore", f"obstore, {threads} threads", threads, "no")


def bare(threads: int) -> Client:
    """Sockets that drop the bytes."""
    return _library("bare", f"bare sockets, {threads}", threads, "no, nor written")


def _library(which: str, name: str, threads: int, verifies: str) -> Client:
    module = [sys.executable, "-m", "benchmarks.staging.peers", which, BUCKET]
    return Client(name, lambda prefix, folder: [*module, prefix, str(folder), str(threads)], verifies)


def s5cmd(verb: str = "cp") -> Client:
    """Its default of 256 workers."""
    program = str(s5cmd_program())
    return Client(
        f"s5cmd {verb}",
        lambda name, folder: [program, "--log", "error", verb, f"s3://{BUCKET}/{name}/*", f"{folder}/"],
        "no",
    )


def rclone(transfers: int) -> Client:
    """``copy`` without the HEAD per object that its modification times would cost."""
    program = str(rclone_program())
    words = ["--transfers", str(transfers), "--checkers", str(transfers), "--fast-list", "--use-server-modtime"]
    facts = {"TYPE": "s3", "PROVIDER": "Other", "ENV_AUTH": "true", "LIST_VERSION": "2", "FORCE_PATH_STYLE": "true"}
    environment = {f"RCLONE_CONFIG_BENCH_{name}": value for name, value in facts.items()}
    environment["RCLONE_CONFIG"] = ""
    return Client(
        f"rclone copy, {transfers}",
        lambda name, folder: [program, "copy", f"bench:{BUCKET}/{name}", str(folder), *words],
        "MD5, where the ETag is one",
        environment,
    )


def available(*wanted: Callable[[], Client]) -> tuple[list[Client], list[str]]:
    """The clients that can be had, and a line for each that cannot."""
    clients: list[Client] = []
    missing: list[str] = []
    for make in wanted:
        try:
            clients.append(make())
        except BenchError as error:
            missing.append(str(error))
    return clients, missing


def named(clients: Sequence[Client], chosen: Sequence[str]) -> list[Client]:
    """Ours, and those whose name begins with one of the words; all when none is given."""
    return [one for one in clients if not chosen or one.name.startswith((OURS, *chosen))]
