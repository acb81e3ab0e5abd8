"""Where announcements come from on one machine: a queue of SQS, and HTTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.events.payload import MAX_EVENT_BYTES

Hear = Callable[[bytes | str, str], Any]
SECRET = "ARGOSY_WEBHOOK_SECRET"
_WAIT_SECONDS = 20
_SILENCE_SECONDS = 10.0
_SENDERS = 64


class Queue:
    """A queue of SQS; a message is deleted when what it says was decided on and the decision is stored."""

    def __init__(self, fields: dict[str, Any]) -> None:
        """``fields``: those of an EventSource's ``sqs``: queue, region, endpoint, queueAccountId.

        Raises:
            InputError: there is no such queue, or nothing says where it is.
        """
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        self._errors = (BotoCoreError, ClientError)
        # boto3 reads AWS_DEFAULT_REGION and no AWS_REGION, which everything else here does.
        region = fields.get("region") or os.environ.get("AWS_REGION")
        given: dict[str, Any] = {"region_name": region, "endpoint_url": fields.get("endpoint")}
        asked = {"QueueName": str(fields.get("queue", ""))}
        if owner := fields.get("queueAccountId"):
            asked["QueueOwnerAWSAccountId"] = str(owner)
        where = ""
        try:
            self._client = boto3.client("sqs", **{name: value for name, value in given.items() if value})
            where = f" at {self._client.meta.endpoint_url}"
            self._url = self._client.get_queue_url(**asked)["QueueUrl"]
        except (*self._errors, ValueError) as error:
            said = " ".join(str(error).split())
            raise InputError(
                f"trigger.event_source.sqs.queue = {asked['QueueName']!r}{where}: {said}; write its region "
                "(AWS_REGION), and endpoint (AWS_ENDPOINT_URL_SQS) where it is not AWS's, or make the queue"
            ) from error

    def receive(self, hear: Hear) -> int:
        """Wait for messages (one request, 20 s at most) and have them heard; how many there were.

        Raises:
            StepError: what came could not be decided on; it comes again.
        """
        try:
            asked = {"QueueUrl": self._url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": _WAIT_SECONDS}
            messages = self._client.receive_message(**asked).get("Messages", [])
            for message in messages:
                hear(message["Body"], "sqs")
                self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
        except self._errors as error:
            from argosy.steps.contract.causes import Cause

            raise StepError(Cause.S3_ACCESS, f"the queue {self._url} did not answer: {error}") from error
        return len(messages)


def open_queue(event_source: Mapping[str, Any]) -> Queue | None:
    """What of a run's ``[trigger.event_source]`` brings announcements to one machine; the others need Argo Events."""
    fields = event_source.get("sqs")
    return None if fields is None else Queue(fields)


class Webhook:
    """Takes announcements by POST; 200 says that they were decided on and that the decision is stored."""

    def __init__(self, where: str, secret: str, hear: Hear) -> None:
        """``where``: HOST:PORT (port 0: any). ``secret`` "": from this machine only.

        Raises:
            InputError: ``where`` cannot be listened on, or is open to others without a secret.
        """
        host, _, port = where.rpartition(":")
        host = host.strip("[]")
        if not host or not port.isdigit():
            raise InputError(f"--listen {where!r}: not HOST:PORT; write for example --listen 127.0.0.1:8080")
        if not secret and host not in ("127.0.0.1", "localhost", "::1"):
            raise InputError(f"--listen {where}: others can reach it; set ${SECRET} to what signs their requests")
        try:
            self._server = _Server((host, int(port)), _handler(os.fsencode(secret), hear))
        except (OSError, OverflowError) as error:
            remedy = "name an address of this machine and a free port, at most 65535"
            raise InputError(f"--listen {where}: {error}; {remedy}") from error
        self.url = f"http://{where.rpartition(':')[0]}:{self._server.server_address[1]}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Take no more."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Serves few at once: each has a file open, and a watch that can open none starts nothing."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._free = threading.Semaphore(_SENDERS)
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)  # it sends again, or a look finds it

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a sender that has left is no error of ours
            super().handle_error(request, client_address)


def authentic(secret: bytes, headers: Any, body: bytes) -> bool:
    """Whether the sender knows the secret: an HMAC-SHA256 of the body, or the secret itself as a bearer's token.

    Compared in constant time. Senders that can sign do so (``X-Argosy-Signature`` or ``X-Hub-Signature-256``:
    ``sha256=HEX``); MinIO, SNS and Azure can only send a token.
    """
    signed = headers.get("X-Argosy-Signature") or headers.get("X-Hub-Signature-256")
    if signed is not None:
        wanted = "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(signed.encode("latin-1", "replace"), wanted.encode())
    token = headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(token.encode("latin-1", "replace"), secret)


def _handler(secret: bytes, hear: Hear) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENCE_SECONDS
        server_version, sys_version = "argosy", ""

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdigit()):
                return self._answer(411, {"error": "no Content-Length"})
            if len(length) > 9 or int(length) > MAX_EVENT_BYTES:
                return self._answer(413, {"error": f"an event has at most {MAX_EVENT_BYTES} bytes"})
            body = self.rfile.read(int(length))
            if secret and not authentic(secret, self.headers, body):
                return self._answer(401, {"error": "not signed with the secret"})
            if len(body) < int(length):
                return self._answer(400, {"error": "the body ended early"})
            try:
                decisions = hear(body, "webhook")
            except (StepError, OSError) as error:
                return self._answer(503, {"error": str(error)})
            self._answer(200, {"decisions": [[each.decision, each.subject, each.why] for each in decisions]})

        def _answer(self, code: int, record: dict[str, Any]) -> None:
            data = json.dumps(record).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Connection", "close")
            with suppress(OSError):  # versitygw waits three seconds for an answer and leaves; the decision is stored
                self.end_headers()
                self.wfile.write(data)
            self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
