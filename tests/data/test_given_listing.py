"""A listing that somebody gives: the same manifest as the store's own, and no request for it but one."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import DataObject, DatasetManifest

CRC = "crc64nvme:" + "A" * 11 + "="
OBJECTS = [
    DataObject("a,b", 1, '"e1"', "v1", CRC),
    DataObject('q"q', 2, '"e2"'),
    DataObject("ü/日本", 10**15, "", "", "sha256:" + "0" * 64),
]


def rows(objects: list[DataObject]) -> list[list[object]]:
    return [[one.key, one.size, one.etag, one.version, one.checksum] for one in objects]


def as_csv(objects: list[DataObject]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([["key", "size", "etag", "version", "checksum"], *rows(objects)])
    return text.getvalue().encode()


def as_lines(objects: list[DataObject]) -> bytes:
    return b"".join(one.line() + b"\n" for one in objects)


def as_documents(objects: list[DataObject]) -> bytes:
    names = ["key", "size", "etag", "version", "checksum"]
    found = (dict(zip(names, row, strict=True)) for row in rows(objects))
    return "\n".join(json.dumps({name: cell for name, cell in row.items() if cell != ""}) for row in found).encode()


Listing = Callable[[bytes], DatasetManifest]


@pytest.fixture
def listing(tmp_path: Path) -> Listing:
    """Snapshot of ``s3://b/p``, which nobody can reach, from a listing of these bytes."""

    def read(raw: bytes) -> DatasetManifest:
        (tmp_path / "listing").write_bytes(raw)
        return take_snapshot("s3://b/p", f"file://{tmp_path}/listing")

    return read


@pytest.mark.parametrize("form", [as_csv, as_lines, as_documents])
@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_every_form_gives_the_same_manifest(
    form: Callable[[list[DataObject]], bytes], packed: Callable[[bytes], bytes], listing: Listing
) -> None:
    manifest = listing(packed(form(OBJECTS[::-1])))
    assert list(manifest) == OBJECTS
    assert manifest == DatasetManifest.of("s3://b/p", OBJECTS)


def test_columns_may_be_few_and_in_any_order(listing: Listing) -> None:
    assert list(listing(b"Size,Other,Key\r\n3,x,a\r\n\r\n4,,b\r\n")) == [DataObject("a", 3), DataObject("b", 4)]


def test_etags_without_quotes_are_the_same_etags(listing: Listing) -> None:
    assert next(iter(listing(b"key,size,etag\na,3,abc\n"))).etag == '"abc"'


def test_markers_and_folders_in_it_are_no_data(listing: Listing) -> None:
    assert [one.key for one in listing(b'["a",1]\n["_READY",0]\n["d/",0]\n["d/_SUCCESS",0]\n')] == ["a"]


def test_it_may_lie_below_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "l.csv").write_bytes(b"key,size\nx,1\n")
    assert [one.key for one in take_snapshot(f"file://{tmp_path}", "meta/l.csv")] == ["x"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"\n", "names no object"),
        (b"key,size,key\na,1,b\n", "'key' twice"),
        (b"[" * 100_000, "recursion"),
        (b'{"a":' * 100_000, "recursion"),
        (b"name,length\na,1\n", "key,size"),
        (b"key,size\na\n", "line 2: 1 cells"),
        (b"key,size\na,-1\n", "'-1'"),
        (b"key,size\na,ten\n", "'ten'"),
        (b'key,size\n"a,1\n', "line 2"),
        (b'["a",1]\n{"key":\n', "line 2"),
        (b'["a",true]\n', "size = True"),
        (b'["a",1,"","","md5:x"]\n', "no checksum"),
        (b'["a",1,2]\n', "texts"),
        (b'["a",1]\n"b"\n', "no row"),
        (b'["../a",1]\n', "would leave"),
        (b'["a",1]\n["a",1]\n', "'a'"),
        (b'["a",1]\n["a/b",1]\n', "folder"),
        (b"key,size\n\xff,1\n", "UTF-8"),
        (gzip.compress(b"key,size\na,1\n", mtime=0)[:-6], "gzip"),
    ],
)
def test_what_is_wrong_is_named(raw: bytes, said: str, listing: Listing) -> None:
    with pytest.raises((InputError, StepError)) as caught:
        listing(raw)
    assert said in str(caught.value)


def test_an_empty_listing_is_no_dataset(listing: Listing) -> None:
    with pytest.raises(StepError, match="names no object"):
        listing(b"key,size\n")
    with pytest.raises(StepError, match="names no object"):
        listing(gzip.compress(b""))


@pytest.mark.parametrize(
    "raw", [b"\xef\xbb\xbfkey,size\na,1\n", b'\xef\xbb\xbf{"key": "a", "size": 1}\n', b"\n\nkey,size\na,1"]
)
def test_what_spreadsheets_put_before_it_is_no_part_of_it(raw: bytes, listing: Listing) -> None:
    assert list(listing(raw)) == [DataObject("a", 1)]


def test_a_path_is_no_listing() -> None:
    with pytest.raises(InputError, match=r"'/tmp/a b.csv': neither .*file:///tmp/a%20b.csv"):
        take_snapshot("s3://b/p", "/tmp/a b.csv")


def test_an_absent_listing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"nowhere\.csv, where the listing is to be; a name"):
        take_snapshot("s3://b/p", f"file://{tmp_path}/nowhere.csv")


INVENTORY = {
    "sourceBucket": "b", "destinationBucket": "arn:aws:s3:::reports", "fileFormat": "CSV",
    "fileSchema": "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, ETag",
    "files": [{"key": "data/1.csv.gz"}, {"key": "data/2.csv.gz"}],
}  # fmt: skip


@pytest.fixture
def inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., DatasetManifest]:
    """Snapshot of ``s3://b/p`` from an inventory whose files lie in a bucket on the server of tests/s3."""
    from tests.s3 import S3Server

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")

    def read(files: list[str], /, **changed: object) -> DatasetManifest:
        with S3Server(("reports",)) as server:
            monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
            bucket = server.buckets["reports"]
            for number, text in enumerate(files, 1):
                bucket.put(f"data/{number}.csv.gz", gzip.compress(text.encode()))
            bucket.put("manifest.json", json.dumps({**INVENTORY, **changed}).encode())
            return take_snapshot("s3://b/p", "s3://reports/manifest.json")

    return read


def test_an_inventory_of_s3(inventory: Callable[..., DatasetManifest]) -> None:
    first = '"b","p/x+y%2Cz","v2","true","false","5","aa"\n"b","p/x+y%2Cz","v1","false","false","4","bb"\n'
    second = (
        '"b","other/a","","true","false","5","cc"\n"b","p/gone","v9","true","true","",""\n'
        '"b","p/a","","true","false","7","dd"\n'
    )
    assert list(inventory([first, second])) == [DataObject("a", 7, '"dd"'), DataObject("x y,z", 5, '"aa"', "v2")]


@pytest.mark.parametrize("changed", [{"fileFormat": "ORC"}, {"fileSchema": "Bucket, Key"}, {"sourceBucket": "other"}])
def test_an_inventory_that_does_not_fit_is_refused(
    changed: dict[str, str], inventory: Callable[..., DatasetManifest]
) -> None:
    with pytest.raises(InputError, match=r"inventory is"):
        inventory([], **changed)


@pytest.mark.parametrize(
    ("lines", "changed"),
    [([], {"files": [{}]}), (['"b","p/x"\n"' + "x" * 200_000], {})],
)
def test_an_inventory_that_is_damaged_is_named(
    lines: list[str], changed: dict[str, object], inventory: Callable[..., DatasetManifest]
) -> None:
    with pytest.raises(InputError, match=r"files has '{}'|inventory data/1\.csv\.gz, line"):
        inventory(lines, **changed)
