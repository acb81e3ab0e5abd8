"""Artifacts with a key of their own: in the S3 that they name, else in a folder that stands for Argo's repository."""

from __future__ import annotations

import os
import posixpath
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from zlib import error as ZlibError

from argosy.steps.untar import place
from argosy.workflows.engine.pod_environment import referred_variable

SECRETS = ("accessKeySecret", "secretKeySecret", "sessionTokenSecret")
ABSENT = "The specified key does not exist."
"""What Argo's S3 driver says of it; any other failure has the client's own words."""


class KeyAbsent(OSError):
    """Neither an object nor a folder has this key."""

    def __init__(self) -> None:
        super().__init__(ABSENT)


class _Bucket(Protocol):
    def fetch(self, key: str, into: Path) -> None: ...
    def put(self, key: str, source: Path) -> None: ...


class ArtifactRepository:
    """``folder`` holds what names a key and no bucket: on a cluster the namespace's repository has it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, artifact: Mapping[str, Any], target: Path) -> None:
        """Fetch an artifact and unpack it as ``archive`` says, or by its content.

        Raises:
            KeyAbsent: nothing has its key.
            OSError: it cannot be reached, read, unpacked or written.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".artifact.") as work:
            fetched = Path(work) / "fetched"
            bucket, key = self._bucket(artifact["s3"])
            bucket.fetch(key, fetched)
            unpacked = _unpacked(fetched, artifact.get("archive") or {}, Path(work) / "unpacked")
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            os.replace(unpacked, target)

    def save(self, artifact: Mapping[str, Any], source: Path) -> None:
        """Store a file or folder under the artifact's key, packed as ``archive`` says (gzipped tar by default).

        Raises:
            OSError: it cannot be reached or written.
        """
        bucket, key = self._bucket(artifact["s3"])
        archive = artifact.get("archive") or {"tar": {}}
        if "none" in archive:
            for file, below in _files(source):
                bucket.put(posixpath.join(key, below) if below else key, file)
            return
        with tempfile.TemporaryDirectory(dir=source.parent, prefix=".artifact.") as work:
            packed = Path(work) / "packed"
            _pack(source, str(Path(artifact["path"]).name), archive, packed)
            bucket.put(key, packed)

    def _bucket(self, location: Mapping[str, Any]) -> tuple[_Bucket, str]:
        key = str(location["key"])
        if names_bucket(location):
            return _S3(location), key
        return _Folder(self._folder), key


def names_bucket(location: Mapping[str, Any]) -> bool:
    """Whether an ``s3`` is a whole location to Argo; it takes the rest from the repository otherwise."""
    return all(location.get(name) for name in ("endpoint", "bucket", "key"))


def missing_secrets(location: Mapping[str, Any]) -> Iterator[str]:
    """The variables that have to stand for the Secrets of an ``s3`` and are not there."""
    if not names_bucket(location):
        return
    for name in SECRETS:
        reference = location.get(name)
        if reference and not reference.get("optional"):
            variable = referred_variable(reference)
            if variable not in os.environ:
                yield variable


class _Folder:
    """The repository of one machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(self, key: str, into: Path) -> None:
        found = self._at(key)
        if found.is_dir():
            shutil.copytree(found, into, symlinks=True)
        elif found.is_file():
            shutil.copy2(found, into)
        else:
            raise KeyAbsent

    def put(self, key: str, source: Path) -> None:
        target = self._at(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        shutil.copyfile(source, part)
        os.replace(part, target)

    def _at(self, key: str) -> Path:
        parts = key.strip("/").split("/")
        if any(part in ("", ".", "..") for part in parts) or "\0" in key:
            raise OSError(f"key {key!r} has an empty, '.' or '..' part")
        return self._folder.joinpath(*parts)


class _S3:
    """A bucket; credentials from the variables that stand for its Secrets, else from the environment."""

    def __init__(self, location: Mapping[str, Any]) -> None:
        from obstore.store import S3Store

        scheme = "http" if location.get("insecure") else "https"
        given: dict[str, Any] = {"endpoint": f"{scheme}://{location['endpoint']}"}
        for field, name in zip(("access_key_id", "secret_access_key", "token"), SECRETS, strict=True):
            reference = location.get(name)
            if reference:
                given[field] = os.environ.get(referred_variable(reference))
        given |= {"region": str(location.get("region") or os.environ.get("AWS_REGION") or "us-east-1")}
        options: Any = {"allow_http": scheme == "http", "timeout": timedelta(minutes=30)}
        config: Any = {name: value for name, value in given.items() if value}
        # About as long as Argo's executor tries.
        retry: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
        self._store = S3Store(str(location["bucket"]), config=config, client_options=options, retry_config=retry)

    def fetch(self, key: str, into: Path) -> None:
        try:
            if self._object(key, into):
                return
            below = [each["path"] for page in self._store.list(prefix=f"{key.rstrip('/')}/") for each in page]
            if not below:
                raise KeyAbsent
            for name in below:
                path = name.removeprefix(f"{key.rstrip('/')}/")
                if any(part in ("", ".", "..") for part in path.split("/")):
                    raise OSError(f"key {name!r} would leave the artifact's folder")
                (into / path).parent.mkdir(parents=True, exist_ok=True)
                if not self._object(name, into / path):
                    raise OSError(f"{name!r} was deleted meanwhile")
        except OSError:
            raise
        except Exception as error:
            raise OSError(str(error).splitlines()[0]) from error

    def put(self, key: str, source: Path) -> None:
        try:
            self._store.put(key, source)
        except Exception as error:
            raise OSError(str(error).splitlines()[0]) from error

    def _object(self, key: str, into: Path) -> bool:
        try:
            found = self._store.get(key)
        except FileNotFoundError:
            return False
        with into.open("wb") as out:
            for chunk in found.stream(min_chunk_size=1 << 20):
                out.write(chunk)
        return True


def _files(source: Path) -> Iterator[tuple[Path, str]]:
    if source.is_file():
        yield source, ""
        return
    for folder, _, names in os.walk(source):
        for name in sorted(names):
            path = Path(folder) / name
            yield path, path.relative_to(source).as_posix()


def _pack(source: Path, name: str, archive: Mapping[str, Any], target: Path) -> None:
    if "zip" in archive:
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            for file, below in _files(source):
                out.write(file, f"{name}/{below}" if below else name)
        return
    level = int((archive.get("tar") or {}).get("compressionLevel", 6))
    with tarfile.open(target, "w:gz", compresslevel=min(max(level, 0), 9)) as tar:
        tar.add(source, arcname=name)


def _unpacked(fetched: Path, archive: Mapping[str, Any], folder: Path) -> Path:
    """What Argo's executor puts in place: the one file or folder of an archive, or all of it, or what came as it is."""
    if "none" in archive or fetched.is_dir():
        return fetched
    if "zip" in archive:
        folder.mkdir()
        with _readable(), zipfile.ZipFile(fetched) as packed:
            for name in packed.namelist():
                packed.extract(name, folder)
    elif "tar" in archive or _is_tarball(fetched):
        folder.mkdir()
        with _readable(), tarfile.open(fetched, "r:gz") as tar:
            for member in tar:
                place(tar, member, folder.resolve())
    else:
        return fetched
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 else folder


@contextmanager
def _readable() -> Iterator[None]:
    """A damaged archive is an OSError, as any other failure to load it."""
    try:
        yield
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, ZlibError) as error:
        raise OSError(f"cannot be unpacked: {error}") from error


def _is_tarball(path: Path) -> bool:
    """Argo's own test: gzip outside, a tar's header inside."""
    with suppress(tarfile.TarError, OSError, EOFError), closing(tarfile.open(path, "r:gz")) as tar:
        return tar.next() is not None
    return False
