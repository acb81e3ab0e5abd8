"""An archive is input from whoever can write to the bucket: what is not a plain file below the root is named."""

from __future__ import annotations

import contextlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy import ArchiveSamples
from argosy.steps.contract.errors import StepError
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.stream.catalogue import Catalogue
from argosy.steps.stream.samples import Read
from tests.stream.conftest import Corpus
from tests.stream.test_samples import archive

GOOD = archive({"a.txt": b"good", "b.txt": b"x" * 2000})


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> bytes:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.size = kind, link, size
    return GOOD[: 1024 + 512 + 2048] + made.tobuf(tarfile.GNU_FORMAT) + bytes(size) + bytes(-size % 512) + bytes(1024)


HOSTILE: dict[str, tuple[bytes, str]] = {
    "symbolic link": (member("s.txt", tarfile.SYMTYPE, "/etc/passwd"), "'s.txt' is a symbolic link"),
    "hard link": (member("h.txt", tarfile.LNKTYPE, "a.txt"), "'h.txt' is a hard link"),
    "device": (member("d.txt", tarfile.CHRTYPE), "'d.txt' is a device"),
    "pipe": (member("p.txt", tarfile.FIFOTYPE), "'p.txt' is a named pipe"),
    "sparse": (member("sp.txt", tarfile.GNUTYPE_SPARSE), "'sp.txt' is a sparse file"),
    "absolute": (member("/etc/passwd.txt"), "'/etc/passwd.txt' is refused: it has an empty folder name"),
    "above": (member("x/../../up.txt"), "'x/../../up.txt' is refused: the folder name '..' would leave"),
    "folder above": (member("../up", tarfile.DIRTYPE), "'../up' is refused"),
    "backslash": (member("..\\up.txt"), "is refused: it has a backslash"),
    "control": (member("a\x1b[31m.txt"), "is refused: it has a control character"),
    "twice": (member("b.txt"), "two members 'b.txt' in one sample"),
    "beyond the end": (member("long.txt", size=512)[:-1300], "'long.txt' goes on after the archive's end"),
    "garbage in the middle": (
        GOOD[:1024] + b"garbage!" * 64 + GOOD[1536:],
        "no header and no end of the archive at byte",
    ),
    "joined": (GOOD + archive({"c.txt": b"never read"}), "something follows its end at byte"),
    "no archive": (b"PK\x03\x04" + bytes(600), "data.tar"),
    "compressed": (b"\x1f\x8b" + bytes(range(200)) * 6, "data.tar"),
    "empty": (b"", "data.tar"),
    "endless name": (member("././@LongLink", tarfile.GNUTYPE_LONGNAME, size=3 << 20), "a header of 3145728 bytes"),
}


def scanned(data: bytes) -> list[Any]:
    """The samples of one archive."""
    catalogue = Catalogue(DatasetManifest.of("file:///nowhere", [DataObject("data.tar", len(data))]))
    kind = ArchiveSamples()
    read: Read = lambda extents: [data[one.start : one.end] for one in extents]  # noqa: E731
    index = kind.index(catalogue, kind.scan(catalogue, read))
    return [index.sample(number, read(index.extents(number))) for number in range(len(index))]


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused_by_name(name: str) -> None:
    data, said = HOSTILE[name]
    with pytest.raises(StepError) as caught:
        scanned(data)
    assert said in str(caught.value)
    assert "'data.tar'" in str(caught.value)
    assert caught.value.cause == "data_corrupt"


def test_what_fills_its_last_block_is_not_read() -> None:
    """POSIX leaves it undefined."""
    assert len(scanned(GOOD[:-100] + b"x" * 100)) == len(scanned(GOOD))


def test_nothing_of_it_is_kept(folder: Corpus, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder.write({f"{number:02}.tar": data for number, (data, _) in enumerate(HOSTILE.values())})
    with pytest.raises(StepError):
        folder.open(ArchiveSamples())
    assert "argosy: data_corrupt: archive '00.tar'" in capfd.readouterr().err
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} == {".tar", ".json", ".blocks"}


@pytest.mark.parametrize("cut", range(0, len(GOOD), 512))
def test_a_cut_archive_is_whole_members_or_refused(cut: int) -> None:
    """tarfile takes some of these for an end."""
    found: list[Any] = []
    with contextlib.suppress(StepError):
        found = scanned(GOOD[:cut])
    both = [{"__key__": "a", "txt": b"good"}, {"__key__": "b", "txt": b"x" * 2000}]
    assert found == both[: 0 if cut < 1024 else 1 if cut == 1024 else 0 if cut < 3584 else 2]


def test_the_corpus_is_hostile(tmp_path: Path) -> None:
    """tarfile itself would make something outside of a folder, or a special file, of these."""
    escapes: Callable[[bytes], list[tarfile.TarInfo]] = lambda raw: tarfile.open(fileobj=io.BytesIO(raw)).getmembers()  # noqa: E731, SIM115
    for name in ("symbolic link", "hard link", "device", "absolute", "above"):
        assert len(escapes(HOSTILE[name][0])) == 3, name
