"""Whoever can send to the bucket's topic can send anything: each payload ends in decisions or a clear refusal."""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.admission import Admission
from argosy.steps.events.hearing import Hearing
from argosy.steps.events.journal import Journal
from argosy.steps.events.payload import MAX_EVENT_BYTES, parse_events
from argosy.steps.store import open_store
from tests.events.world import Cluster, World

EXAMPLES = 500
BAD = ["", ".", "..", "/", "//", "a/../b", "\0", "\n", "{{workflow.name}}", "{{=sprig.env('X')}}", "$(HOME)", "`id`",
       "'; rm -rf /; '", "\\", "‮", "\ud800", "%", "%00", "%2e%2e%2f", "a" * 2000, "é" * 700, "_SUCCESS", "..\\..\\",
       "__import__('os').system('id')", "<script>", "s3://", "corpus/x/_SUCCESS", "corpus/%2E%2E/_SUCCESS"]  # fmt: skip
key = st.one_of(
    st.sampled_from(BAD), st.text(max_size=60), st.builds("corpus/{}/_SUCCESS".format, st.text(max_size=20))
)
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), key),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=12), inner, max_size=3)),
    max_leaves=8,
)


def formats(bucket: Any, name: Any, etag: Any) -> list[Any]:
    """The same object as every service announces it."""
    escaped = quote(name, safe="") if isinstance(name, str) and name.isprintable() else name
    item = {"bucket": {"name": bucket}, "object": {"key": escaped, "eTag": etag}}
    s3 = {"eventName": "ObjectCreated:Put", "s3": item}
    detail = {"bucket": {"name": bucket}, "object": {"key": name, "etag": etag}}
    attributes = {"eventType": "OBJECT_FINALIZE", "bucketId": bucket, "objectId": name, "objectGeneration": "1"}
    finalized = "google.cloud.storage.object.v1.finalized"
    url = f"https://account.blob.core.windows.net/{bucket}/{escaped}"
    versity = {"configurationId": "webhook-global", "bucket": item["bucket"], "object": {"key": name, "eTag": etag}}
    return [
        {"Records": [s3]},
        {"Records": [{"eventName": "s3:ObjectCreated:Put", "s3": versity}]},
        {"EventName": "x", "Records": [{**s3, "eventName": "s3:ObjectCreated:Put", "eventSource": "ceph:s3"}]},
        {"specversion": "1.0", "id": "1", "source": "x", "type": "com.example", "data": {"Records": [s3]}},
        {"detail-type": "Object Created", "source": "aws.s3", "detail": detail},
        {"attributes": attributes},
        {"specversion": "1.0", "type": finalized, "data": {"bucket": bucket, "name": name}},
        {"eventType": "Microsoft.Storage.BlobCreated", "data": {"url": url, "eTag": etag}},
    ]


WRAPS = ["Message", "body", "Body", "message", "data", "notification", "Sns"]
objects = st.tuples(st.sampled_from(["bucket", "b", "", "../", 7]), st.one_of(key, junk), st.one_of(key, junk))


@st.composite
def payloads(draw: Any) -> bytes:
    value = draw(st.one_of(junk, objects))
    if isinstance(value, tuple):
        value = draw(st.sampled_from(formats(*value)))
    for wrap in draw(st.lists(st.sampled_from(WRAPS), max_size=3)):
        value = {wrap: json.dumps(value) if draw(st.booleans()) else value}
    data = json.dumps(value).encode("utf-8", "surrogatepass")
    if draw(st.booleans()):
        data = base64.b64encode(data)
    if draw(st.integers(0, 9)) == 0:
        data = data[: draw(st.integers(0, len(data)))] + draw(st.binary(max_size=4))
    return data


def memory(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder whose writes wait for no disk: each payload leaves a record."""
    shared = Path("/dev/shm")
    folder = (shared if shared.is_dir() else factory.getbasetemp()) / f"argosy-{os.getpid()}-{name}"
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(payload=payloads())
def test_what_is_not_below_the_dataset_starts_nothing_and_is_not_even_asked_for(
    tmp_path_factory: pytest.TempPathFactory, payload: bytes
) -> None:
    """The dataset's store does not exist: whoever asked it would fail."""
    folder = memory(tmp_path_factory, "foreign")
    args = TriggerArgs(store_uri=f"file://{folder}", name="run", dataset_uri="s3://ours/only")
    cluster = Cluster()
    decisions = Hearing(Admission(args, Journal(open_store(args.store_uri), "run"), cluster)).hear(payload, "test")
    assert all(each.decision == "refused" and each.why and each.why.isprintable() for each in decisions)
    assert cluster.calls == []


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(payload=payloads())
def test_what_is_below_it_starts_only_what_is_there(tmp_path_factory: pytest.TempPathFactory, payload: bytes) -> None:
    world = World(memory(tmp_path_factory, "own"))
    if not (world.folder / "bucket").exists():
        world.dataset("real")
    decisions = world.hearing().hear(payload, "test")
    assert all(each.decision in ("start", "duplicate", "refused") and each.why for each in decisions)
    allowed = {f"{world.dataset_uri}/real"}
    assert {each["dataset-uri"] for each in world.cluster.started.values()} <= allowed


def test_every_format_names_the_same_object() -> None:
    found = [parse_events(json.dumps(form)) for form in formats("bucket", "corpus/a b+ü/_SUCCESS", "e")]
    assert {(each.bucket, each.key) for events in found for each in events} == {("bucket", "corpus/a b+ü/_SUCCESS")}
    assert [events[0].uri[:2] for events in found] == ["s3", "s3", "s3", "s3", "s3", "gs", "gs", "az"]


def test_what_is_missing_is_called_so() -> None:
    record = {"s3": {"bucket": {"name": "b"}, "object": {"key": "k"}}}
    with pytest.raises(InputError, match=r"Records\[0\]\.eventName: is missing; save the notification"):
        parse_events(json.dumps({"Records": [record]}), "webhook")


def test_a_body_over_a_mebibyte_is_not_read() -> None:
    with pytest.raises(InputError, match="at most 1048576"):
        parse_events(b" " * (MAX_EVENT_BYTES + 1))


def test_a_deep_or_wide_payload_ends_soon() -> None:
    for payload in (b"[" * 100_000, b'{"body":' * 100_000, b'"' + b'\\"' * 1000 + b'"', b"9" * 5000):
        with pytest.raises(InputError):
            parse_events(payload)
    many = json.dumps(formats("bucket", "k", "e")[:1] * 3000)
    assert len(parse_events(many)) == 1
