"""Every kind of samples is what was written, whatever the sizes."""

from __future__ import annotations

import io
import json
import random
import tarfile
from pathlib import Path

import pytest

from argosy import ArchiveSamples, LineSamples, RecordSamples
from tests.stream.conftest import Corpus


def archive(members: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=form) as target:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            target.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def test_objects(folder: Corpus, seed: int) -> None:
    draw = random.Random(seed)
    files = {f"d{i % 3}/{i:03}.x": draw.randbytes(draw.choice([0, 1, 5000, 65536, 200_000])) for i in range(40)}
    folder.write(files)
    with folder.open() as data:
        found = data.__getitems__(list(range(len(data))))
        assert data[-1] == found[-1]
        with pytest.raises(IndexError):
            data[len(data)]
        with pytest.raises(IndexError, match="samples -1 to 3 of 40"):
            data.__getitems__([3, -1])
    assert {one["__key__"]: one["data"] for one in found} == files


def test_records_after_a_header(folder: Corpus, seed: int) -> None:
    draw = random.Random(seed)
    files = {f"{i}": draw.randbytes(draw.randrange(16, 300_000)) for i in range(4)}
    folder.write({**files, "README": b"no records"})
    with folder.open(RecordSamples(1000, header_bytes=16, drop_partial=True), match="?") as data:
        assert len(data) == sum((len(one) - 16) // 1000 for one in files.values())
        found = data.__getitems__(order := draw.sample(range(len(data)), len(data)))
    every = [one[at : at + 1000] for one in files.values() for at in range(16, len(one) - 999, 1000)]
    assert found == [every[number] for number in order]


def test_lines(folder: Corpus, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    # A window of a few bytes: lines, blank ones too, begin and end in it in every way.
    monkeypatch.setattr("argosy.steps.stream.samples._WINDOW", 7)
    texts = [
        b"".join(draw.choice([b"", b" ", b"\r", b'{"a": 1}', b"xy z", b"  long" * 5]) + b"\n" for _ in range(20))[:cut]
        for cut in (-1, 500, 0, 1)
    ]
    folder.write({f"{i}.jsonl": text for i, text in enumerate(texts)})
    with folder.open(LineSamples()) as data:
        found = data.__getitems__(list(range(len(data))))
    assert found == [line for text in texts for line in text.split(b"\n") if line.strip()]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_as_webdataset_reads_them(folder: Corpus, seed: int, form: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    expected, shards = [], {}
    for shard in range(3):
        members = {"./meta": b"no extension, so no sample", ".hidden": b"nor this"}
        for i in range(draw.randrange(1, 30)):
            stem = f"train/{shard}/{i:04}" + ("" if form == tarfile.USTAR_FORMAT else "-long" * draw.choice([0, 30]))
            parts = {"jpg": draw.randbytes(draw.choice([0, 1, 511, 512, 70_000])), "seg.png": b"s", "cls": b"%d" % i}
            members |= {f"{stem}.{name}": data for name, data in parts.items()}
            expected.append({"__key__": stem, **parts})
        shards[f"{shard:03}.tar"] = archive(members, form)
    folder.write(shards)
    with folder.open(ArchiveSamples(), decode=lambda sample: sample) as data:
        assert data.__getitems__(list(range(len(data)))) == expected
    kept = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert {suffix[:8] for suffix in kept} == {".tar", ".json", ".blocks", ".samples"}, "nothing was unpacked"


def test_the_headers_alone_are_read_once(bucket: Corpus, seed: int) -> None:
    """``etag``, so that nothing else is read: one request for what is small, and not again by the next process."""
    draw = random.Random(seed)
    members = {f"{i}.bin": draw.randbytes(1 << 20) for i in range(6)}
    bucket.write({"a.tar": archive(members), "b.tar": archive({f"{i}.txt": b"x" for i in range(200)})})
    with bucket.open(ArchiveSamples(), verify="etag") as data:
        assert len(data) == 206
        assert data.statistics.fetched_bytes < 3 << 20, "not the bodies of the large ones"
        assert data[3] == {"__key__": "3", "bin": members["3.bin"]}
        assert data.statistics.bytes == 1 << 20, "a header is no sample"
        digest = data.digest
    assert bucket.server is not None
    bucket.server.begin()
    with bucket.open(ArchiveSamples(), verify="etag", digest=digest) as again:
        assert len(again) == 206
        assert bucket.gets() == []


def test_samples_are_decoded(folder: Corpus) -> None:
    folder.write({"a.jsonl": b'{"text": "one"}\n{"text": "two"}\n'})
    with folder.open(LineSamples(), decode=json.loads) as data:
        assert [data[0], data[1]] == [{"text": "one"}, {"text": "two"}]
