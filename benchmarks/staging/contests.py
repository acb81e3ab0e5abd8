"""What is staged beside whom, and the bars."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.staging import clients
from benchmarks.staging.clients import Client
from benchmarks.staging.gang import gang
from benchmarks.staging.kill import kill
from benchmarks.staging.link import LinkError, capped_link
from benchmarks.staging.origin.content import Dataset
from benchmarks.staging.origin.process import Origin
from benchmarks.staging.outcome import Outcome, speeds
from benchmarks.staging.rounds import Rounds, Run, faster, fetched_anew, fill, interleaved, measured, median
from benchmarks.staging.warm import warm
from benchmarks.staging.warm_gang import warm_gang

SMALL = Dataset("small", 2_000, 16 << 10, 16 << 10)
LARGE = Dataset("large", 8, 64 << 20, 64 << 20)
WIRE = Dataset("wire", 16, 64 << 20, 64 << 20)
MANY = Dataset("many", 100_000, 16 << 10, 16 << 10)
MIXED = Dataset("mixed", 900, 4 << 10, 8 << 20)
FIRST_BYTE = 0.03
CONNECTION = 80 << 20
CAP_MBIT = 2_000


@dataclass(frozen=True)
class Bench:
    """How to measure: rounds, where the files go, and beside whom (names' beginnings; all when empty)."""

    rounds: int
    folder: Path
    only: Sequence[str] = field(default_factory=tuple)

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder that is removed."""
        with tempfile.TemporaryDirectory(prefix="argosy-bench-", dir=self.folder) as name:
            yield Path(name)

    def clients(self, *wanted: Callable[[], Client]) -> tuple[list[Client], list[str]]:
        """Those that can be had and were asked for, ours first."""
        found, missing = clients.available(clients.argosy, *wanted)
        return clients.named(found, self.only), missing

    def fetch(
        self, dataset: Dataset, wanted: list[Client], missing: list[str], *, warm: bool = True, **conditions: float
    ) -> Rounds:
        """Interleaved rounds against an origin on loopback."""
        with Origin([dataset]) as origin, self.scratch() as scratch:
            run = fetched_anew(origin, dataset, scratch, **conditions)
            return interleaved(wanted, dataset, self.rounds, run, missing, warm=warm)


def small(bench: Bench) -> Outcome:
    """Many small objects, no latency: CPU per object decides."""
    wanted = (
        clients.argosy_by_library,
        lambda: clients.boto3(16),
        clients.s5cmd,
        lambda: clients.rclone(16),
        lambda: clients.obstore(16),
    )
    return _loopback(bench, "2,000 x 16 KiB, no latency", SMALL, wanted, {"boto3": 12, "s5cmd": 0.95})


def small_far(bench: Bench) -> Outcome:
    """Many small objects, 30 ms to the first byte: how many are in flight decides."""
    wanted = (
        clients.argosy_by_library,
        lambda: clients.boto3(16),
        clients.s5cmd,
        lambda: clients.rclone(256),
        lambda: clients.obstore(16),
        lambda: clients.obstore(256),
    )
    bars = {"boto3": 10, "s5cmd": 0.85, "argosy (library)": 1.2, "obstore": 1.2}
    return _loopback(bench, "2,000 x 16 KiB, 30 ms to the first byte", SMALL, wanted, bars, latency=FIRST_BYTE)


def large(bench: Bench) -> Outcome:
    """Large objects over loopback: copies and system calls decide."""
    wanted = (clients.argosy_by_library, lambda: clients.obstore(16), clients.s5cmd, lambda: clients.bare(4))
    return _loopback(bench, "8 x 64 MiB, loopback", LARGE, wanted, {"obstore": 0.95})


def _loopback(
    bench: Bench,
    title: str,
    dataset: Dataset,
    wanted: Sequence[Callable[[], Client]],
    bars: dict[str, float],
    **conditions: float,
) -> Outcome:
    found, missing = bench.clients(*wanted)
    rounds = bench.fetch(dataset, found, missing, **conditions)
    return speeds(title, rounds, missing, count=dataset.count, size=dataset.total_bytes, bars=bars)


def capped(bench: Bench) -> Outcome:
    """Large objects, each connection 30 ms and 80 MiB/s, over a link of its own with tc's token bucket."""
    title = f"16 x 64 MiB, a connection 30 ms + 80 MiB/s, the link {CAP_MBIT} Mbit/s (tc tbf, MTU 9000)"
    wanted, missing = bench.clients(clients.s5cmd, lambda: clients.obstore(16), lambda: clients.bare(8))
    try:
        with (
            capped_link(CAP_MBIT) as link,
            Origin([WIRE], host=link.host, within=link.within) as origin,
            bench.scratch() as scratch,
        ):
            run = fetched_anew(origin, WIRE, scratch, latency=FIRST_BYTE, rate=CONNECTION)
            rounds = interleaved(wanted, WIRE, bench.rounds, run, missing)
            cap = link.payload
    except LinkError as error:
        return Outcome(title, [f"skipped: {error}"], {"skipped": str(error)})
    size = WIRE.total_bytes
    outcome = speeds(title, rounds, missing, count=WIRE.count, size=size)
    shares = {name: size / median(runs, lambda one: one.seconds) / cap for name, runs in rounds.items()}
    told = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
    outcome.lines.append(f"share of the cap's payload ({cap / (1 << 20):.0f} MiB/s): {told}")
    mine = shares[clients.OURS]
    outcome.bars.append((f"{100 * mine:.1f} % of the cap (bar 95 %)", mine >= 0.95))
    if "s5cmd cp" in rounds:
        ratio = _cpu(rounds, clients.OURS) / _cpu(rounds, "s5cmd cp")
        outcome.bars.append((f"{ratio:.2f}x the CPU of s5cmd (bar 1x)", ratio <= 1))
    return outcome


def _cpu(rounds: Rounds, name: str) -> float:
    return median(rounds[name], lambda run: run.cpu)


def verifying(bench: Bench, dataset: Dataset) -> Outcome:
    """Ours against an origin that tells the store's checksum and against one that does not: what comparing costs."""
    missing: list[str] = []
    told, untold = clients.argosy(), clients.Client("argosy, no CRC told", clients.argosy().command, "no")
    with Origin([dataset]) as origin, bench.scratch() as scratch:

        def run(client: Client) -> Run:
            return fetched_anew(origin, dataset, scratch, crc=client is told)(client)

        rounds = interleaved([told, untold], dataset, bench.rounds, run, missing)
    title = f"verification on and off, {dataset.count:,} x {dataset.largest >> 10} KiB"
    outcome = speeds(title, rounds, missing, count=dataset.count, size=dataset.total_bytes)
    cost = faster(rounds, untold.name, told.name) - 1
    outcome.bars.append((f"verifying costs {100 * cost:.1f} % of the seconds (bar 3 %)", cost <= 0.03))
    # On a busy machine the CPU is the figure to believe.
    cpu = _cpu(rounds, told.name) / _cpu(rounds, untold.name) - 1
    outcome.bars.append((f"verifying costs {100 * cpu:.1f} % of the CPU (bar 3 %)", cpu <= 0.03))
    share = _computing(dataset) / _cpu(rounds, told.name)
    outcome.lines.append(f"CRC64NVME of these bytes by itself would be {100 * share:.1f} % of its CPU")
    return outcome


def _computing(dataset: Dataset) -> float:
    """CPU seconds of the checksums alone: who always computes them saves nothing where none is told."""
    for window in dataset:
        window.crc64nvme()  # the bytes are drawn and in memory
    began = time.process_time()
    for window in dataset:
        window.crc64nvme()
    return time.process_time() - began


def again(bench: Bench) -> Outcome:
    """Nothing to do: 100,000 keys that are all there."""
    made, missing = bench.clients(lambda: clients.s5cmd("sync"))
    with Origin([MANY]) as origin, bench.scratch() as scratch:
        manifest = scratch / "manifest"
        folders = {one.name: scratch / str(number) for number, one in enumerate(made)}
        for one in made:
            folders[one.name].mkdir()
            if one.name == clients.OURS:
                measured(one, origin, MANY, folders[one.name])
            else:
                fill(MANY, folders[one.name])
        taken = clients.snapshot(manifest)
        measured(taken, origin, MANY, scratch)
        by_manifest = clients.argosy_by_manifest(manifest)
        folders[by_manifest.name] = folders[clients.OURS]

        def run(client: Client) -> Run:
            origin.begin()
            return measured(client, origin, MANY, folders[client.name])

        rounds = interleaved([*made, by_manifest], MANY, bench.rounds, run, missing)
    outcome = speeds(
        "nothing to do, 100,000 keys, no latency", rounds, missing, count=MANY.count, size=MANY.total_bytes
    )
    for name in rounds:
        if name.startswith("s5cmd"):
            ratio = 1 / faster(rounds, clients.OURS, name)
            outcome.bars.append((f"{ratio:.2f}x the seconds of {name} (bar 1.2x)", ratio <= 1.2))
    return outcome


def many(bench: Bench) -> Outcome:
    """100,000 small objects at 30 ms, by those who can within minutes; no run goes unmeasured before."""
    wanted, missing = bench.clients(clients.s5cmd)
    rounds = bench.fetch(MANY, wanted, missing, warm=False, latency=FIRST_BYTE)
    outcome = speeds(
        "100,000 x 16 KiB, 30 ms to the first byte", rounds, missing, count=MANY.count, size=MANY.total_bytes
    )
    seconds = median(rounds[clients.OURS], lambda run: run.seconds)
    outcome.bars.append((f"{seconds:.1f} s (bar 60 s)", seconds <= 60))
    return outcome


def killed(bench: Bench) -> Outcome:
    """kill -9 in the middle of large objects, then again."""
    wanted, missing = bench.clients(lambda: clients.s5cmd("sync"), lambda: clients.rclone(16))
    with Origin([LARGE]) as origin, bench.scratch() as scratch:
        outcome = kill(origin, LARGE, wanted, scratch, bench.rounds)
    outcome.lines += [f"left out: {each}" for each in missing]
    return outcome


def four_nodes(bench: Bench) -> Outcome:
    """Four nodes share one prefix."""
    with Origin([MIXED]) as origin, bench.scratch() as scratch:
        return gang(origin, MIXED, scratch, nnodes=4, rounds=bench.rounds)


def warm_nodes(bench: Bench) -> Outcome:
    """A gang whose nodes hold their data already."""
    with Origin([SMALL]) as origin, bench.scratch() as scratch:
        return warm(origin, SMALL, scratch, nnodes=2, rounds=bench.rounds)


def demo_gang(bench: Bench) -> Outcome:
    """The demo's gang, whose cache is warm, until it trains."""
    with bench.scratch() as scratch:
        return warm_gang(scratch, bench.rounds)


CONTESTS: dict[str, Callable[[Bench], Outcome]] = {
    "small-0ms": small,
    "small-30ms": small_far,
    "large": large,
    "capped": capped,
    "verify-small": lambda bench: verifying(bench, SMALL),
    "verify-large": lambda bench: verifying(bench, LARGE),
    "noop-100k": again,
    "kill": killed,
    "gang": four_nodes,
    "warm-nodes": warm_nodes,
    "warm-gang": demo_gang,
    "many-30ms": many,
}
