"""What an honest S3 bucket keeps, in memory; every verb is atomic. The lying ones override a verb (lying.py)."""

from __future__ import annotations

import base64
import hashlib
import time
import uuid
from bisect import bisect_left
from dataclasses import dataclass, field

from awscrt.checksums import crc64nvme


class Refused(Exception):
    """S3's answer to a request that it does not carry out: HTTP status and error code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status, self.code = status, code


@dataclass(frozen=True)
class Stored:
    """One object."""

    data: bytes
    etag: str
    modified: float


@dataclass
class Upload:
    """An upload in parts that is neither completed nor aborted."""

    key: str
    parts: dict[int, Stored] = field(default_factory=dict)
    started: float = field(default_factory=time.time)


SMALLEST_PART = 5 << 20


class Bucket:
    """Reads see earlier writes; conditions hold."""

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.uploads: dict[str, Upload] = {}
        self._sorted: list[str] | None = None

    def replace(self, objects: dict[str, Stored]) -> None:
        """These objects and no others."""
        self.objects, self.uploads, self._sorted = dict(objects), {}, None

    def get(self, key: str) -> Stored:
        found = self.objects.get(key)
        if found is None:
            raise Refused(404, "NoSuchKey")
        return found

    def head(self, key: str) -> Stored:
        return self.get(key)

    def cut(self, stored: Stored, start: int, end: int) -> bytes:
        """Bytes ``start`` to ``end`` (exclusive), which lie inside the object."""
        return stored.data[start:end]

    def checksums(self, stored: Stored) -> dict[str, str]:
        """What is told of a whole object to who asks with x-amz-checksum-mode: as S3 keeps it of every object."""
        value = crc64nvme(stored.data).to_bytes(8, "big")
        return {
            "x-amz-checksum-crc64nvme": base64.b64encode(value).decode(),
            "x-amz-checksum-type": "FULL_OBJECT",
        }

    def put(self, key: str, data: bytes, *, absent: bool = False, match: str = "") -> Stored:
        """``absent``: If-None-Match: *. ``match``: If-Match."""
        self.check(key, absent=absent, match=match)
        return self.store(key, data, self.etag(data))

    def check(self, key: str, *, absent: bool, match: str) -> None:
        """Refuse what a condition forbids."""
        there = self.objects.get(key)
        if absent and there is not None:
            raise Refused(412, "PreconditionFailed")
        if match and there is None:
            raise Refused(404, "NoSuchKey")
        if match and there is not None and match != there.etag:
            raise Refused(412, "PreconditionFailed")

    def etag(self, data: bytes) -> str:
        return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'

    def store(self, key: str, data: bytes, etag: str) -> Stored:
        if key not in self.objects:
            self._sorted = None
        self.objects[key] = made = Stored(data, etag, time.time())
        return made

    def delete(self, key: str) -> None:
        if self.objects.pop(key, None) is not None:
            self._sorted = None

    def keys(self, prefix: str, after: str) -> list[str]:
        """All keys with the prefix that sort behind ``after``."""
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        found = self._sorted[bisect_left(self._sorted, prefix) :]
        end = next((at for at, key in enumerate(found) if not key.startswith(prefix)), len(found))
        found = found[:end]
        return found[bisect_left(found, after + "\0") :] if after else found

    def listed(self, key: str) -> Stored | None:
        """What a listing says of a key."""
        return self.objects.get(key)

    def begin(self, key: str) -> str:
        name = uuid.uuid4().hex
        self.uploads[name] = Upload(key)
        return name

    def add_part(self, name: str, key: str, number: int, data: bytes) -> str:
        part = Stored(data, self.etag(data), time.time())
        self._upload(name, key).parts[number] = part
        return part.etag

    def complete(self, name: str, key: str, parts: list[tuple[int, str]], *, absent: bool, match: str) -> Stored:
        """Make the object out of its parts; a second try finds no upload, as S3 documents it."""
        upload = self._upload(name, key)
        numbers = [number for number, _ in parts]
        if not parts or numbers != sorted(set(numbers)):
            raise Refused(400, "InvalidPartOrder")
        if any(number not in upload.parts or upload.parts[number].etag.strip('"') != etag for number, etag in parts):
            raise Refused(400, "InvalidPart")
        chosen = [upload.parts[number] for number in numbers]
        if any(len(part.data) < SMALLEST_PART for part in chosen[:-1]):
            raise Refused(400, "EntityTooSmall")
        self.check(key, absent=absent, match=match)
        del self.uploads[name]
        sums = b"".join(bytes.fromhex(part.etag.strip('"')) for part in chosen)
        etag = f'"{hashlib.md5(sums, usedforsecurity=False).hexdigest()}-{len(chosen)}"'
        return self.store(key, self.join([part.data for part in chosen]), etag)

    def join(self, parts: list[bytes]) -> bytes:
        return b"".join(parts)

    def abort(self, name: str, key: str) -> None:
        self._upload(name, key)
        del self.uploads[name]

    def parts(self, name: str, key: str) -> dict[int, Stored]:
        return self._upload(name, key).parts

    def _upload(self, name: str, key: str) -> Upload:
        upload = self.uploads.get(name)
        if upload is None or upload.key != key:
            raise Refused(404, "NoSuchUpload")
        return upload
