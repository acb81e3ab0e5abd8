"""Datasets whose keys mean harm, through a real listing into a real folder, and what an outsider may see of it."""

from __future__ import annotations

import os
import shutil
import threading
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.staging import stage_objects
from tests.s3 import S3Server

BUCKET = "argosy-tests"
SEGMENTS = [
    "..", ".", "", "a", "A", "b", "é", "e\u0301", "É", "ſ", "s", "S", "straße", "STRASSE", "\\", "..\\x", "\0", "etc",
    "passwd", "x y", "a\nb", "a\rb", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "...", "..a", "~",
    "$HOME",
    "$(id)", "`id`", "{{x}}", "%2e%2e", "%2F", "+", "&", "<", "CON", "aux.txt", " ", "a.", "a ", "-rf", "x" * 255,
    "x" * 256, "é" * 127, "é" * 128, ".argosy-stage", ".ARGOSY-stage", "lock", "parts", "_SUCCESS", "lost+found",
]  # fmt: skip
"""What a key is put together from: names that leave, that meet, that a shell, a terminal or a disk reads otherwise."""

segments = st.one_of(
    st.sampled_from(SEGMENTS),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8),
)
keys = st.lists(segments, min_size=1, max_size=5).map("/".join)
datasets = st.lists(keys, min_size=1, max_size=4, unique=True)


class Escaped(AssertionError):
    """A file lies where none may, or holds what it must not, or a key was refused without being named."""


def may_be_staged(found: Iterable[str]) -> bool:
    """Whether every key is a path of its own below a folder: said by another rule than the product's."""
    wanted = set(found)
    paths = {key: tuple(_one_form(part) for part in key.split("/")) for key in wanted}
    if len(set(paths.values())) != len(wanted) or not all(_is_plain(key) for key in wanted):
        return False
    folders = {parts[:end] for parts in paths.values() for end in range(1, len(parts))}
    return not folders & set(paths.values())


def _one_form(part: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", part).casefold())


def _is_plain(key: str) -> bool:
    parts = key.split("/")
    if os.path.normpath(key) != key or ".." in parts or key.startswith("/") or _one_form(parts[0]) == ".argosy-stage":
        return False
    unseen = any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in key)
    sizes = len(key.encode()) <= 1024 and all(len(part.encode()) <= 255 for part in parts)
    return not unseen and "\\" not in key and key not in ("", ".", "..") and sizes


class Victim:
    """A folder that is staged into, with files beside and above it that nobody may touch."""

    def __init__(self, folder: Path) -> None:
        self.outer = folder / "outer"
        shutil.rmtree(self.outer, ignore_errors=True)
        self.into = self.outer / "mount" / "data"
        self.into.parent.mkdir(parents=True)
        for name in ("secret", "mount/secret", "etc/passwd"):
            path = self.outer / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("untouched")
        self._before = self._outside()

    def _outside(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for place, folders, files in os.walk(self.outer):
            if self.into.name in folders and Path(place) == self.into.parent:
                folders.remove(self.into.name)  # an attacker may be at work there
            found |= {f"{place}/{name}": b"folder" for name in folders}
            found |= {f"{place}/{name}": Path(place, name).read_bytes() for name in files}
        return found

    def check(self) -> None:
        """Raise Escaped when anything beside the staged folder changed."""
        if self._outside() != self._before:
            raise Escaped(f"changed outside the folder: {set(self._outside().items()) ^ set(self._before.items())}")

    def staged(self) -> dict[str, bytes]:
        """Published files by key."""
        files = (path for path in self.into.rglob("*") if path.is_file() and not path.is_symlink())
        found = {path.relative_to(self.into).as_posix(): path.read_bytes() for path in files}
        return {key: data for key, data in found.items() if not key.startswith(".argosy-stage/")}


def judge(server: S3Server, dataset: list[str], folder: Path) -> str:
    """Stage a bucket with these keys: ``staged`` or ``refused``.

    Raises:
        Escaped: what must not happen did.
    """
    bucket = server.buckets[BUCKET]
    bucket.replace({})
    for number, key in enumerate(dataset):
        bucket.put(f"d/{key}", b"%d" % number * 10)
    victim = Victim(folder)
    try:
        manifest = take_snapshot(f"s3://{BUCKET}/d")
        stage_objects(manifest, list(manifest), victim.into)
    except (InputError, StepError) as error:
        victim.check()
        _check_refusal(dataset, error, victim)
        return "refused"
    victim.check()
    _check_staged(dataset, victim)
    return "staged"


def _check_refusal(dataset: list[str], error: Exception, victim: Victim) -> None:
    if isinstance(error, InputError) and victim.into.exists() and victim.staged():
        raise Escaped(f"{dataset!r}: refused, but files were published: {error}")
    _check_staged(dataset, victim)
    data = {key for key in dataset if not _is_left_out(key)}
    if not data and "is empty" in str(error):
        return
    if may_be_staged(dataset):
        raise Escaped(f"{dataset!r}: refused although each can be a file: {error}")
    named = ascii(str(error)).replace("\\", "")
    hostile = [key for key in data if not _is_plain(key)]
    # Keys that are sound alone meet another one: one of such a pair is named.
    if not (all if hostile else any)(_shown(key) in named for key in hostile or data):
        raise Escaped(f"{dataset!r}: refused without naming every key: {error}")


def _is_left_out(key: str) -> bool:
    """Staging's own, and markers; unless they are hostile themselves."""
    if key.startswith(".argosy-stage/"):
        return _is_plain(key.removeprefix(".argosy-stage/"))
    return key.rpartition("/")[2] in ("_SUCCESS", "_READY") and _is_plain(key)


def _shown(key: str) -> str:
    return ascii(key)[1:-1].replace("\\", "")[:40]


def _check_staged(dataset: list[str], victim: Victim) -> None:
    found = victim.staged()
    for number, key in enumerate(dataset):
        if key in found and found.pop(key) != b"%d" % number * 10:
            raise Escaped(f"{key!r} holds another object's bytes")
    if found:
        raise Escaped(f"files that no object made: {sorted(found)!r}")


def race(server: S3Server, folder: Path, *, links: int) -> int:
    """Stage while folders of the target turn into symbolic links to the outside, ``links`` times at least."""
    bucket = server.buckets[BUCKET]
    bucket.replace({})
    for number in range(60):
        bucket.put(f"d/f{number % 3}/g{number % 2}/{number}.bin", os.urandom(64))
    victim = Victim(folder)
    outside = victim.outer / "etc"
    turned, stop = 0, threading.Event()

    def attack() -> None:
        nonlocal turned
        while not stop.is_set():
            for name in ("f0", "f1", "f2", "f0/g0", "f1/g1"):
                here = victim.into / name
                with suppress(OSError):
                    if here.is_symlink():
                        here.unlink()
                    else:
                        here.rename(here.with_name(f"{here.name}.old{turned}"))
                        here.symlink_to(outside)
                        turned += 1

    attacker = threading.Thread(target=attack, daemon=True)
    attacker.start()
    try:
        while turned < links:
            with suppress(InputError, StepError):
                manifest = take_snapshot(f"s3://{BUCKET}/d")
                stage_objects(manifest, list(manifest), victim.into)
            victim.check()
    finally:
        stop.set()
        attacker.join()
    victim.check()
    return turned
