"""Announcements on one machine: HTTP that must be signed, and a queue whose messages go when they are decided on."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import select
import socket
import struct
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError, StepError
from argosy.workflows.cli.watch.sources import Queue, Webhook
from tests.events.world import World
from tests.s3.moto import moto

SECRET = "s3cret"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def post(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=10)
    connection.request("POST", "/", body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def signature(body: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def test_a_webhook_takes_what_is_signed_and_small_and_says_what_was_decided(world: World) -> None:
    body = world.dataset("v1").encode()
    webhook = Webhook("127.0.0.1:0", SECRET, world.hearing().hear)
    try:
        refused = [
            post(webhook.url, body)[0],
            post(webhook.url, body, Authorization="Bearer guess")[0],
            post(webhook.url, body, X_Argosy_Signature=signature(body, "other"))[0],
            post(webhook.url, body + b" ", X_Hub_Signature_256=signature(body))[0],
            post(webhook.url, body, X_Argosy_Signature="sha256=ü", Authorization=f"Bearer {SECRET}")[0],
        ]
        assert refused == [401] * 5
        assert world.cluster.calls == []
        assert post(webhook.url, body, X_Argosy_Signature=signature(body))[1]["decisions"][0][0] == "start"
        assert post(webhook.url, body, Authorization=f"Bearer {SECRET}")[1]["decisions"][0][0] == "duplicate"
        large = http.client.HTTPConnection(webhook.url.split("/")[2], timeout=10)
        large.putrequest("POST", "/")
        large.putheader("Content-Length", str((1 << 20) + 1))
        large.endheaders()
        assert large.getresponse().status == 413  # before a byte of it is read
    finally:
        webhook.close()


def test_an_announcement_that_could_not_be_decided_on_comes_again(world: World) -> None:
    def fails(payload: bytes | str, source: str) -> Any:
        raise StepError(Cause.S3_ACCESS, "the store is away")

    webhook = Webhook("127.0.0.1:0", "", fails)
    try:
        assert post(webhook.url, b"{}") == (503, {"error": "the store is away"})
    finally:
        webhook.close()


def test_senders_that_say_nothing_or_leave_take_no_files_from_the_watch(capfd: pytest.CaptureFixture[str]) -> None:
    """Connections that sent nothing took every file the process may open; one that left was a traceback."""
    webhook = Webhook("127.0.0.1:0", "", lambda payload, source: [])
    address = ("127.0.0.1", int(webhook.url.split(":")[2].strip("/")))
    threads = threading.active_count()
    try:
        left = socket.create_connection(address)
        left.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        left.sendall(b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n")
        until(lambda: threading.active_count() > threads)
        left.close()
        until(lambda: threading.active_count() == threads)
        silent = [socket.create_connection(address) for _ in range(80)]
        until(lambda: any(readable(each) for each in silent))
        assert threading.active_count() <= threads + 64
        for each in silent:
            each.close()
        until(lambda: threading.active_count() == threads)
        assert post(webhook.url, b"{}")[0] == 200
    finally:
        webhook.close()
    assert "Traceback" not in capfd.readouterr().err


def readable(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0)[0])


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_listens_where_addresses_have_colons() -> None:
    """[::1] was "others can reach it", and with a secret no address of this machine."""
    webhook = Webhook("[::1]:0", "", lambda payload, source: [])
    try:
        port = int(webhook.url.removeprefix("http://[::1]:").strip("/"))
        connection = http.client.HTTPConnection("::1", port, timeout=10)
        connection.request("POST", "/", b"{}")
        assert connection.getresponse().status == 200
    finally:
        webhook.close()
    with pytest.raises(InputError, match="others can reach it"):
        Webhook("[::]:0", "", lambda payload, source: [])


@pytest.mark.parametrize("where", ["0.0.0.0:0", "example:99999", "8080", "127.0.0.1:x"])
def test_where_it_must_not_or_cannot_listen(where: str) -> None:
    with pytest.raises(InputError, match="--listen"):
        Webhook(where, "", lambda payload, source: [])


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name, value in {
        "ACCESS_KEY_ID": "a",
        "SECRET_ACCESS_KEY": "b",
        "REGION": "us-east-1",
        "DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with moto() as endpoint:
        yield boto3.client("sqs", endpoint_url=endpoint)


def test_a_message_is_deleted_when_its_decision_is_stored(
    world: World, sqs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"q-{uuid.uuid4().hex[:8]}"
    url = sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "0"})["QueueUrl"]
    queue = Queue({"queue": name, "endpoint": sqs.meta.endpoint_url, "region": "us-east-1"})
    for body in (json.dumps({"Event": "s3:TestEvent"}), "no json", world.dataset("v1"), world.dataset("v1")):
        sqs.send_message(QueueUrl=url, MessageBody=body)

    def dies(payload: bytes | str, source: str) -> Any:
        world.hearing().hear(payload, source)
        raise StepError(Cause.S3_ACCESS, "killed before the message was deleted")

    with pytest.raises(StepError):
        queue.receive(dies)
    received = 0
    while received < 4:
        received += queue.receive(world.hearing().hear)
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])["Attributes"]
    assert left == {"ApproximateNumberOfMessages": "0"}
    assert len(world.cluster.started) == 1
    with pytest.raises(InputError, match=r"event_source\.sqs\.queue = 'absent' at http://.*NonExistentQueue"):
        Queue({"queue": "absent", "endpoint": sqs.meta.endpoint_url, "region": "us-east-1"})
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    Queue({"queue": name, "endpoint": sqs.meta.endpoint_url})
    monkeypatch.delenv("AWS_REGION")
    for fields, said in (({}, "specify a region"), ({"region": "us-east-1", "endpoint": "host:1"}, "Invalid endpoint")):
        with pytest.raises(InputError, match=f"{said}.*; write its region"):
            Queue({"queue": name, **fields})
