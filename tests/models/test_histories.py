"""Random histories of claims, saves, crashes, lost answers, prunes, pins and damage against a small model.

A failure prints the steps that lead to it. Replay one of the random ones:
``python -c "from tests.models.test_histories import again; again('20261121-7')"``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import hypothesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from argosy.steps.store import ObjectStore, open_store
from argosy.steps.store.cloud import CloudStore
from tests.models.history import Gang, World
from tests.models.random_histories import KINDS, play
from tests.models.stores import DictStore

SEED = 20261121
FAULTS = st.one_of(st.just((-1, "")), st.just((-1, "")), st.tuples(st.integers(0, 24), st.sampled_from(KINDS)))


class Histories(RuleBasedStateMachine):
    """One run; the newest gang and its zombies act in any order."""

    opened: list[ObjectStore]

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.open())

    def open(self) -> ObjectStore:
        """An empty store."""
        return DictStore()

    def gang(self, which: int) -> Gang:
        """0: the newest that lives, others: the zombies before it."""
        alive = [gang for gang in self.world.gangs if gang.alive] or [self.world.claim(1)]
        return alive[-1 - which % len(alive)]

    @rule(writers=st.sampled_from([1, 2, 4]))
    def claim(self, writers: int) -> None:
        """A restart, maybe with another number of ranks; who ruled before goes on as if nothing had happened."""
        self.world.claim(writers)

    @rule(which=st.integers(0, 2), fault=FAULTS, final=st.booleans(), again=st.booleans())
    def save(self, which: int, fault: tuple[int, str], final: bool, again: bool) -> None:
        self.world.save(self.gang(which), final=final, again=again, strike_in=fault[0], kind=fault[1])

    @rule(which=st.integers(0, 1), fault=FAULTS)
    def begin(self, which: int, fault: tuple[int, str]) -> None:
        self.world.begin(self.gang(which), *fault)

    @rule(which=st.integers(0, 2), keep=st.integers(1, 3), fault=FAULTS)
    def prune(self, which: int, keep: int, fault: tuple[int, str]) -> None:
        self.world.prune(self.gang(which), keep, *fault)

    @rule()
    def resume(self) -> None:
        self.world.resume()

    @rule()
    def roll_back(self) -> None:
        self.world.roll_back()

    def live(self) -> list[str]:
        return [entry.digest for entry in self.world.model.live()]

    def whole(self) -> list[str]:
        return [digest for digest in self.live() if digest not in self.world.model.damaged]

    @precondition(lambda self: self.whole())
    @rule(number=st.integers(0, 5))
    def pin(self, number: int) -> None:
        self.world.pin(self.whole()[number % len(self.whole())])

    @precondition(lambda self: self.world.model.pinned & set(self.live()))
    @rule()
    def unpin(self) -> None:
        self.world.unpin(min(self.world.model.pinned & set(self.live())))

    @precondition(lambda self: self.whole())
    @rule(number=st.integers(0, 5), byte=st.integers(0, 10**6))
    def corrupt(self, number: int, byte: int) -> None:
        self.world.corrupt(self.whole()[number % len(self.whole())], byte)


def run(machine: type[Histories], examples: int, steps: int, seed: int | None = None) -> None:
    """Without ``seed`` always the same histories: a failure of CI is the same failure everywhere."""
    if seed is not None:
        machine = hypothesis.seed(seed)(machine)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=seed is None,
            print_blob=True,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )


def on_folder(root: Path) -> type[Histories]:
    class OnFolder(Histories):
        def open(self) -> ObjectStore:
            shutil.rmtree(root, ignore_errors=True)
            return open_store(f"file://{root}")

    return OnFolder


class InMemory(CloudStore):
    """The code for S3, GCS and Azure over obstore's store in memory, which refuses a range at an object's end."""

    def __init__(self) -> None:
        from obstore.store import MemoryStore

        super().__init__("memory://obstore")
        self._opened = MemoryStore()

    def get_range(self, key: str, start: int, length: int) -> bytes:
        return self.get(key)[start : start + length]


class OnObstore(Histories):
    def open(self) -> ObjectStore:
        return InMemory()


def test_on_a_folder(memory_path: Path) -> None:
    run(on_folder(memory_path / "store"), examples=12, steps=12)


def test_on_obstore() -> None:
    run(OnObstore, examples=15, steps=15)


def again(seed: str) -> None:
    """One random history."""
    play(DictStore(), seed, acts=20)


def test_random_ones() -> None:
    for number in range(150):
        try:
            again(f"{SEED}-{number}")
        except BaseException:
            print(f"""python -c "from tests.models.test_histories import again; again('{SEED}-{number}')" """)
            raise
