"""Loader workers by fork and by spawn, readers that are killed, scripts that are killed."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from argosy import LineSamples, RecordSamples, ResumableLoader
from argosy.steps.contract.errors import StepError
from tests.stream.conftest import Corpus, blobs, records


def gone(pid: int, seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
def test_torch_loads_it_in_workers_that_are_forked(bucket: Corpus, seed: int, workers: int) -> None:
    """The store's client was used in this process before it forks: what is left of it there would hang."""
    from torch.utils.data import DataLoader

    bucket.write(files := blobs(seed, 2, 30_000))
    with bucket.open(RecordSamples(100)) as data:
        data[0]
        found = [sample for batch in DataLoader(data, 7, num_workers=workers, collate_fn=list) for sample in batch]
        assert data[1] == records(files)[1], "and this process goes on"
    assert found == records(files)


def test_a_worker_that_is_spawned_opens_it_again(bucket: Corpus, seed: int) -> None:
    """It has the pickle alone; a version that it cannot see any more is not what it was given."""
    bucket.write(files := blobs(seed, 2, 30_000))
    code = "import pickle, sys; data = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(data[7]); data.close()"
    with bucket.open(RecordSamples(100)) as data:
        bucket.write({"later": b"x" * 100})
        given = pickle.dumps(data)
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], input=given, capture_output=True, check=True)
    assert done.stdout == records(files)[7]


def test_a_worker_that_is_spawned_elsewhere_finds_the_index(
    folder: Corpus, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write(files := blobs(seed, 2, 30_000))
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    code = "import pickle, sys; data = pickle.load(sys.stdin.buffer); sys.stdout.buffer.write(data[7]); data.close()"
    with folder.open(RecordSamples(100), index="") as data:
        given = pickle.dumps(data)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=given, capture_output=True, check=True, cwd=elsewhere, timeout=60)
    assert done.stdout == records(files)[7]
    assert not list(elsewhere.iterdir())


def test_the_others_wait_for_what_the_first_computes(folder: Corpus, seed: int) -> None:
    """The second rank is there first, and there is no table and no index yet."""
    from argosy.steps.data.listing import take_snapshot

    folder.write({"a": b"\n".join(b"%d" % number for number in range(100))})
    digest = take_snapshot(folder.uri).digest
    code = "import sys, argosy; data = argosy.StreamingDataset(sys.argv[1], argosy.LineSamples(), index=sys.argv[2], "
    code += "digest=sys.argv[3]); print(data[7].decode()); data.close()"
    command = [sys.executable, "-c", code, folder.uri, folder.index, digest]
    environ = {**os.environ, "RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) as second:
        folder.open(LineSamples(), digest=digest).close()
        out, _ = second.communicate(timeout=60)
    assert (second.returncode, out) == (0, "7\n")


@pytest.mark.torch
def test_ranks_agree_on_the_version_that_rank_0_sees(folder: Corpus, tmp_path: Path) -> None:
    """The second rank comes when the dataset has grown already."""
    import torch.distributed as dist

    def rank(number: int) -> bool:
        os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2")
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=number, world_size=2)
        if number:
            folder.write({"b": b"later"})
        with folder.open(RecordSamples(1)) as data:
            (tmp_path / f"{number}").write_text(f"{len(data)} {data.digest}")
        dist.destroy_process_group()
        return True

    folder.write({"a": b"1234"})
    children = []
    for number in range(2):
        if (child := os.fork()) == 0:
            with contextlib.suppress(BaseException):
                os._exit(0 if rank(number) else 1)
            os._exit(1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0]
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text()


@pytest.mark.torch
@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumable_loader_reads_ahead_and_begins_anywhere(bucket: Corpus, seed: int, workers: int) -> None:
    assert bucket.server is not None
    bucket.write(files := blobs(seed, 3, 20_000))
    every = records(files)
    given: dict[str, Any] = {"global_batch_size": 10, "seed": seed, "epochs": 2, "collate_fn": list}
    plain = ResumableLoader(every, virtual_shards=4, **given)
    begin = random.Random(seed).randrange(1, len(every) // 10 + 1)
    with bucket.open(RecordSamples(100), ahead_steps=8) as data:
        loader = ResumableLoader(data, virtual_shards=4, num_workers=workers, **given)
        bucket.server.begin()
        steps = loader.shards(begin)
        first = next(steps)
        if not workers:
            deadline = time.monotonic() + 30
            while len(bucket.gets()) < 10 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert len(bucket.gets()) > 4, "more than the shards of the first step"
        rest = [first, *steps]
        assert [(step, [shard.batch for shard in shards]) for step, shards in rest] == [
            (step, [shard.batch for shard in shards]) for step, shards in plain.shards(begin)
        ]
        assert loader.waited_seconds > 0
        assert data.statistics.waited_seconds > 0


def test_a_plain_fork_reads_for_itself(folder: Corpus, seed: int) -> None:
    folder.write(files := blobs(seed, 2, 20_000))
    every = records(files)
    with folder.open(RecordSamples(100)) as data:
        steps = data.batches(global_batch_size=4, seed=seed)
        next(steps)
        child = os.fork()
        if child == 0:
            right = data.__getitems__([3, 5]) == [every[3], every[5]]
            data.close()
            os._exit(0 if right else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        _, samples = next(steps)
        assert set(samples) <= set(every)


def test_a_reader_that_is_killed_is_replaced(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write(files := blobs(seed, 2, 50_000))
    every = records(files)
    with bucket.open(RecordSamples(100)) as data:
        for _ in range(2):
            bucket.server.begin(lambda seen: "slow")
            fetch = data._fetcher.begin(extents := [e for n in (1, 2, len(every) - 1) for e in data._index.extents(n)])
            os.kill(data._connection.pid, signal.SIGKILL)
            fetch.wait()
            assert [fetch.cut(one) for one in extents] == [every[1], every[2], every[-1]]
        os.kill(data._connection.pid, signal.SIGKILL)
        with pytest.raises(Exception, match="ended 3 times, the last time with -9"):
            data[0]


def test_a_reader_may_be_killed_as_often_as_it_was_well_in_between(folder: Corpus, seed: int) -> None:
    folder.write(files := blobs(seed, 1, 50_000))
    every = records(files)
    with folder.open(RecordSamples(100)) as data:
        for _ in range(4):
            os.kill(data._connection.pid, signal.SIGKILL)
            assert all(data[0] == every[0] for _ in range(1000))


def test_a_daemon_that_reads_says_nothing_behind_what_the_script_ended_of(bucket: Corpus, seed: int) -> None:
    """A verdict would read of a dataset that was closed, where the script was told to stop."""
    bucket.write(blobs(seed, 2, 30_000))
    code = """
import pickle, sys, threading
data = pickle.load(sys.stdin.buffer)
read = threading.Event()
def go():
    while True:
        data[7]
        read.set()
threading.Thread(target=go, daemon=True).start()
read.wait()
sys.exit("the last words")
"""
    with bucket.open(RecordSamples(100)) as data:
        given = pickle.dumps(data)
        done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, timeout=60)
    assert done.stderr.decode().splitlines() == ["the last words"]


def test_nobody_waits_for_a_dataset_that_was_closed(bucket: Corpus, seed: int) -> None:
    assert bucket.server is not None
    bucket.write(blobs(seed, 2, 20_000))
    data = bucket.open(RecordSamples(100))
    bucket.server.begin(lambda seen: "slow")
    under_way = data._fetcher.begin(data._index.extents(1))
    data.close()
    for ask in (under_way.wait, lambda: data[0]):
        with pytest.raises(StepError, match="was closed"):
            ask()


NO_FILES = """
import os, resource, signal, sys, argosy
data = argosy.StreamingDataset(sys.argv[1], argosy.RecordSamples(100), index=sys.argv[2])
first, limits = data[0], resource.getrlimit(resource.RLIMIT_NOFILE)
if sys.argv[3] == "forks" and (child := os.fork()):
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
if sys.argv[3] != "forks":
    os.kill(data._connection.pid, signal.SIGKILL)
try:
    data[0]
except Exception as error:
    print(error, flush=True)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
if sys.argv[3] == "forks":
    print(data[0] == first, flush=True)
"""


@pytest.mark.parametrize("how", ["stays", "forks"])
def test_a_process_that_can_start_no_reader_says_so(folder: Corpus, seed: int, how: str) -> None:
    """One that was killed is not replaced; a child that gets none at first reads by its own later, not its parent's."""
    folder.write(blobs(seed, 2, 20_000))
    command = [sys.executable, "-c", NO_FILES, folder.uri, folder.index, how]
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "Too many open files" in out
    assert how == "stays" or out.endswith("True\n")


SCRIPT = """
import sys, argosy
data = argosy.StreamingDataset(sys.argv[1], argosy.RecordSamples(100), index=sys.argv[2])
for step, samples in data.batches(global_batch_size=2, seed=1):
    print(data._connection.pid, flush=True)
    if sys.argv[3] == "end":
        break
"""


@pytest.mark.parametrize("how", ["end", "kill"])
def test_no_reader_outlives_its_script(folder: Corpus, seed: int, how: str) -> None:
    folder.write(blobs(seed, 2, 20_000))
    command = [sys.executable, "-W", "error", "-c", SCRIPT, folder.uri, folder.index, how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        assert script.stderr is not None
        pid = int(script.stdout.readline())
        if how == "kill":
            script.kill()
        _, errors = script.communicate()
        assert (script.returncode, errors) == ((0, "") if how == "end" else (-9, ""))
    assert gone(pid)


def test_torch_is_not_needed(folder: Corpus, seed: int) -> None:
    folder.write(blobs(seed, 1, 20_000))
    code = f"{SCRIPT}\nassert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    command = [sys.executable, "-c", code, folder.uri, folder.index, "end"]
    subprocess.run(command, check=True, capture_output=True)
