"""The server: a thread of its own with its own event loop, and the fault layer between wire and service."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Awaitable, Iterable
from urllib.parse import urlsplit

from tests.s3.bucket import Bucket
from tests.s3.faults import Plan, Seen, applies, nothing
from tests.s3.service import Service, refusal
from tests.s3.wire import Answer, Connection, Request, Sending, Served

ERRORS = {
    "slow-down": (503, "SlowDown"),
    "error-before": (500, "InternalError"),
    "error-after": (500, "InternalError"),
    "expired": (403, "ExpiredToken"),
    "denied": (403, "AccessDenied"),
    "full": (507, "InsufficientStorage"),
    "conflict": (409, "ConditionalRequestConflict"),
    "complete-error": (200, "InternalError"),
}
HOP_BY_HOP = ("connection", "transfer-encoding", "content-length", "keep-alive", "date", "server")


class S3Server:
    """Serves from the constructor until :meth:`close`, on loopback; a context manager.

    ``buckets``: names, or ready made (lying) ones. ``forward``: endpoint of a real S3 that keeps the objects.
    ``tls``: a server's context, for https.
    ``plan`` and ``slow_seconds`` may be set at any time; ``requests`` is the log; all numbers are from 0.
    """

    def __init__(
        self,
        buckets: Iterable[str] | dict[str, Bucket] = ("argosy-tests",),
        *,
        port: int = 0,
        plan: Plan = nothing,
        forward: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.buckets = buckets if isinstance(buckets, dict) else {name: Bucket() for name in buckets}
        self.plan, self.slow_seconds = plan, 0.2
        self.requests: list[Seen] = []
        self._service = Service(self.buckets)
        self._forward = urlsplit(forward).netloc
        self._idle: list[http.client.HTTPConnection] = []
        self._open: set[Connection] = set()
        self._first = 0
        self._loop = asyncio.new_event_loop()
        self._listening = self._loop.run_until_complete(
            self._loop.create_server(
                lambda: Connection(self._began, self._serve, self._open), "127.0.0.1", port, ssl=tls
            )
        )
        self.port = self._listening.sockets[0].getsockname()[1]
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="s3")
        self._thread.start()

    def __enter__(self) -> S3Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Reset every connection and stop."""

        def stop() -> None:
            self._listening.close()
            for connection in list(self._open):
                connection.reset()
            self._loop.call_soon(self._loop.stop)

        self._loop.call_soon_threadsafe(stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        for connection in self._idle:
            connection.close()

    def begin(self, plan: Plan = nothing) -> None:
        """A new plan; requests are numbered from 0 again and the log is empty."""
        self.plan, self.requests = plan, []

    # ---- on the loop's thread

    def _began(self, request: Request) -> None:
        conditional = "if-none-match" in request.headers or "if-match" in request.headers
        operation = self._service.operation(request)
        seen = Seen(
            number=len(self.requests),
            operation=operation,
            path=request.path,
            conditional=conditional and operation in ("PutObject", "CompleteMultipartUpload"),
            range=request.headers.get("range", ""),
            sent=int(request.headers.get("content-length") or 0),
        )
        kind = self.plan(seen)
        seen.fault = request.fault = kind if kind and applies(kind, seen) else ""
        request.seen = seen
        self.requests.append(seen)

    def _serve(self, request: Request) -> Served | Awaitable[Served]:
        if request.fault in ERRORS and request.fault != "error-after":
            return self._spoiled(request, None)
        if request.fault in ("reset-before", "reset-request"):
            return None, Sending()
        if self._forward:
            return self._forwarded(request)
        return self._spoiled(request, self._service.answer(request))

    async def _forwarded(self, request: Request) -> Served:
        answer = await asyncio.get_running_loop().run_in_executor(None, self._ask, request)
        return self._spoiled(request, answer)

    def _ask(self, request: Request) -> Answer:
        connection = self._idle.pop() if self._idle else http.client.HTTPConnection(self._forward, timeout=60)
        headers = {name: value for name, value in request.headers.items() if name not in ("expect", "connection")}
        try:
            connection.request(request.method, request.target, request.body, headers)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            return refusal(502, "BadGateway")
        self._idle.append(connection)
        told = {name.lower(): value for name, value in answer.getheaders()}
        length = int(told.get("content-length") or 0) if request.method == "HEAD" else None
        kept = {name: value for name, value in told.items() if name not in HOP_BY_HOP}
        return Answer(answer.status, kept, body, length)

    def _spoiled(self, request: Request, answer: Answer | None) -> Served:
        kind, how = request.fault, Sending()
        if kind == "reset-after":
            return None, how
        if kind in ERRORS or answer is None:
            answer = refusal(*ERRORS[kind], head=request.method == "HEAD")
        elif kind == "cut":
            how = Sending(keep=len(answer.body) // 2, reset=True)
        elif kind == "slow":
            how = Sending(seconds=self.slow_seconds)
        elif answer.status in (200, 206) and answer.body and kind in ("truncated", "wrong-bytes"):
            answer.body = _damaged(answer.body, kind)
        request.seen.status = answer.status
        return answer, how


def _damaged(body: bytes, kind: str) -> bytes:
    middle = len(body) // 2
    if kind == "truncated":
        return body[:middle]
    return body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
