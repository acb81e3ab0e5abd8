"""Which events concern which dataset, and on what folder a run starts."""

from __future__ import annotations

import pytest

from argosy.steps.events.matching import match, start_reason
from argosy.steps.events.payload import DatasetEvent


def event(key: str, bucket: str = "datasets", scheme: str = "s3") -> DatasetEvent:
    return DatasetEvent("id", f"{scheme}://{bucket}/{key}", bucket, key, "e")


@pytest.mark.parametrize(
    ("uri", "key", "bucket", "found"),
    [
        ("s3://datasets/ready", "ready/x", "datasets", True),
        ("s3://datasets/ready/", "ready/a/b", "datasets", True),
        ("s3://datasets", "ready/x", "datasets", True),
        ("s3://datasets/ready", "ready", "datasets", False),
        ("s3://datasets/ready", "ready-not/x", "datasets", False),
        ("s3://datasets/ready", "other/x", "datasets", False),
        ("s3://datasets/ready", "ready/x", "elsewhere", False),
        ("gs://datasets/ready", "ready/x", "datasets", False),  # another service's bucket of the same name
        ("file:///mnt/argosy/store/corpus", "corpus/train/0.txt", "local", True),
        ("file:///mnt/argosy/store/corpus", "0.txt", "corpus", True),
        ("file:///data/b/corpus", "corpus/0.txt", "b", True),
        ("file:///data/my%20corpus", "my corpus/0.txt", "b", True),
        ("file:///mnt/argosy/store/corpus", "other/0.txt", "local", False),
        ("file:///mnt/argosy/store/corpus", "corpus", "local", False),
        ("file:///mnt/argosy/corpus/v2", "corpus/0.txt", "local", False),
    ],
)
def test_match(uri: str, key: str, bucket: str, found: bool) -> None:
    reason = match(event(key, bucket), uri)
    assert (reason is None) == found
    decision = start_reason(uri, [event(key, bucket)])
    assert decision.start == found
    assert found or reason in decision.reason


@pytest.mark.parametrize(
    ("uri", "key", "dataset"),
    [
        ("s3://datasets/ready", "ready/_READY", "s3://datasets/ready"),
        ("s3://datasets/ready", "ready/v2/_READY", "s3://datasets/ready/v2"),
        ("s3://datasets/ready", "ready/v2/x.manifest.json", "s3://datasets/ready/v2"),
        ("s3://datasets/", "v3/_SUCCESS", "s3://datasets/v3"),
        ("s3://datasets/ready", "ready/v2/part-0", "s3://datasets/ready"),
        ("s3://datasets/ready", "ready/v2/not_READY", "s3://datasets/ready"),
        ("file:///mnt/argosy/store/corpus", "corpus/v2/_READY", "file:///mnt/argosy/store/corpus/v2"),
        ("file:///mnt/argosy/store/corpus", "corpus/50%/_READY", "file:///mnt/argosy/store/corpus/50%25"),
        ("file:///mnt/argosy/store/corpus", "corpus/_READY", "file:///mnt/argosy/store/corpus"),
    ],
)
def test_a_markers_folder_is_the_dataset(uri: str, key: str, dataset: str) -> None:
    decision = start_reason(uri, [event(key)])
    assert (decision.start, decision.dataset_uri, decision.event_id) == (True, dataset, "id")


def test_a_marker_goes_before_objects_and_markers_can_be_chosen() -> None:
    events = [event("ready/a"), event("ready/v2/_READY"), event("ready/v3/go.txt")]
    assert start_reason("s3://datasets/ready", events).dataset_uri == "s3://datasets/ready/v2"
    assert start_reason("s3://datasets/ready", events, markers=["go.txt"]).dataset_uri == "s3://datasets/ready/v3"


def test_refusal_names_both() -> None:
    decision = start_reason("s3://datasets/ready", [event("x/_READY"), event("y/_READY")])
    assert decision.reason == (
        "the event is for another dataset: s3://datasets/x/_READY is not below s3://datasets/ready (and 1 more)"
    )
    assert not start_reason("", [event("x")]).start
