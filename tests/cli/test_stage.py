"""``argosy stage`` as people use it: a bucket, a folder, an interruption, a mistake."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.s3 import S3Server

Argosy = Callable[..., tuple[int, str, str]]
BUCKET = "argosy-tests"


@cache
def contents() -> dict[str, bytes]:
    drawn = random.Random(7)
    return {f"part-{n % 3}/{n}.bin": drawn.randbytes(2000) for n in range(60)} | {
        "large.tar": drawn.randbytes(40 << 20)
    }


class Source:
    """A bucket with small objects and one that is fetched in ranges."""

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self.uri = f"s3://{BUCKET}/d"
        self.objects = contents()
        for key, data in self.objects.items():
            server.buckets[BUCKET].put(f"d/{key}", data)

    def sent(self) -> int:
        """Requests for objects since the log began."""
        return sum(1 for seen in self.server.requests if seen.operation == "GetObject")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> Iterator[Source]:
    with S3Server() as server:
        for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server.endpoint)
        monkeypatch.setenv("AWS_PROFILE", "so that it is put back")
        monkeypatch.delenv("AWS_PROFILE")
        yield Source(server)


def files(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {key: path.read_bytes() for key, path in found.items() if not key.startswith(".argosy-stage/")}


def test_a_dataset_comes_and_is_not_fetched_again(source: Source, argosy: Argosy, tmp_path: Path) -> None:
    into = tmp_path / "data"
    code, out, _ = argosy("stage", source.uri, str(into), "--dry-run")
    assert (code, into.exists()) == (0, False)
    assert "would fetch 61 objects" in out
    code, out, _ = argosy("stage", source.uri, str(into), "--json")
    told = json.loads(out)
    assert (code, told["fetched_objects"], told["bytes"]) == (0, 61, sum(map(len, source.objects.values())))
    assert files(into) == source.objects
    source.server.begin()
    code, out, _ = argosy("stage", source.uri, str(into))
    assert (code, source.sent()) == (0, 0)
    assert "fetched 0 objects, 0 B; 61 objects had been there" in out


def test_what_it_removes_is_counted(source: Source, argosy: Argosy, tmp_path: Path) -> None:
    into = tmp_path / "data"
    assert "removed" not in argosy("stage", source.uri, str(into))[1]
    narrower = ("stage", source.uri, str(into), "--include", "part-*")
    code, out, _ = argosy(*narrower)
    gone = len(source.objects) - len(files(into))
    assert (code, gone > 0, out.endswith(f" had been there; removed {gone} file{'s' * (gone > 1)} of before\n")) == (
        *(0, True, True),
    )
    assert json.loads(argosy(*narrower, "--json")[1])["removed"] == 0


def test_only_what_is_wanted(source: Source, argosy: Argosy, tmp_path: Path) -> None:
    into = tmp_path / "data"
    options = ("--include", "part-*", "--exclude", "*/1?.bin")
    assert argosy("stage", source.uri, str(into), *options)[0] == 0
    wanted = {key for key in source.objects if key.startswith("part-") and not (len(key) == 13 and key[7] == "1")}
    assert set(files(into)) == wanted
    shares = [tmp_path / "0", tmp_path / "1"]
    for number, share in enumerate(shares):
        assert argosy("stage", source.uri, str(share), "--share", f"{number}/2")[0] == 0
    parts = [set(files(share)) for share in shares]
    assert not parts[0] & parts[1]
    assert parts[0] | parts[1] == set(source.objects)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_stopped_in_the_middle_it_goes_on(how: int, source: Source, argosy: Argosy, tmp_path: Path) -> None:
    into = tmp_path / "data"
    source.server.slow_seconds = 30.0
    # The second range of the large object, whatever else was asked before it.
    source.server.plan = lambda seen: "slow" if "=16777216-" in seen.range else ""
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "stage", source.uri, str(into)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as staging:
        deadline = time.monotonic() + 60
        while len(files(into)) < 60 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(staging.pid, how)
        _, err = staging.communicate(timeout=60)
    assert staging.returncode == (-how if how == signal.SIGKILL else 130)
    if how == signal.SIGINT:
        assert f"argosy stage {source.uri} {into} (with the same options) goes on" in err
        assert "Traceback" not in err
    source.server.begin()
    code, out, _ = argosy("stage", source.uri, str(into), "--json")
    told = json.loads(out)
    assert (code, files(into) == source.objects) == (0, True)
    assert told["fetched_objects"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["s3://argosy-tests/nothing", "X"], 78, "no object lies below"),
        (["s3://argosy-tests/d/large", "X"], 78, "no key begins with 'd/large/'"),
        (["s3://argosy-tests/d/large.tar", "X"], 78, "it is an object: name s3://argosy-tests/d, and choose it by"),
        (
            ["s3://argosy-tests/d", "X", "--include", "*.none"],
            78,
            "lies below this uri that --include and --exclude want",
        ),
        (["ftp://x/y", "X"], 2, "unknown scheme"),
        (["s3://argosy-tests/d", "X", "--share", "2/2"], 2, "--share"),
        (["s3://argosy-tests/d", "X", "--include", ""], 2, "--include"),
        (["s3://argosy-tests/d", "X", "--endpoint-url", "localhost:9000"], 2, "--endpoint-url"),
        (["s3://argosy-tests/d", "X", "--ca-bundle", "/dev/null"], 2, "--ca-bundle"),
        (["s3://argosy-tests/d", "X", "--profile", "nope"], 78, "nope"),
        (["s3://argosy-tests/d", "X", "--digest", "0" * 64], 2, "--digest 000000000000"),
        (["s3://argosy-tests/d", "X", "--digest", "abc"], 2, "64 hex digits"),
        (["s3://argosy-tests/d", "FOREIGN"], 2, "which staging did not put there"),
        (["s3://argosy-tests/d", "FOREIGN", "--dry-run"], 2, "which staging did not put there"),
    ],
)
def test_mistakes_are_named(
    arguments: list[str], code: int, words: str, source: Source, argosy: Argosy, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    places = {"X": str(tmp_path / "data"), "FOREIGN": str(foreign)}
    found, _, err = argosy("stage", *(places.get(argument, argument) for argument in arguments))
    assert (found, words in err, "Traceback" in err) == (code, True, False)
    assert (foreign / "thesis.tex").read_text() == "mine"
    assert not files(tmp_path / "data")


@pytest.mark.parametrize("where", ["notes.txt", "part-0/tokens.idx"])
def test_what_somebody_put_there_since_is_not_removed(where: str, source: Source, argosy: Argosy, tmp_path) -> None:
    into = tmp_path / "data"
    assert argosy("stage", source.uri, str(into), "--include", "part-0/*")[0] == 0
    (into / where).write_text("mine")
    assert argosy("stage", source.uri, str(into), "--include", "part-0/*")[0] == 0
    before = files(into)
    code, _, err = argosy("stage", source.uri, str(into), "--include", "part-1/*")
    assert (code, files(into)) == (2, before)
    assert f"holds '{where}', which staging did not put there: move it" in err
    (into / where).unlink()
    code, _, _ = argosy("stage", source.uri, str(into), "--include", "part-1/*")
    assert (code, {key.split("/")[0] for key in files(into)}) == (0, {"part-1"})


def test_the_code_goes_where_the_run_says_that_its_bucket_is(source, argosy, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "so that it is put back")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    (tmp_path / "train.py").write_text("")
    (tmp_path / "run.toml").write_text(
        f'name = "r"\nscript = "train.py"\nstorage = {{uri = "s3://{BUCKET}/runs"}}\n'
        f'[env]\nAWS_ENDPOINT_URL = "{source.server.endpoint}"\n'
    )
    code, _, err = argosy("compile", "run.toml", "--push", "-o", "w.yaml")
    assert code == 0, err
    assert any(seen.operation == "PutObject" and "runs/r/code/" in str(seen) for seen in source.server.requests)
    monkeypatch.delenv("AWS_ENDPOINT_URL")


def test_a_folder_in_the_dataset_itself_is_refused(argosy, tmp_path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a").write_text("x")
    for folder in ("data", "data/staged"):
        code, _, err = argosy("stage", f"file://{tmp_path}/data", folder)
        assert code == 2
        assert f"FOLDER {folder}: lies in the dataset file://{tmp_path}/data" in err
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["a"]


@pytest.mark.parametrize("size", [3, 30])
def test_a_listing_with_another_size_than_the_file_has(size: int, argosy, tmp_path) -> None:
    """Without an ETag in the listing the size is all that tells: a longer file was cut off without a word."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/a").write_text("0123456789")
    (tmp_path / "keys.jsonl").write_text(json.dumps({"key": "a", "size": size}))
    code, _, err = argosy("stage", f"file://{tmp_path}/data", "out", "--listing", f"file://{tmp_path}/keys.jsonl")
    assert code == 78
    assert f"s3_missing: dataset changed: file://{tmp_path}/data/a has 10 bytes, not {size}" in err
    assert not (tmp_path / "out/a").exists()
