"""An archive that means harm writes nothing outside its folder, and no more than code can be."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy.steps import code
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.layout import code_key
from argosy.steps.store import open_store

PATH = "/usr/bin:/bin"


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def archive(*members: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as made:
        for each in members:
            made.addfile(each, io.BytesIO(b"\0" * each.size))
    return buffer.getvalue()


@pytest.fixture
def unpack(tmp_path: Path) -> Callable[[bytes], Path]:
    def run(data: bytes) -> Path:
        store = open_store(f"file://{tmp_path}/store")
        digest = hashlib.sha256(data).hexdigest()
        store.put(code_key("n", digest), data)
        code.unpack(store, "n", digest, tmp_path / "pod/work")
        return tmp_path / "pod/work"

    return run


HARMFUL = {
    "parent": [member("../evil")],
    "deep parent": [member("a/../../evil")],
    "absolute link": [member("l", tarfile.SYMTYPE, "/etc"), member("l/evil")],
    "link out": [member("l", tarfile.SYMTYPE, "../.."), member("l/evil")],
    "link over link": [
        *[member("a", tarfile.SYMTYPE, "."), member("a/b", tarfile.SYMTYPE, ".."), member("a/b/evil")],
        member("b/../../evil"),
    ],
    "hard link out": [member("h", tarfile.LNKTYPE, "../../secret")],
    "device": [member("d", tarfile.CHRTYPE)],
    "pipe": [member("p", tarfile.FIFOTYPE)],
}


@pytest.mark.parametrize("members", HARMFUL.values(), ids=HARMFUL)
def test_a_harmful_member_is_refused(members: list[tarfile.TarInfo], unpack: Callable[[bytes], Path]) -> None:
    with pytest.raises(StepError) as refused:
        unpack(archive(*members))
    assert refused.value.cause == Cause.CONFIG_OR_RBAC


def test_nothing_lies_outside_after_a_refusal(tmp_path: Path, unpack: Callable[[bytes], Path]) -> None:
    (tmp_path / "secret").write_text("s")
    for members in HARMFUL.values():
        with pytest.raises(StepError):
            unpack(archive(member("good"), *members))
    assert not [path for path in tmp_path.rglob("*") if path.name in ("evil", "good", "h")]


def test_an_absolute_name_stays_inside(unpack: Callable[[bytes], Path]) -> None:
    assert (unpack(archive(member("/etc/evil"))) / "etc/evil").is_file()


def test_a_bomb_stops_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unpack: Callable[[bytes], Path]
) -> None:
    monkeypatch.setattr(code, "MAX_BYTES", 4 << 20)
    monkeypatch.setattr(code, "MAX_FILES", 50)
    with pytest.raises(StepError, match="more than 4 MiB"):
        unpack(archive(member("a", size=3 << 20), member("b", size=3 << 20)))
    with pytest.raises(StepError, match="or 50 files"):
        unpack(archive(*[member(f"f{index}") for index in range(51)]))
    assert sum(path.stat().st_size for path in (tmp_path / "pod").rglob("*")) < 4 << 20


def test_what_is_no_archive_is_said_to_be_none(unpack: Callable[[bytes], Path]) -> None:
    good = archive(member("a", size=100_000))
    for data in (b"", b"x", good[: len(good) // 2], gzip.compress(b"x" * 3000), gzip.decompress(good)):
        with pytest.raises(StepError, match="cannot be unpacked"):
            unpack(data)


def test_a_swapped_archive_is_not_opened(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    store.put(code_key("n", "0" * 64), archive(member("a")))
    with pytest.raises(StepError, match="not unpacked"):
        code.unpack(store, "n", "0" * 64, tmp_path / "work")
    assert not (tmp_path / "work/a").exists()


INTERPRETERS = {
    os.path.realpath(found) for name in ("python3", "python3.11") if (found := shutil.which(name, path=PATH))
}


@pytest.mark.parametrize("python", sorted({sys.executable, *INTERPRETERS}))
def test_every_python_that_a_distribution_ships_unpacks_it(python: str, tmp_path: Path) -> None:
    # Debian 12 has 3.11.2, and tarfile's filters came with 3.11.4: every pod died there.
    version = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True)
    if tuple(map(int, version.stdout.split())) < (3, 11):
        pytest.skip(f"{python} is too old")
    executable = member("a/train.py")
    executable.mode = 0o755
    data = archive(executable, member("l", tarfile.SYMTYPE, "a/train.py"))
    digest = hashlib.sha256(data).hexdigest()
    store = open_store(f"file://{tmp_path}/store")
    store.put(code_key("n", digest), data)
    script = (
        "import sys, pathlib; from argosy.steps import code; from argosy.steps.store import open_store\n"
        "code.unpack(open_store(sys.argv[1]), 'n', sys.argv[2], pathlib.Path(sys.argv[3]))"
    )
    environ = {"PATH": PATH, "PYTHONPATH": str(Path(code.__file__).parents[2])}
    command = [python, "-c", script, f"file://{tmp_path}/store", digest, str(tmp_path / "work")]
    said = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert (tmp_path / "work/l").readlink() == Path("a/train.py")
    assert os.access(tmp_path / "work/a/train.py", os.X_OK)
