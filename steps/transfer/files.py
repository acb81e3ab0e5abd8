"""Pieces of a ``file://`` store: read and written through one buffer per thread."""

from __future__ import annotations

import os
import threading
from urllib.parse import unquote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.paths import resolve_file_uri
from argosy.steps.store.base import ObjectMissing, StoreError, check_key
from argosy.steps.store.files import file_etag
from argosy.steps.transfer.piece import Piece
from argosy.steps.transfer.sink import Sink

READERS = 4
_BUFFER = 1 << 20


class FileSource:
    """Copies pieces out of the folder that ``uri`` names."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._root = resolve_file_uri(unquote(urlsplit(uri).path))
        self._buffers = threading.local()

    def __call__(self, sink: Sink) -> None:
        """All bytes of the piece; the file must have its object's ETag, or else size, before and after."""
        piece = sink.piece
        check_key(piece.key, self._uri)
        path = self._root / piece.key
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ObjectMissing(f"{self._uri}/{piece.key}") from error
        except OSError as error:
            raise StoreError.of_disk("read", path, error) from error
        try:
            self._check(source, piece)
            self._copy(source, sink)
            self._check(source, piece)
        except OSError as error:
            raise StoreError.of_disk("read", path, error) from error
        finally:
            os.close(source)

    def _check(self, source: int, piece: Piece) -> None:
        now = os.fstat(source)
        if not piece.etag and now.st_size != piece.object_size:
            text = f"{self._uri}/{piece.key} has {now.st_size} bytes, not {piece.object_size}"
            raise StoreError(Cause.S3_MISSING, f"dataset changed: {text}")
        if piece.etag and file_etag(now) != piece.etag:
            text = f"dataset changed: {self._uri}/{piece.key} is no longer version {piece.etag}"
            raise StoreError(Cause.S3_MISSING, text)

    def _copy(self, source: int, sink: Sink) -> None:
        buffer = getattr(self._buffers, "view", None)
        if buffer is None:
            buffer = self._buffers.view = memoryview(bytearray(_BUFFER))
        piece = sink.piece
        while missing := piece.length - sink.arrived:
            count = os.preadv(source, [buffer[:missing]], piece.start + sink.arrived)
            if not count:
                return
            sink.write(buffer[:count])
