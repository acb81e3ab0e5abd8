"""Events as S3, SQS, SNS and MinIO really send them; everything else is refused in one clear line."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.steps.contract.errors import InputError
from argosy.steps.events.matching import start_reason
from argosy.steps.events.payload import DatasetEvent, parse_events

S3 = {
    "Records": [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": "eu-central-1",
            "eventTime": "2026-11-21T10:00:00.000Z",
            "eventName": "ObjectCreated:Put",
            "userIdentity": {"principalId": "AWS:AIDAEXAMPLE"},
            "requestParameters": {"sourceIPAddress": "192.0.2.3"},
            "responseElements": {"x-amz-request-id": "D82B88E5F771F645", "x-amz-id-2": "vlR7PnpV2Ce81l0PRw6j"},
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "828aa6fc-f7b5-4305-8584-487c791949c1",
                "bucket": {
                    "name": "datasets",
                    "ownerIdentity": {"principalId": "A3I5"},
                    "arn": "arn:aws:s3:::datasets",
                },
                "object": {
                    "key": "ready/v2+of+%C3%BC%2Btext/_READY",
                    "size": 0,
                    "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                    "versionId": "096fKKXTRTtl3on89fVO.nfljtsv6qko",
                    "sequencer": "0055AED6DCD90281E5",
                },
            },
        }
    ]
}
MINIO = {
    "EventName": "s3:ObjectCreated:Put",
    "Key": "datasets/ready/v2/_READY",
    "Records": [
        {
            "eventVersion": "2.0",
            "eventSource": "minio:s3",
            "awsRegion": "",
            "eventTime": "2026-11-21T10:00:00.000Z",
            "eventName": "s3:ObjectCreated:Put",
            "userIdentity": {"principalId": "minioadmin"},
            "requestParameters": {"principalId": "minioadmin", "region": "", "sourceIPAddress": "127.0.0.1"},
            "responseElements": {
                "x-amz-request-id": "16A",
                "x-minio-deployment-id": "2b",
                "x-minio-origin-endpoint": "",
            },
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "Config",
                "bucket": {"name": "datasets", "ownerIdentity": {"principalId": "m"}, "arn": "arn:aws:s3:::datasets"},
                "object": {
                    "key": "ready%2Fv2%2F_READY",
                    "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                    "contentType": "application/octet-stream",
                    "userMetadata": {"content-type": "application/octet-stream"},
                    "sequencer": "16AD2A8E1B0F5E52",
                },
            },
            "source": {"host": "127.0.0.1", "port": "", "userAgent": "MinIO"},
        }
    ],
}
TEST_EVENT = {
    "Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-11-21T10:00:00.000Z", "Bucket": "datasets",
    "RequestId": "5582815E1AEA5ADF", "HostId": "8cLeGAmw098X5cv4Zkwcmo8vvZa3eH3eKxsPzbB9wrR",
}  # fmt: skip


def record(key: str = "ready/v2/_READY", name: str = "ObjectCreated:Put", **item: Any) -> dict[str, Any]:
    return {"eventName": name, "s3": {"bucket": {"name": "datasets"}, "object": {"key": key, "eTag": "e"} | item}}


def sqs(body: Any) -> dict[str, Any]:
    return {"MessageId": "19dd", "ReceiptHandle": "MessageReceiptHandle", "MD5OfBody": "7b", "Body": json.dumps(body)}


def sns(message: Any) -> dict[str, Any]:
    return {
        "Type": "Notification",
        "MessageId": "22b8",
        "TopicArn": "arn:aws:sns:x:1:y",
        "Message": json.dumps(message),
    }


def test_s3_keys_are_decoded_once() -> None:
    (event,) = parse_events(json.dumps(S3))
    assert event.uri == "s3://datasets/ready/v2 of ü+text/_READY"
    assert (event.bucket, event.key) == ("datasets", "ready/v2 of ü+text/_READY")
    (event,) = parse_events(json.dumps({"Records": [record("a%2525")]}))
    assert event.key == "a%25"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda one: one,
        sqs,
        sns,
        lambda one: sqs(sns(one)),
        lambda one: {"Messages": [sqs(one)]},
        lambda one: {"Records": [{"messageId": "1", "eventSource": "aws:sqs", "body": json.dumps(one)}]},
        lambda one: {"Records": [{"EventSource": "aws:sns", "Sns": sns(one)}]},
        lambda one: {"notification": one["Records"]},
        lambda one: {"body": one, "messageId": "x"},
        lambda one: one["Records"],
        lambda one: one["Records"][0],
        lambda one: [one, one],
    ],
)
@pytest.mark.parametrize("sent", [S3, MINIO])
def test_every_envelope_gives_the_same_event(wrap: Any, sent: Any) -> None:
    (plain,) = parse_events(json.dumps(sent))
    assert parse_events(json.dumps(wrap(sent)).encode()) == [plain]


def test_several_records_are_several_events_in_order() -> None:
    body = {"Records": [record("a"), record("b", "ObjectRemoved:Delete"), record("c", "s3:ObjectCreated:Copy")]}
    assert [event.key for event in parse_events(json.dumps(body))] == ["a", "c"]


@pytest.mark.parametrize(
    "nothing",
    [
        TEST_EVENT,
        sqs(TEST_EVENT),
        sns(TEST_EVENT),
        {"Records": [record(name="ObjectRemoved:Delete")]},
        {"Records": [record(name="s3:ObjectAccessed:Get")]},
        {"Records": [record(name="ObjectRestore:Completed")]},
    ],
)
def test_test_events_and_other_kinds_start_nothing(nothing: Any) -> None:
    events = parse_events(json.dumps(nothing))
    assert events == []
    decision = start_reason("s3://datasets/ready", events)
    assert not decision.start
    assert "test event" in decision.reason


def test_the_id_names_the_version_not_the_delivery() -> None:
    def event_id(**item: Any) -> str:
        return parse_events(json.dumps({"Records": [record(**item)]}))[0].id

    assert event_id(sequencer="1") == event_id(sequencer="2")
    assert event_id(eTag='"e"') == event_id()
    assert len({event_id(), event_id(eTag="f"), event_id(versionId="v"), event_id(key="k")}) == 4
    assert event_id(eTag="", sequencer="1") != event_id(eTag="", sequencer="2")


def broken() -> list[Any]:
    """Events with one thing wrong."""

    def without(*path: str) -> Any:
        event = copy.deepcopy(S3)
        node: Any = event["Records"][0]
        for step in path[:-1]:
            node = node[step]
        del node[path[-1]]
        return event

    def with_value(value: Any, *path: str) -> Any:
        event = copy.deepcopy(S3)
        node: Any = event["Records"][0]
        for step in path[:-1]:
            node = node[step]
        node[path[-1]] = value
        return event

    deep: Any = S3
    for _ in range(9):
        deep = sqs(deep)
    key = ("s3", "object", "key")
    bucket = ("s3", "bucket", "name")
    keys = [
        "",
        "../x",
        "/etc/passwd",
        "a//b",
        "a%2F..%2Fb",
        "a%00b",
        "a%0Ab",
        "a%zz",
        "%",
        "%ff%fe",
        "a%5Cb",
        ".",
        "%1B[",
    ]
    buckets = ["", "x", "../..", "a b", "a/b", "b\n", "{{x}}", "-x", "é" * 5]
    return [
        without("eventName"), without("s3", "bucket"), without("s3", "bucket", "name"), without("s3", "object"),
        without("s3", "object", "key"), with_value(None, "s3"), with_value([], "s3"), with_value(7, "eventName"),
        with_value("x", "s3", "bucket"), with_value("x", "s3", "object"), with_value(7, "s3", "object", "eTag"),
        *[with_value(wrong, *key) for wrong in (*keys, None, 7, ["k"], {})],
        *[with_value(wrong, *bucket) for wrong in (*buckets, None, 7)],
        {}, [], 1, None, True, "text", {"Records": []}, {"Records": None}, {"Records": "x"}, {"Records": [1]},
        {"Body": "{"}, {"Message": ""}, {"unknown": 1}, {"Records": [{"body": "not json"}]}, deep,
    ]  # fmt: skip


RAW = [
    b"", b"{", b"\xff\xfe", b"nul", b"[" * 100_000, b'{"Records": [}', b"<xml/>", b'{"a":"' + b"x" * (1 << 20) + b'"}',
]  # fmt: skip


def test_there_are_enough_malformed_events() -> None:
    assert len(broken()) + len(RAW) >= 60


@pytest.mark.parametrize("raw", [*[json.dumps(one).encode() for one in broken()], *RAW])
def test_malformed_events_are_refused_with_place_and_remedy(raw: bytes) -> None:
    with pytest.raises(InputError) as caught:
        parse_events(raw, "event.json")
    said = str(caught.value)
    assert said.startswith("event.json")
    assert "\n" not in said
    assert said.isprintable()
    assert len(said) < 700
    assert ";" in said


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Records", "s3", "bucket", "object", "key", "name", "eventName", "Body", "Message", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_whatever_comes_it_is_events_or_one_clear_line(value: Any) -> None:
    with suppress(InputError):
        events = parse_events(json.dumps(value))
        assert all(isinstance(one, DatasetEvent) for one in events)
