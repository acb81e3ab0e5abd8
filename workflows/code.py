"""The user's code folder as one archive, named by its content.

The same files give the same bytes: entries are sorted, without times and owners. What ``.gitignore`` and
``.argosyignore`` name stays at home, and so does what is no code (:mod:`argosy.workflows.no_code`). An empty folder
travels: who made it by hand has a script that writes there.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import code_key
from argosy.steps.store.base import ObjectStore
from argosy.workflows.no_code import ALWAYS, USUALLY, is_no_code

MAX_BYTES: Final = 100 * 1024 * 1024
"""Of the files together, before compression. Code is small; what is larger is data or a checkpoint."""
IGNORE_FILES: Final = (".gitignore", ".argosyignore")
FETCHED: Final = "# fetched by argosy, so no code\n*\n"
"""What is in the ignore file of a folder that holds nothing else than a checkpoint, or a gang's evidence."""
_NAMED = 5
_DATA: Final = frozenset(
    (
        ".bin", ".npy", ".npz", ".parquet", ".arrow", ".csv", ".tsv", ".json", ".jsonl", ".txt", ".h5", ".hdf5",
        ".tar", ".zip", ".pkl", ".safetensors", ".idx", ".dat", ".data", ".pickle", ".pt", ".pth", ".gz", ".zst",
        ".lmdb", ".mdb", ".db", ".sqlite", ".tfrecord", ".mat", ".model", ".yaml", ".yml",
    )
)  # fmt: skip
"""A script may read such a file beside it, and who ignored it for git may not know that it stays at home."""


@dataclass(frozen=True)
class CodeArchive:
    """A packed folder: ``data`` is a tar.gz, ``digest`` its SHA-256 as hex, ``files`` the paths inside, sorted.

    ``left_out``: files and folders that an ignore file names and that look like data, sorted.
    """

    data: bytes
    digest: str
    files: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Entry:
    name: str
    path: Path
    size: int
    executable: bool
    link: str
    """Target of a symbolic link, relative to its own folder; "" for a file."""
    is_folder: bool = False


def pack(folder: str | Path, leave_out: Sequence[str] = ()) -> CodeArchive:
    """The folder as an archive; ``leave_out``: further rules, as an ignore file has them.

    Raises:
        InputError: no such folder, an unreadable file, a symbolic link that leaves the folder, or more than
            :data:`MAX_BYTES`, naming the biggest files.
    """
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"code = {str(folder)!r}: no such folder; name the folder that holds the script")
    try:
        left_out: list[str] = []
        entries = sorted(_walk(root.resolve(), leave_out, left_out), key=lambda entry: entry.name)
        _check_size(entries, root)
        data = _archive(entries)
    except OSError as error:
        raise InputError(f"code: {error.filename}: {error.strerror}; make it readable or ignore it") from None
    files = tuple(entry.name for entry in entries if not entry.is_folder)
    return CodeArchive(data, hashlib.sha256(data).hexdigest(), files, tuple(sorted(left_out)))


def push(archive: CodeArchive, store: ObjectStore, name: str) -> str:
    """Put the archive of run ``name`` into the store unless it is there; its uri.

    Raises:
        StoreError: the store refused.
    """
    key = code_key(name, archive.digest)
    if store.head(key) is None:
        store.put_if_absent(key, archive.data)
    return f"{store.uri.rstrip('/')}/{key}"


def _walk(root: Path, leave_out: Sequence[str], left_out: list[str]) -> Iterator[_Entry]:
    pending: list[tuple[PurePosixPath, tuple[tuple[PurePosixPath, GitIgnoreSpec], ...]]] = [
        (PurePosixPath(), ((PurePosixPath(), GitIgnoreSpec.from_lines([*USUALLY, *leave_out])),))
    ]
    while pending:
        relative, outer = pending.pop()
        with os.scandir(root / relative) as scanned:
            listing = list(scanned)
            if not listing and relative.parts:
                yield _Entry(_text(relative), root / relative, 0, True, "", is_folder=True)
            lines = _lines(root / relative)
            rules, fetched = (*outer, (relative, _rules(root / relative, lines))), lines == FETCHED.splitlines()
            for found in listing:
                name = relative / found.name
                is_folder = found.is_dir(follow_symlinks=False)
                if found.name in ALWAYS or _ignored(name, is_folder, rules):
                    looks_like_data = name.suffix in _DATA or (is_folder and "data" in found.name.lower())
                    if looks_like_data and _ignored(name, is_folder, rules[1:]) and not fetched:
                        left_out.append(f"{name}/" if is_folder else str(name))
                    continue
                if is_folder:
                    pending.append((name, rules))
                elif (entry := _entry(root, name, found)) is not None and not _is_no_code(entry):
                    yield entry


def _lines(folder: Path) -> list[str]:
    there = (folder / file for file in IGNORE_FILES if (folder / file).is_file())
    return [line for path in there for line in path.read_text(encoding="utf-8-sig", errors="replace").splitlines()]


def _rules(folder: Path, lines: list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise InputError(f"code: {folder}: an ignore rule cannot be read ({error}); correct it") from None


def _ignored(name: PurePosixPath, is_folder: bool, rules: tuple[tuple[PurePosixPath, GitIgnoreSpec], ...]) -> bool:
    """By the innermost file that says anything, as git does."""
    # A name that is no UTF-8 is refused later, by name; the rules' engine cannot even look at it.
    for base, spec in reversed(rules):
        within = str(name.relative_to(base)).encode(errors="surrogateescape").decode(errors="replace")
        verdict = spec.check_file(f"{within}{'/' if is_folder else ''}").include
        if verdict is not None:
            return verdict
    return False


def _is_no_code(entry: _Entry) -> bool:
    return not entry.link and is_no_code(entry.name, entry.path, entry.size)


def _text(name: PurePosixPath) -> str:
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"code: {text!r}: the name is not UTF-8; rename the file or ignore it") from None
    return text


def _entry(root: Path, name: PurePosixPath, found: os.DirEntry[str]) -> _Entry | None:
    text = _text(name)
    facts = found.stat(follow_symlinks=False)
    path = root / name
    if stat.S_ISLNK(facts.st_mode):
        return _Entry(text, path, 0, False, _link(root, path))
    if not stat.S_ISREG(facts.st_mode):
        return None  # sockets and pipes of a running program are no code
    return _Entry(text, path, facts.st_size, bool(facts.st_mode & 0o111), "")


def _link(root: Path, path: Path) -> str:
    target = Path(os.path.normpath(path.parent / os.readlink(path)))
    for place in (target, Path(os.path.realpath(path))):
        if not place.is_relative_to(root):
            shown = path.relative_to(root)
            raise InputError(
                f"code: {shown} is a link to {target}, outside the folder; copy the file or ignore the link"
            )
    return os.path.relpath(target, path.parent)


def _check_size(entries: list[_Entry], root: Path) -> None:
    total = sum(entry.size for entry in entries)
    if total <= MAX_BYTES:
        return
    biggest = sorted(entries, key=lambda entry: -entry.size)[:_NAMED]
    listed = ", ".join(f"{entry.name} ({_mebibytes(entry.size)})" for entry in biggest)
    raise InputError(
        f"code = {str(root)!r}: {_mebibytes(total)} is more than {_mebibytes(MAX_BYTES)}; the biggest: {listed}; name "
        "what is no code in .argosyignore"
    )


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.1f} MiB"


def _archive(entries: list[_Entry]) -> bytes:
    buffer = io.BytesIO()
    # No file name and time 0 in the gzip header; PAX for long and non-ASCII names.
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for entry in entries:
            member = tarfile.TarInfo(entry.name)
            member.mode = 0o755 if entry.executable else 0o644
            if entry.link:
                member.type, member.linkname = tarfile.SYMTYPE, entry.link
                archive.addfile(member)
                continue
            if entry.is_folder:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
                continue
            content = entry.path.read_bytes()
            member.size = len(content)  # the file may have grown since it was listed
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
