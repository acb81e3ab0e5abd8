"""The explorations: by name, who takes part and what may be lost. The quick ones run with the tests, all in a proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.models import checkpoints
from tests.models.explorer import GIVEN_UP, LATE, REPEATED, Explorer
from tests.models.gangs import GatedLog, Log, append_only, gang, judge
from tests.models.wrong_protocols import WRONG

EVERY_LOSS = frozenset({GIVEN_UP, REPEATED, LATE})


@dataclass(frozen=True)
class Case:
    """One exploration."""

    what: str
    make: Callable[[], Explorer]
    schedules: int = 0
    """How many there must be; 0: not known beforehand."""
    breaks: bool = False
    """A wrong protocol: it must be caught."""
    quick: bool = True


def of_gangs(
    gangs: int, commits: int, *, decisive: bool, losses: frozenset[str] = frozenset(), before: int = 0
) -> Callable[[], Explorer]:
    """Gangs that claim and commit; ``before``: entries that lie in the log when they begin."""

    def make() -> Explorer:
        log = GatedLog if decisive else Log
        programs = [gang(number, commits, log) for number in range(gangs)]
        start = entries_before(before)
        return Explorer(programs, judge, start=start, losses=losses, decisive=decisive, on_change=append_only)

    return make


def entries_before(count: int) -> dict[str, bytes]:
    """A log of one gang: a claim and commits."""
    from argosy.steps.checkpoint.log import CommitLog
    from tests.models.requests import AnsweringStore, one_clock

    store = AnsweringStore(())
    if count:
        with one_clock(98, 0):
            log = CommitLog(store, "")
            writer = log.writer(log.claim("long before"))
            for step in range(1, count):
                writer.append(kind="commit", step=step, digest="0" * 64, name="n", manifest="m", total_bytes=1)
    assert store.before is not None
    return store.before


def of_acts(*names: str, losses: frozenset[str] = frozenset()) -> Callable[[], Explorer]:
    """The programs of ``checkpoints.ACTS`` on one run; the first of them is of generation 1."""

    def make() -> Explorer:
        programs = [checkpoints.program(checkpoints.ACTS[name]) for name in names]
        on_change = checkpoints.no_newer_data(0 if names[0].startswith("prun") else -2)
        return Explorer(programs, checkpoints.judge, start=checkpoints.start(), losses=losses, on_change=on_change)

    return make


def of_wrong(name: str, commits: int) -> Callable[[], Explorer]:
    """Two gangs of a wrong protocol."""

    def make() -> Explorer:
        wrong = WRONG[name]
        return Explorer([wrong.gang(number, commits) for number in range(2)], wrong.judge, decisive=True)

    return make


CASES = [
    Case("2 gangs, 3 commits, between looks and appends", of_gangs(2, 3, decisive=True), 366),
    Case("3 gangs, 3 commits, between looks and appends", of_gangs(3, 3, decisive=True), 135_385_320, quick=False),
    Case("3 gangs, 1 commit, between requests", of_gangs(3, 1, decisive=False), 1_317_751_597_362),
    Case(
        "2 gangs, 3 commits, an answer of each given up, between looks and appends",
        of_gangs(2, 3, decisive=True, losses=frozenset({GIVEN_UP})),
        34_000,
    ),
    # With 3 commits each there are too many states to visit in a proof's ten minutes.
    Case(
        "3 gangs, 1 commit, an answer of each given up, between looks and appends",
        of_gangs(3, 1, decisive=True, losses=frozenset({GIVEN_UP})),
        24_978_415_422,
        quick=False,
    ),
    Case("2 gangs, 3 commits, between requests", of_gangs(2, 3, decisive=False), 90_576),
    Case("2 gangs, 3 commits, the hint is written meanwhile", of_gangs(2, 3, decisive=False, before=13)),
    Case(
        "2 gangs, 3 commits, an answer of each lost in any way",
        of_gangs(2, 3, decisive=False, losses=EVERY_LOSS),
        quick=False,
    ),
    Case("2 gangs, 1 commit, an answer of each lost in any way", of_gangs(2, 1, decisive=False, losses=EVERY_LOSS)),
    Case(
        "3 gangs, 3 commits, an answer of each repeated, between looks and appends",
        of_gangs(3, 3, decisive=True, losses=frozenset({REPEATED})),
        12_256_005_210,
        quick=False,
    ),
    Case("3 gangs, 3 commits, between requests", of_gangs(3, 3, decisive=False), quick=False),
    Case(
        "3 gangs, 1 commit, an answer of each repeated, between requests",
        of_gangs(3, 1, decisive=False, losses=frozenset({REPEATED})),
        quick=False,
    ),
    Case("a gang that prunes, saves and prunes, reader", of_acts("pruning saver", "reader")),
    Case("pruner, pinner, reader", of_acts("pruner", "pinner", "reader")),
    Case("pruner, two pinners of one checkpoint", of_acts("pruner", "pinner", "second pinner")),
    Case("pruner, one who pins, unpins and pins again", of_acts("pruner", "unpinner")),
    Case("pruner, pinner, an answer of each lost in any way", of_acts("pruner", "pinner", losses=EVERY_LOSS)),
    Case("pruner, unpinner, an answer of each lost in any way", of_acts("pruner", "unpinner", losses=EVERY_LOSS)),
    Case("pruner, a writer of the next save beside it", of_acts("pruner", "writer")),
    Case("a newer gang that prunes, pinner", of_acts("claimant", "pinner")),
    Case("pruner, a newer gang that saves and prunes", of_acts("pruner", "claimant"), quick=False),
    Case("pruner, pinner, a newer gang that saves and prunes", of_acts("pruner", "pinner", "claimant"), quick=False),
    Case("pruner, reader, a newer gang that saves and prunes", of_acts("pruner", "reader", "claimant"), quick=False),
    *(Case(f"wrong: {name}", of_wrong(name, 2), breaks=True) for name in WRONG),
    *(Case(f"wrong: {name} (3 commits)", of_wrong(name, 3), breaks=True, quick=False) for name in WRONG),
]  # fmt: skip
