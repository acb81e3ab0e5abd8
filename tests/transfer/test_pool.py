"""Worker processes: they die and are replaced, they end with their parent, and they leave nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.store import open_store
from argosy.steps.store.base import StoreError
from argosy.steps.transfer import crc
from argosy.steps.transfer.piece import Arrived, Failed, Piece
from argosy.steps.transfer.pool import FetchPool
from argosy.steps.transfer.processors import usable, workers_for
from tests.s3 import S3Server, at, on
from tests.transfer.conftest import BUCKET, Folder, Put, both, drain

URI = f"s3://{BUCKET}"


def wait_for(seen: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_files_of_a_folder(folder: Folder, tmp_path: Path) -> None:
    source = tmp_path / "source" / "deep"
    source.mkdir(parents=True)
    data = os.urandom(3_000_000)
    (source / "a b").write_bytes(data)
    (source / "empty").touch()
    uri = f"file://{tmp_path}/source"
    known = {info.key: info for info in open_store(uri).list("")}
    etag = known["deep/a b"].etag
    pieces = [
        Piece(0, "deep/a b", len(data), etag, "", 1_500_000, 1_500_000, "x", "crc32c"),
        Piece(1, "deep/a b", len(data), etag, "", 0, 1_500_000, "x"),
        Piece(2, "deep/empty", 0, known["deep/empty"].etag, "", 0, 0, "e"),
        Piece(3, "deep/gone", 5, "", "", 0, 5, "g"),
        Piece(4, "deep/a b", len(data), "older", "", 0, len(data), "o"),
        Piece(5, "../deep/a b", len(data), "", "", 0, len(data), "p"),
        Piece(6, "deep/a b", len(data) + 5, etag, "", 0, len(data) + 5, "q"),
    ]
    told = folder.fetch(uri, pieces)
    half = data[1_500_000:]
    assert told[0] == Arrived(0, {name: crc.crc(name, half) for name in ("crc64nvme", "crc32c")})
    assert folder.read("x") == data
    assert folder.read("e") == b""
    causes = [result.error.cause for number in range(3, 7) if isinstance(result := told[number], Failed)]
    assert causes == [Cause.S3_MISSING, Cause.S3_MISSING, Cause.DATA_CORRUPT, Cause.DATA_CORRUPT]


@both
def test_what_is_there_is_not_truncated(folder: Folder, put: Put) -> None:
    data = os.urandom(1000)
    (folder.path / "p").write_bytes(b"\0" * 500 + data[500:])
    assert isinstance(folder.fetch(URI, [put("k", data, 0, 500, part="p")])[0], Arrived)
    assert folder.read("p") == data


def test_a_part_is_never_written_through_a_link(folder: Folder, put: Put, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (folder.path / "p").symlink_to(tmp_path / "outside")
    result = folder.carry(URI, [put("k", b"theirs", part="p")])[0]
    assert isinstance(result, Failed)
    assert (tmp_path / "outside").read_bytes() == b"mine"


@both
def test_a_full_disk_is_said(server: S3Server, folder: Folder, put: Put) -> None:
    """A limit on file sizes stands for the disk: the kernel refuses the write in both cases."""
    piece = put("k", b"x" * 3_000_000)
    code = (
        "import resource, signal, os, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
        "from argosy.steps.transfer.pool import FetchPool\n"
        "from argosy.steps.transfer.piece import Piece\n"
        "with FetchPool(sys.argv[1], os.open(sys.argv[2], os.O_RDONLY)) as pool:\n"
        f"    pool.submit([{piece!r}])\n"
        "    while not (told := pool.results(1)): pass\n"
        "    print(told[0].error.cause, told[0].error)\n"
    )
    out = subprocess.run([sys.executable, "-c", code, URI, folder.path], capture_output=True, text=True, timeout=60)
    assert f"cannot write {folder.path}/{piece.part}: File too large" in out.stdout, out.stderr
    assert len(server.requests) == 1


def test_room_is_bounded_and_comes_back(folder: Folder, put: Put) -> None:
    with FetchPool(URI, folder.handle, workers=2) as pool:
        room = pool.room()
        assert 64 <= room <= 2000
        pool.submit([put(f"k{number}", b"1") for number in range(room)])
        assert pool.room() == 0
        done = 0
        while done < room:
            done += len(pool.results(1.0))
        assert pool.room() >= room
        assert pool.bytes_in_flight >= 0


@both
def test_a_killed_worker_is_replaced(server: S3Server, folder: Folder, put: Put) -> None:
    """Its pieces are fetched by another, each gives one result, and the bytes are right."""
    server.slow_seconds = 1.0
    datas = [os.urandom(50_000) for _ in range(60)]
    pieces = [put(f"k{number}", data) for number, data in enumerate(datas)]
    server.begin(at(10, "slow", 30))
    with FetchPool(URI, folder.handle, workers=2) as pool:
        pool.submit(pieces)
        wait_for(lambda: len(server.requests) > 20)
        killed = pool.pids[0]
        os.kill(killed, signal.SIGKILL)
        told = {}
        while len(told) < len(pieces):
            for result in pool.results(1.0):
                assert result.number not in told
                told[result.number] = result
        assert killed not in pool.pids
        assert len(pool.pids) == 2
    for piece, data in zip(pieces, datas, strict=True):
        assert isinstance(told[piece.number], Arrived)
        assert folder.read(piece.part) == data


def test_a_piece_that_kills_is_given_up(server: S3Server, folder: Folder, put: Put) -> None:
    server.slow_seconds = 30.0
    piece = put("k", os.urandom(50_000))
    server.begin(on("GetObject", "slow", times=99))
    killed = set()
    with FetchPool(URI, folder.handle, workers=1) as pool:
        pool.submit([piece])
        while not (told := pool.results(0.05)):
            if len(server.requests) > len(killed) and pool.pids[0] not in killed:
                killed.add(pool.pids[0])
                os.kill(pool.pids[0], signal.SIGKILL)
        server.begin()
        after = put("fine", b"1")
        assert isinstance(drain(pool, [after])[after.number], Arrived)
    (result,) = told
    assert isinstance(result, Failed)
    assert result.error.cause == Cause.NATIVE_CRASH
    assert "3 workers died while 'k'" in str(result.error)
    assert "signal 9" in str(result.error)
    assert len(killed) == 3


def test_workers_that_cannot_start_are_not_started_for_ever(
    server: S3Server, folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "hmac.py").write_text("raise SystemExit(7)")
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path / "broken"), *sys.path[1:]])
    with FetchPool(URI, folder.handle) as pool:
        told = drain(pool, [Piece(0, "k", 1, "", "", 0, 1, "k")])
        assert isinstance(told[0], Failed)
        assert "exit code 7" in str(told[0].error)
        with pytest.raises(StoreError, match=r"end before they begin \(exit code 7\)"):
            wait_for(lambda: pool.results(1.0))


_PARENT = """
import os, sys, time
from argosy.steps.transfer.pool import FetchPool
from argosy.steps.transfer.piece import Piece
pool = FetchPool(sys.argv[1], os.open(sys.argv[2], os.O_RDONLY), workers=2).__enter__()
pool.submit([Piece(n, "k", 100_000, "", "", 0, 100_000, str(n)) for n in range(4)])
if sys.argv[3] == "fork" and os.fork() == 0:
    time.sleep(60)      # holds the pipes open: their end is not to be relied on
print(*pool.pids, os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("child", ["none", "fork"])
@pytest.mark.parametrize("scheme", ["s3", "file"])
def test_workers_end_with_their_parent(
    server: S3Server, folder: Folder, put: Put, tmp_path: Path, scheme: str, child: str
) -> None:
    server.slow_seconds = 30.0
    put("k", os.urandom(100_000))
    server.begin(on("GetObject", "slow", times=99))
    uri = URI if scheme == "s3" else f"file://{tmp_path}"
    before = set(tmp_path.rglob("*"))
    command = [sys.executable, "-c", _PARENT, uri, str(folder.path), child]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()[:2]]
        if scheme == "s3":
            wait_for(lambda: len(server.requests) == 4)
        parent.kill()
        try:
            wait_for(lambda: not any(alive(pid) for pid in pids), 5.0)
        finally:
            if child == "fork":
                os.killpg(parent.pid, signal.SIGKILL)
    assert {path.parent for path in set(tmp_path.rglob("*")) - before} <= {folder.path}


def test_a_thread_that_cannot_go_on_ends_its_worker(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that does not load shows with the first bytes: whoever waits for them must hear of it."""
    (tmp_path / "broken" / "awscrt").mkdir(parents=True)
    (tmp_path / "broken" / "awscrt" / "__init__.py").write_text("raise ImportError('no such library')")
    monkeypatch.setattr(sys, "path", [sys.path[0], str(tmp_path / "broken"), *sys.path[1:]])
    (tmp_path / "k").write_bytes(b"1")
    results, end = list[Arrived | Failed](), time.monotonic() + 60
    with FetchPool(f"file://{tmp_path}", folder.handle) as pool:
        pool.submit([Piece(0, "k", 1, "", "", 0, 1, "k")])
        while not results and time.monotonic() < end:
            results = pool.results(1.0)
    assert isinstance(results[0], Failed)
    assert results[0].error.cause == Cause.NATIVE_CRASH


@both
def test_leaving_the_pool_ends_its_workers(server: S3Server, folder: Folder, put: Put) -> None:
    server.slow_seconds = 30.0
    piece = put("k", os.urandom(100_000))
    server.begin(on("GetObject", "slow"))
    with FetchPool(URI, folder.handle, workers=2) as pool:
        pool.submit([piece])
        wait_for(lambda: server.requests)
        pids = pool.pids
        began = time.monotonic()
    assert not any(alive(pid) for pid in pids)
    assert time.monotonic() - began < 15
    assert [path.name for path in folder.path.iterdir()] in ([], [piece.part])


def test_a_worker_imports_only_what_it_needs(server: S3Server) -> None:
    code = (
        "import sys, argosy.steps.transfer.worker, argosy.steps.transfer.s3_worker\n"
        "from argosy.steps.transfer.site import Site\n"
        "Site('s3://b').request('GET', 'k')\n"
        "print([name for name in ('boto3', 'botocore', 'obstore', 'torch', 'asyncio', 'http.client', 'numpy') "
        "if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert out.stdout.strip() == "[]"


def test_workers_are_counted_by_the_processors_that_may_be_used() -> None:
    for processors, expected in ((0.5, 1), (1, 1), (2, 2), (4, 4), (7.5, 7), (64, 8)):
        assert workers_for("s3://b", processors) == expected
        assert workers_for("file:///x", processors) == 1
    assert 0 < usable() <= len(os.sched_getaffinity(0))
