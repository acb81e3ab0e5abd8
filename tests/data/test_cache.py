"""The cache of staged datasets as processes see it: fetched once, shared, kept while used, evicted by age."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.data.cache.entry import Label
from argosy.steps.data.cache.lease import LEASE_SECONDS, Holder
from argosy.steps.data.cache.lock import try_lock
from argosy.steps.data.cache.room import Wanted, make_room
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.cache.use import GIB, Cache, use
from argosy.steps.data.cache.waiting import Waiting
from argosy.steps.data.manifest import DatasetManifest
from argosy.steps.data.plan import node_share

Dataset = Callable[..., DatasetManifest]
Tree = Callable[[Path], dict[str, bytes]]
USER = Path(__file__).with_name("cache_user.py")


class User:
    """A process of cache_user.py."""

    def __init__(self, manifest: DatasetManifest, root: Path, who: str, *rest: str, at: str = "") -> None:
        path = root.parent / f"{manifest.digest}.manifest"
        path.write_bytes(manifest.to_bytes())
        self.process = subprocess.Popen(
            [sys.executable, str(USER), str(path), str(root), who, *rest],
            env={**os.environ, "CACHE_AT": at},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.said: list[str] = []

    def until(self, word: str) -> str:
        """The first line from now on that has ``word`` in it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if word in line:
                return self.said[-1]
        raise AssertionError(f"ended without {word!r}: {self.said}")

    def fetched(self) -> int:
        return int(self.until("using").split()[1])

    def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.wait()

    def wait(self) -> int:
        assert self.process.stdout is not None
        self.said += self.process.stdout.read().splitlines()
        return self.process.wait(timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stopped(self) -> None:
        """Wait until it has stopped itself."""
        found = os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        assert found is not None
        assert found.si_code == os.CLD_STOPPED, "it ended instead"


@pytest.fixture
def user(tmp_path: Path) -> Iterator[Callable[..., User]]:
    started: list[User] = []

    def start(manifest: DatasetManifest, who: str, *rest: str, at: str = "") -> User:
        started.append(User(manifest, tmp_path / "cache", who, *rest, at=at))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        for pipe in (one.process.stdin, one.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def files(count: int, size: int, seed: int = 0) -> dict[str, bytes]:
    draw = random.Random(seed)
    return {f"f{number:05d}": draw.randbytes(size) for number in range(count)}


def left_over(root: Path) -> list[str]:
    state = root / ".argosy-cache"
    return sorted(f"{name}/{each}" for name in ("leases", "trash") for each in os.listdir(state / name))


def test_fetched_once_and_used_again(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    content = files(20, 1000)
    manifest, cache = dataset(content), Cache(tmp_path / "cache")
    with use(cache, manifest, manifest, who="one") as first:
        assert first.path == tmp_path / "cache" / manifest.digest
        assert tree(first.path) == content
        assert first.result.fetched_bytes == 20_000
    (tmp_path / "source").rename(tmp_path / "gone")
    for verify in ("none", "stat", "full"):
        again = Cache(tmp_path / "cache", verify=verify)  # type: ignore[arg-type]
        with use(again, manifest, manifest, who="two") as second:
            assert (second.path, second.result.fetched_bytes, second.result.bytes) == (first.path, 0, 20_000)
    assert left_over(tmp_path / "cache") == []


def test_each_share_has_its_own_folder(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    content = files(20, 100)
    manifest, cache = dataset(content), Cache(tmp_path / "cache")
    found: dict[str, bytes] = {}
    for rank in range(2):
        with use(cache, manifest, node_share(manifest, "sharded", rank, 2), who="x") as used:
            assert used.path.name.startswith(f"{manifest.digest}-")
            found |= tree(used.path)
    assert found == content
    assert len([name for name in os.listdir(tmp_path / "cache") if not name.startswith(".")]) == 2


def test_a_new_version_of_a_dataset_fetches_what_changed(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    content = {f"d{number % 3}/{key}": data for number, (key, data) in enumerate(files(30, 1000).items())}
    first, cache = dataset(content), Cache(tmp_path / "cache", verify="full")
    with use(cache, first, first, who="x") as used:
        assert used.result.fetched_bytes == 30_000
    changed = {"d0/f00003": b"new" * 10, "d0/f00006": b"newer" * 10, "e/added": b"added"}
    (tmp_path / "source" / "d1" / "f00001").unlink()
    second = dataset(changed)
    with use(cache, second, second, who="x") as again:
        assert again.result.fetched_bytes == sum(map(len, changed.values()))
        assert tree(again.path) == {key: data for key, data in (content | changed).items() if key != "d1/f00001"}
    assert tree(used.path) == content, "the version before is what it was"
    kept = "d2/f00002"
    assert (used.path / kept).stat().st_ino == (again.path / kept).stat().st_ino
    with use(cache, first, first, who="x") as once_more:
        assert once_more.result.fetched_bytes == 0


def test_another_number_of_nodes_fetches_what_is_not_there(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    content = files(60, 100)
    manifest, cache = dataset(content), Cache(tmp_path / "cache")
    held: dict[str, bytes] = {}
    for rank, nnodes in ((0, 3), (0, 2)):
        share = node_share(manifest, "sharded", rank, nnodes)
        with use(cache, manifest, share, who="x") as used:
            assert tree(used.path) == {one.key: content[one.key] for one in share}
            assert used.result.fetched_bytes == sum(one.size for one in share if one.key not in held)
            held = tree(used.path)
    with use(cache, manifest, manifest, who="x") as whole:
        assert whole.result.fetched_bytes == 100 * (60 - len(held))
    with use(cache, manifest, node_share(manifest, "sharded", 1, 2), who="x") as used:
        assert used.result.fetched_bytes == 0


def test_a_dataset_of_another_place_is_no_beginning(dataset: Dataset, tmp_path: Path) -> None:
    content, cache = files(5, 100), Cache(tmp_path / "cache")
    for name in ("one", "other"):
        manifest = dataset(content, name=name)
        with use(cache, manifest, manifest, who="x") as used:
            assert used.result.fetched_bytes == 500


@pytest.mark.parametrize(("verify", "mended"), [("none", False), ("stat", False), ("full", True)])
def test_a_flipped_byte_is_found_at_depth_full(verify: Any, mended: bool, dataset: Dataset, tmp_path: Path) -> None:
    manifest, cache = dataset({"a": b"v" * 1000, "b": b"b"}), Cache(tmp_path / "cache", verify=verify)
    with use(cache, manifest, manifest, who="one") as used:
        victim = used.path / "a"
    facts = victim.stat()
    victim.write_bytes(b"v" * 999 + b"w")
    os.utime(victim, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with use(cache, manifest, manifest, who="two") as used:
        assert used.result.fetched_bytes == (1000 if mended else 0)
        assert (victim.read_bytes() == b"v" * 1000) is mended


@pytest.mark.parametrize(("verify", "mended"), [("none", False), ("stat", True), ("full", True)])
def test_a_lost_file_is_found_at_depth_stat(verify: Any, mended: bool, dataset: Dataset, tmp_path: Path) -> None:
    manifest, cache = dataset({"a": b"v" * 1000, "b": b"b"}), Cache(tmp_path / "cache", verify=verify)
    with use(cache, manifest, manifest, who="one") as used:
        (used.path / "a").unlink()
    with use(cache, manifest, manifest, who="two") as used:
        assert (used.path / "a").exists() is mended


IN_THE_MIDDLE = "os.rename f00050 1"
"""The moment when one of 100 files gets its name."""


def test_two_that_begin_together_fetch_once(
    dataset: Dataset, tree: Tree, user: Callable[..., User], tmp_path: Path
) -> None:
    content = files(100, 2000)
    manifest = dataset(content)
    first = user(manifest, "pod a on node-0", at=f"{IN_THE_MIDDLE} STOP")
    first.stopped()
    second = user(manifest, "pod b on node-0")
    told = second.until("waiting")
    assert f"pod a on node-0 (pid {first.process.pid})" in told
    assert manifest.digest[:12] in told
    first.process.send_signal(signal.SIGCONT)
    assert (first.fetched(), second.fetched()) == (200_000, 0)
    assert tree(tmp_path / "cache" / manifest.digest) == content
    assert (first.end(), second.end()) == (0, 0)
    assert left_over(tmp_path / "cache") == []


def test_a_filler_that_is_killed_is_followed_by_the_one_that_waits(
    dataset: Dataset, tree: Tree, user: Callable[..., User], tmp_path: Path
) -> None:
    content = files(100, 2000)
    manifest = dataset(content)
    folder = tmp_path / "cache" / manifest.digest
    first = user(manifest, "the first", at=f"{IN_THE_MIDDLE} STOP")
    first.stopped()
    second = user(manifest, "the second")
    second.until("waiting for the first")
    held = len(tree(folder))
    first.kill()
    # Nothing at all when the first one's workers, which were not stopped, had everything before the kill.
    assert second.fetched() <= 2000 * (100 - held), "it went on where the first one was"
    assert held > 0
    assert tree(folder) == content
    assert second.end() == 0
    assert left_over(tmp_path / "cache") == []


def test_six_at_once_fetch_once(dataset: Dataset, user: Callable[..., User], tmp_path: Path) -> None:
    manifest = dataset(files(100, 2000))
    users = [user(manifest, f"user {number}") for number in range(6)]
    assert sorted(one.fetched() for one in users) == [0] * 5 + [200_000]
    assert [one.end() for one in users] == [0] * 6
    assert left_over(tmp_path / "cache") == []


def capped(manifests: int) -> str:
    """Room for so many datasets of 100,000 bytes."""
    return json.dumps({"size_gib": (manifests * 100_000 + 50_000) / GIB})


def test_the_least_recently_used_goes(dataset: Dataset, user: Callable[..., User], tmp_path: Path) -> None:
    datasets = [dataset(files(10, 10_000, seed), name=f"source-{seed}") for seed in range(3)]
    for manifest in (datasets[0], datasets[1], datasets[0]):
        one = user(manifest, "x", capped(2))
        one.until("using")
        one.end()
    third = user(datasets[2], "x", capped(2))
    assert f"evicted {datasets[1].digest[:12]} of {datasets[1].uri}: 97.7 KiB, idle for" in third.until("evicted")
    third.until("using")
    third.end()
    left = {name for name in os.listdir(tmp_path / "cache") if not name.startswith(".")}
    assert left == {datasets[0].digest, datasets[2].digest}


def test_what_is_in_use_stays_and_is_named(
    dataset: Dataset, tree: Tree, user: Callable[..., User], tmp_path: Path
) -> None:
    content = files(10, 10_000)
    first, second = dataset(content), dataset(files(10, 10_000, 1), name="second")
    holder = user(first, "pod gpt-0 on node-7", capped(1))
    holder.until("using")
    refused = user(second, "x", capped(1))
    told = refused.until("refused disk_full")
    assert f"{first.digest[:12]} of {first.uri}: 97.7 KiB, in use by pod gpt-0 on node-7 (pid" in told
    assert "what is idle would free 0 bytes: wait for a run to end" in told
    assert refused.wait() == ExitCode.TRANSIENT
    assert tree(tmp_path / "cache" / first.digest) == content
    holder.kill()  # the kernel gives its lock back: nobody waits for a heartbeat to stop
    assert user(second, "x", capped(1)).fetched() == 100_000
    assert not (tmp_path / "cache" / first.digest).exists()


def test_room_that_was_given_is_not_given_again(tmp_path: Path) -> None:
    """What had been given it and had no folder yet was not counted: both were filled, beyond size_gib."""
    first, second = (Wanted(letter * 64, Label("s3://b/c", 600, 1), 1000) for letter in "ab")
    with CacheRoot(tmp_path) as root, root.take(first.entry, "fill", "early") as early:
        make_room(root, first, early, Waiting())
        with root.take(second.entry, "fill", "late") as late, pytest.raises(StepError, match="in use by early") as told:
            make_room(root, second, late, Waiting())
    assert (told.value.cause, told.value.code) == ("disk_full", ExitCode.TRANSIENT)


def test_nothing_goes_when_it_would_not_be_enough(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    content = files(10, 10_000)
    first, large = dataset(content), dataset(files(10, 20_000, 1), name="large")
    cache = Cache(tmp_path / "cache", size_gib=150_000 / GIB)
    with use(cache, first, first, who="x") as used:
        pass
    with (
        pytest.raises(StepError, match=r"its limit is 146\.5 KiB.*idle for .*raise the limit") as caught,
        use(cache, large, large, who="x"),
    ):
        pass
    assert (caught.value.cause, caught.value.code) == ("disk_full", ExitCode.CONFIGURATION)
    assert tree(used.path) == content
    assert left_over(tmp_path / "cache") == []


def test_what_others_put_there_is_never_touched(dataset: Dataset, tree: Tree, tmp_path: Path) -> None:
    root = tmp_path / "cache"
    foreign = {"notes.txt": b"mine", "f" * 64 + "/thesis.tex": b"mine too", "models/" + "a" * 64 + "/w": b"w"}
    for name, data in foreign.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    (tmp_path / "elsewhere" / ".argosy-stage").mkdir(parents=True)
    (root / ("e" * 64)).symlink_to(tmp_path / "elsewhere")
    cache = Cache(root, size_gib=150_000 / GIB)
    for seed in range(3):
        manifest = dataset(files(10, 10_000, seed), name=f"source-{seed}")
        with use(cache, manifest, manifest, who="x"):
            pass
    assert {name: (root / name).read_bytes() for name in foreign} == foreign
    assert (root / ("e" * 64)).is_symlink()
    assert (tmp_path / "elsewhere" / ".argosy-stage").is_dir()
    (root / manifest.digest).rename(tmp_path / "aside")
    (root / manifest.digest).mkdir()
    (root / manifest.digest / "mine").write_bytes(b"mine")
    with pytest.raises(InputError, match="staging did not put there"), use(cache, manifest, manifest, who="x"):
        pass
    assert tree(root / manifest.digest) == {"mine": b"mine"}


BEFORE = ("os.rename .evict. 1", "os.rename trash 1")


@pytest.mark.parametrize("at", [*BEFORE, "os.remove f00005 1", "os.rmdir trash 1"])
def test_an_eviction_that_is_killed_is_finished_by_the_next(
    at: str, dataset: Dataset, tree: Tree, user: Callable[..., User], tmp_path: Path
) -> None:
    root, content = tmp_path / "cache", files(10, 10_000)
    old, new = dataset(content), dataset(files(10, 10_000, 1), name="new")
    with use(Cache(root), old, old, who="x"):
        pass
    evictor = user(new, "evictor", capped(1), at=f"{at} KILL")
    assert evictor.wait() == -signal.SIGKILL
    assert tree(root / old.digest) == (content if at in BEFORE else {}), "it goes at once, or not at all"
    assert user(new, "next", capped(1)).fetched() == 100_000
    assert not (root / old.digest).exists()
    # A lease without its name yet is nobody's; it is removed when it is old.
    assert [name for name in left_over(root) if ".use." not in name and not name.startswith("leases/.")] == []


def test_a_user_that_comes_while_its_entry_is_chosen_keeps_it(
    dataset: Dataset, tree: Tree, user: Callable[..., User], tmp_path: Path
) -> None:
    root, content = tmp_path / "cache", files(10, 10_000)
    old, new = dataset(content), dataset(files(10, 10_000, 1), name="new")
    with use(Cache(root), old, old, who="x"):
        pass
    evictor = user(new, "evictor", capped(1), at="os.rename .evict. 1 STOP")
    evictor.stopped()
    late = user(old, "late", capped(1))
    late.until("waiting for the eviction")
    evictor.process.send_signal(signal.SIGCONT)
    assert "in use by late (pid" in evictor.until("refused disk_full")
    assert late.fetched() == 0
    assert tree(root / old.digest) == content
    assert (evictor.wait(), late.end()) == (ExitCode.TRANSIENT, 0)


def test_a_reader_that_comes_while_its_entry_is_chosen_sees_all_or_nothing(
    dataset: Dataset, user: Callable[..., User], tmp_path: Path
) -> None:
    old, new = dataset(files(10, 10_000)), dataset(files(10, 10_000, 1), name="new")
    with use(Cache(tmp_path / "cache"), old, old, who="x"):
        pass
    evictor = user(new, "evictor", capped(1), at="os.rename .evict. 1 STOP")
    evictor.stopped()
    late = user(old, "late", json.dumps({"read_only": True}))
    late.until("waiting for the eviction")
    evictor.process.send_signal(signal.SIGCONT)
    late.until("does not hold the dataset")
    assert late.wait() == ExitCode.CONFIGURATION
    assert evictor.fetched() == 100_000


def booked(root: Path) -> list[str]:
    return sorted(os.listdir(root / ".argosy-cache" / "booked"))


def test_what_was_staged_for_a_run_is_kept_until_it_comes(
    dataset: Dataset, user: Callable[..., User], tmp_path: Path
) -> None:
    root = tmp_path / "cache"
    first, second = dataset(files(10, 10_000)), dataset(files(10, 10_000, 1), name="second")
    book = {"run": "wf-1", "book_seconds": 600.0}
    with use(Cache(root), first, first, who="the stage step of wf-1", **book):  # type: ignore[arg-type]
        pass
    refused = user(second, "x", capped(1))
    told = refused.until("refused disk_full")
    assert f"{first.digest[:12]} of {first.uri}: 97.7 KiB, kept for the stage step of wf-1, for 10 min at most" in told
    assert "wait for a run to end" in told
    assert refused.wait() == ExitCode.TRANSIENT
    with use(Cache(root), first, first, who="a pod of another run", run="wf-2") as used:
        assert used.result.fetched_bytes == 0
    assert len(booked(root)) == 1, "it is not theirs"
    with use(Cache(root), first, first, who="a pod of the run", run="wf-1") as used:
        assert used.result.fetched_bytes == 0
        assert booked(root) == []
    assert user(second, "x", capped(1)).fetched() == 100_000
    assert not (root / first.digest).exists()


@pytest.mark.parametrize("spoiled", ["late", "early", "broken", "too long", "a folder", "a pipe"])
def test_a_booking_ends(spoiled: str, dataset: Dataset, tmp_path: Path) -> None:
    """Its run never comes: whoever made it may be dead, and what it left may be anything."""
    cache = Cache(tmp_path / "cache", size_gib=150_000 / GIB)
    first, second = dataset(files(10, 10_000)), dataset(files(10, 10_000, 1), name="second")
    with use(cache, first, first, who="x", run="wf-1", book_seconds=3600.0 if spoiled != "too long" else 1e9):
        pass
    (name,) = booked(cache.path)
    booking = cache.path / ".argosy-cache" / "booked" / name
    moved = {"late": -3601, "early": +3601, "too long": -86_401}
    if spoiled in moved:
        os.utime(booking, (time.time() + moved[spoiled],) * 2)
    else:
        booking.unlink()
        {"broken": lambda: booking.write_bytes(b"[]"), "a folder": booking.mkdir, "a pipe": lambda: os.mkfifo(booking)}[
            spoiled
        ]()
    with use(cache, second, second, who="x") as used:
        assert used.result.fetched_bytes == 100_000
    assert booked(cache.path) == ([name] if spoiled == "a folder" else [])


def test_a_run_that_books_while_its_entry_is_chosen_keeps_it(
    dataset: Dataset, user: Callable[..., User], tmp_path: Path
) -> None:
    root = tmp_path / "cache"
    old, new = dataset(files(10, 10_000)), dataset(files(10, 10_000, 1), name="new")
    with use(Cache(root), old, old, who="x"):
        pass
    evictor = user(new, "evictor", capped(1), at="os.rename .evict. 1 STOP")
    evictor.stopped()
    with CacheRoot(root) as opened:
        opened.book(old.digest, "wf-1", "the stage step of wf-1", 600.0)
    evictor.process.send_signal(signal.SIGCONT)
    assert "kept for the stage step of wf-1" in evictor.until("refused disk_full")
    assert (root / old.digest).is_dir()


def lease_of_another_node(root: Path, entry: str, kind: str) -> Path:
    """What a process on another node leaves on a volume where locks do not reach us."""
    path = root / ".argosy-cache" / "leases" / f"{entry}.{kind}.00"
    path.write_bytes(Holder("pod z on node-9", "00000000-another-kernel", 77, time.time()).line())
    return path


def test_another_nodes_silence_not_its_lock_says_that_it_is_dead(dataset: Dataset, tmp_path: Path) -> None:
    first, second = dataset(files(10, 10_000)), dataset(files(10, 10_000, 1), name="second")
    cache = Cache(tmp_path / "cache", size_gib=150_000 / GIB)
    with use(cache, first, first, who="x") as used:
        pass
    lease = lease_of_another_node(cache.path, first.digest, "use")
    with (
        pytest.raises(StepError, match=r"in use by pod z on node-9 \(pid 77\)"),
        use(cache, second, second, who="x"),
    ):
        pass
    assert used.path.exists()
    os.utime(lease, (time.time() - LEASE_SECONDS - 1,) * 2)
    with use(cache, second, second, who="x"):
        assert not used.path.exists()
    assert left_over(cache.path) == []


@pytest.mark.parametrize("kind", ["fill", "evict"])
def test_another_nodes_work_is_waited_for_until_it_falls_silent(
    kind: str, dataset: Dataset, user: Callable[..., User], tmp_path: Path
) -> None:
    manifest = dataset(files(10, 10_000))
    with use(Cache(tmp_path / "cache"), manifest, list(manifest)[:1], who="x"):
        pass
    lease = lease_of_another_node(tmp_path / "cache", manifest.digest, kind)
    waits = user(manifest, "x")
    assert {"fill": "pod z on node-9 (pid 77)", "evict": "eviction of"}[kind] in waits.until("waiting")
    assert not (tmp_path / "cache" / manifest.digest).exists()
    os.utime(lease, (time.time() - LEASE_SECONDS - 1,) * 2)
    assert waits.fetched() == 90_000


def test_a_lease_that_somebody_looks_at_as_it_is_made_is_locked_all_the_same(
    dataset: Dataset, user: Callable[..., User], tmp_path: Path
) -> None:
    """Who looks locks it for an instant; the holder went on without its lock, and the next look took it for dead."""
    manifest = dataset(files(10, 100))
    holder = user(manifest, "x", at="fcntl.flock * 1 STOP")
    holder.stopped()
    leases = tmp_path / "cache/.argosy-cache/leases"
    (hidden,) = leases.iterdir()
    with hidden.open() as looking:
        assert try_lock(looking.fileno(), shared=True)
        holder.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + 0.5
        while time.monotonic() < until and hidden.exists():
            time.sleep(0.01)
    holder.until("using")
    assert [seen.holder.pid for seen in CacheRoot(tmp_path / "cache").living()] == [holder.process.pid]
    assert holder.end() == 0


def test_a_waiter_can_give_up(dataset: Dataset, tmp_path: Path) -> None:
    manifest = dataset(files(10, 100))
    cache = Cache(tmp_path / "cache")
    with use(cache, manifest, list(manifest)[:1], who="x"):
        pass
    lease = lease_of_another_node(cache.path, manifest.digest, "fill")

    def give_up() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), use(cache, manifest, manifest, who="x", go_on=give_up):
        pass
    assert left_over(cache.path) == [f"leases/{lease.name}"]


def test_read_only_by_choice(dataset: Dataset, tmp_path: Path) -> None:
    manifest, root = dataset(files(10, 100)), tmp_path / "cache"
    said = r"cannot be written \(read_only is set\) and does not hold"
    with (
        pytest.raises(StepError, match=said) as caught,
        use(Cache(root, read_only=True), manifest, manifest, who="x"),
    ):
        pass
    assert caught.value.cause == "volume_mount"
    assert not root.exists()
    with use(Cache(root), manifest, manifest, who="x"):
        pass
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    with use(Cache(root, read_only=True), manifest, manifest, who="x") as used:
        assert used.result.fetched_bytes == 0
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
