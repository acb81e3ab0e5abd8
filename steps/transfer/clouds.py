"""Pieces of a bucket over obstore: GCS and Azure, whose identities it knows."""

from __future__ import annotations

import random
import time
from typing import Any

from argosy.steps.contract.causes import Cause
from argosy.steps.store.base import StoreError, check_key
from argosy.steps.store.cloud_client import open_client
from argosy.steps.store.cloud_errors import http_status, lost_connection, store_error
from argosy.steps.transfer.piece import Piece
from argosy.steps.transfer.sink import Sink

READERS = 32
RETRY_SECONDS = 180.0
_CHUNK = 1 << 20
_PAUSE = 0.2


class CloudSource:
    """Streams pieces; a body that breaks off is gone on with, at the same version."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._client = open_client(uri, retry_seconds=RETRY_SECONDS)

    def __call__(self, sink: Sink) -> None:
        """All bytes of the piece."""
        piece = sink.piece
        check_key(piece.key, self._uri)
        given_up = time.monotonic() + RETRY_SECONDS
        came, same = 0, piece.etag
        while True:
            try:
                same = self._stream(sink, same) or same
                return
            except StoreError:
                raise
            except Exception as error:
                if sink.arrived > came:  # a link that is slow is none that fails
                    came, given_up = sink.arrived, time.monotonic() + RETRY_SECONDS
                if not lost_connection(error) or (sink.arrived and not same) or time.monotonic() > given_up:
                    raise self._refused(piece, error) from error
            time.sleep(random.uniform(0.01, _PAUSE))

    def _stream(self, sink: Sink, etag: str) -> str:
        piece = sink.piece
        options: dict[str, Any] = {"if_match": etag} if etag else {}
        if piece.version:
            options["version"] = piece.version
        if not piece.whole or sink.arrived:
            if sink.arrived == piece.length:
                return etag
            options["range"] = (piece.start + sink.arrived, piece.start + piece.length)
        found = self._client.get(piece.key, options=options)
        if int(found.meta["size"]) != piece.object_size:
            text = f"{self._uri}/{piece.key} has {found.meta['size']} bytes, not {piece.object_size}"
            raise StoreError(Cause.S3_MISSING, f"dataset changed: {text}")
        for chunk in found.stream(min_chunk_size=_CHUNK):
            sink.write(memoryview(chunk))
        return str(found.meta.get("e_tag") or "")

    def _refused(self, piece: Piece, error: Exception) -> StoreError:
        # The client, which goes on in a broken body by itself, has the status in its text only.
        if piece.etag and (type(error).__name__ == "PreconditionError" or http_status(error) == 412):
            text = f"dataset changed: {self._uri}/{piece.key} is no longer version {piece.etag}"
            return StoreError(Cause.S3_MISSING, text)
        return store_error("read", f"{self._uri}/{piece.key}", error)
