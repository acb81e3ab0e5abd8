"""From a uri to verified files: snapshot and stage as processes, on file:// and on S3."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.arguments import SnapshotArgs, StageArgs

Write = Callable[[str, dict[str, bytes]], None]
FILES = {"train/a b+c.bin": b"1" * 100, "train/ü.bin": b"2" * 50, "val/x": b"", "top": b"3"}


def dataset_of(pods: Any) -> str:
    return str(pods.store_uri).rsplit("/", 1)[0] + "/corpus/v1"


def staged(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {key: data for key, data in found.items() if not key.startswith(".argosy-stage")}


def test_snapshot_names_the_version(any_pods: Any, write: Write) -> None:
    uri = dataset_of(any_pods)
    write(uri, FILES)
    first = any_pods.run(SnapshotArgs, dataset_uri=uri)
    assert first.code == 0, first.err
    digest = first.outputs["dataset-digest"]
    assert (first.outputs["objects"], first.outputs["bytes"]) == ("4", "151")
    assert any_pods.json(f"run/datasets/{digest}.json")["uri"] == uri
    assert first.outputs["dataset-manifest-uri"] == f"{any_pods.store_uri}/run/datasets/{digest}.json"
    again = any_pods.run(SnapshotArgs, "wf-2", dataset_uri=uri + "/", version=digest)
    assert again.outputs == first.outputs, "the same dataset, the same digest"
    (event,) = any_pods.events("wf-2", "snapshot_taken")
    facts = {"dataset_digest": digest, "objects": 4, "bytes": 151, "listed": "store"}
    assert event.fields == {**facts, "seconds": event.fields["seconds"]}


def test_pinned_version_that_changed_is_named(any_pods: Any, write: Write) -> None:
    uri = dataset_of(any_pods)
    write(uri, FILES)
    digest = any_pods.run(SnapshotArgs, dataset_uri=uri).outputs["dataset-digest"]
    write(uri, {"top": b"changed", "new": b""})
    told = any_pods.run(SnapshotArgs, dataset_uri=uri, version=digest)
    assert told.code == 78
    assert "s3_missing: dataset changed" in told.err
    assert "1 added (new), 1 changed (top)" in told.err
    ending = json.loads(told.termination)
    assert (ending["cause"], ending["exit_code"]) == ("s3_missing", 78)
    assert ending["message"].startswith("dataset changed: ")
    assert told.outputs == {}


def test_a_dataset_brings_its_own_listing(any_pods: Any, write: Write, tmp_path: Path) -> None:
    uri = dataset_of(any_pods)
    write(uri, {**FILES, "meta/listing.csv": "key,size\ntop,1\ntrain/ü.bin,50\n".encode()})
    told = any_pods.run(SnapshotArgs, dataset_uri=uri, dataset_manifest="meta/listing.csv")
    assert told.code == 0, told.err
    assert (told.outputs["objects"], told.outputs["bytes"]) == ("2", "51")
    (event,) = any_pods.events("wf-1", "snapshot_taken")
    assert event.fields["listed"] == "meta/listing.csv"
    any_pods.env["ARGOSY_MOUNTS"] = json.dumps({"/shared": str(tmp_path / "volume")})
    digest = told.outputs["dataset-digest"]
    given = {"dataset_digest": digest, "mode": "shared", "layout": "replicated", "path": "/shared"}
    assert any_pods.run(StageArgs, **given).code == 0
    assert staged(tmp_path / "volume" / digest) == {key: FILES[key] for key in ("top", "train/ü.bin")}
    wrong = any_pods.run(SnapshotArgs, dataset_uri=uri, dataset_manifest="top")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
    assert "begin with a line key,size" in wrong.err


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"dataset_uri": "ftp://x/y"}, 2, "unknown scheme"),
        ({"dataset_uri": "s3:///x"}, 2, "no bucket"),
        ({"dataset_uri": "/data"}, 2, "a path is no uri; write file:///data"),
        ({"dataset_uri": "/a b%41"}, 2, "write file:///a%20b%2541"),
        ({"dataset_uri": "file:///nowhere/at/all"}, 78, "is empty"),
        ({"dataset_uri": "file:///nowhere", "version": "v1"}, 2, "64 hex digits"),
        ({"dataset_uri": "file:///../etc"}, 2, "'..'"),
    ],
)
def test_wrong_snapshot_is_one_clear_line(given: dict[str, str], code: int, said: str, pods: Any) -> None:
    told = pods.run(SnapshotArgs, **given)
    assert (told.code, told.err.count("\n")) == (code, 1)
    assert said in told.err


@pytest.mark.parametrize("key", ["a\\b", "a\nb", "\x1b[31mred", "x\x7f"])
def test_hostile_key_is_named(key: str, pods: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / key).write_bytes(b"x")
    told = pods.run(SnapshotArgs, dataset_uri=f"file://{tmp_path}/data")
    assert told.code == 2
    assert repr(key) in told.err, "quoted, so that the key cannot write to the terminal"


def take(pods: Any, write: Write) -> str:
    uri = dataset_of(pods)
    write(uri, FILES)
    return str(pods.run(SnapshotArgs, dataset_uri=uri).outputs["dataset-digest"])


def test_shared_fills_the_volume_once(any_pods: Any, write: Write, tmp_path: Path) -> None:
    digest = take(any_pods, write)
    any_pods.env["ARGOSY_MOUNTS"] = json.dumps({"/shared": str(tmp_path / "volume")})
    given = {"dataset_digest": digest, "mode": "shared", "layout": "replicated", "path": "/shared/data"}
    first = any_pods.run(StageArgs, **given)
    assert first.code == 0, first.err
    assert staged(tmp_path / "volume" / "data" / digest) == FILES
    assert first.outputs["bytes"] == "151"
    assert any_pods.run(StageArgs, "wf-2", **given).code == 0
    (event,) = any_pods.events("wf-1", "staged")
    assert (event.fields["bytes"], event.fields["fetched_bytes"]) == (151, 151)
    (event,) = any_pods.events("wf-2", "staged")
    assert (event.fields["bytes"], event.fields["fetched_bytes"]) == (151, 0)
    assert any_pods.events("wf-2", "staging")[-1].fields["objects_total"] == 4


def test_what_was_staged_is_kept_for_the_gang(any_pods: Any, write: Write, tmp_path: Path) -> None:
    any_pods.env["ARGOSY_MOUNTS"] = json.dumps({"/shared": str(tmp_path / "volume")})
    digest = take(any_pods, write)
    given = {"mode": "shared", "layout": "replicated", "path": "/shared", "cache_gib": str(200 / 2**30)}
    assert any_pods.run(StageArgs, dataset_digest=digest, book_seconds="10000", **given).code == 0
    write(f"{tmp_path.as_uri()}/other", {"k": b"x" * 100})
    other = any_pods.run(SnapshotArgs, dataset_uri=f"{tmp_path.as_uri()}/other").outputs["dataset-digest"]
    refused = any_pods.run(StageArgs, "wf-2", dataset_digest=other, **given)
    assert refused.code == 75
    assert "kept for the stage step of wf-1, for 3 h at most" in refused.err
    assert (tmp_path / "volume" / digest).is_dir()
    for wrong, said in (
        ("soon", "--book-seconds: 'soon' is not a finite number"), ("nan", "'nan' is not a finite number"),
        ("-1", "book-seconds = -1: use 0 to 86400"), ("1e9", "book-seconds = 1e+09: use 0 to 86400"),
    ):  # fmt: skip
        told = any_pods.run(StageArgs, dataset_digest=digest, book_seconds=wrong, **given)
        assert (told.code, told.err.count("\n")) == (2, 1)
        assert said in told.err


def test_node_writes_the_plan(any_pods: Any, write: Write) -> None:
    digest = take(any_pods, write)
    told = any_pods.run(StageArgs, dataset_digest=digest, mode="node", layout="sharded", nnodes=2)
    assert told.code == 0, told.err
    plan = any_pods.json(told.outputs["plan-uri"].removeprefix(any_pods.store_uri + "/"))
    assert plan["dataset_digest"] == digest
    assert sum(node["bytes"] for node in plan["nodes"]) == 151
    assert [node["node_rank"] for node in plan["nodes"]] == [0, 1]


def test_stream_reads_every_object(any_pods: Any, write: Write) -> None:
    digest = take(any_pods, write)
    assert any_pods.run(StageArgs, dataset_digest=digest, mode="stream", layout="sharded").code == 0


@pytest.mark.parametrize("mode", ["shared", "node", "stream"])
def test_data_that_changed_after_the_snapshot_stops_every_mode(mode: str, any_pods: Any, write: Write) -> None:
    digest = take(any_pods, write)
    write(dataset_of(any_pods), {"top": b"other"})
    told = any_pods.run(StageArgs, dataset_digest=digest, mode=mode, layout="replicated", path="/argosy/data")
    assert (told.code, told.outputs) == (78, {})
    assert "dataset changed" in told.err
    assert ("/top is no longer version" if mode == "shared" else "(top)") in told.err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mode": "teleport"}, "mode = 'teleport'"),
        ({"mode": "shared"}, "path: "),
        ({"layout": "halves"}, "layout = 'halves'"),
        ({"nnodes": 0}, "nnodes = 0"),
        ({"dataset_digest": "../../x"}, "64 hex digits"),
    ],
)
def test_wrong_stage_is_one_clear_line(given: dict[str, Any], said: str, pods: Any) -> None:
    usual = {"dataset_digest": "0" * 64, "mode": "node", "layout": "sharded"}
    told = pods.run(StageArgs, **usual | given)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert said in told.err


def test_unknown_digest_is_missing(pods: Any) -> None:
    told = pods.run(StageArgs, dataset_digest="0" * 64, mode="node", layout="sharded")
    assert told.code == 78
    assert "run snapshot first" in told.err


def test_stage_killed_and_run_again(pods: Any, write: Write, tmp_path: Path) -> None:
    draw = random.Random(5)
    files = {f"f{i:04d}": draw.randbytes(20_000) for i in range(600)}
    uri = f"file://{tmp_path}/many"
    for key, data in files.items():
        (tmp_path / "many").mkdir(exist_ok=True)
        (tmp_path / "many" / key).write_bytes(data)
    digest = pods.run(SnapshotArgs, dataset_uri=uri).outputs["dataset-digest"]
    given = {"dataset_digest": digest, "mode": "shared", "layout": "replicated", "path": str(tmp_path / "in")}
    pods.env["ARGOSY_MOUNTS"] = json.dumps({str(tmp_path / "in"): str(tmp_path / "in")})
    folder = tmp_path / "in" / digest
    child, _ = pods.start(StageArgs, **given)
    while child.poll() is None and not (folder / "f0100").exists():
        pass
    child.kill()
    child.communicate()
    assert child.returncode == -9
    assert 0 < len(staged(folder)) < 600
    assert pods.run(StageArgs, "wf-2", **given).code == 0
    assert staged(folder) == files
    (event,) = pods.events("wf-2", "staged")
    assert event.fields["fetched_bytes"] < event.fields["bytes"]
    assert list((folder / ".argosy-stage" / "parts").iterdir()) == []
