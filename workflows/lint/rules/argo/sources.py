"""EventSources and the bus between them and the sensors."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule


@rule("ARGO045", Level.ERROR, on=Document)
def minio_with_aws(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """The minio source listens by a call that only MinIO answers."""
    del bundle
    for event in document.spec["minio"].entries.values() if document.is_a("EventSource", "argoproj.io") else ():
        endpoint = event["endpoint"]
        if "amazonaws.com" in endpoint.text or "storage.googleapis.com" in endpoint.text:
            yield Problem(
                endpoint,
                f"a minio source at {endpoint.text}: listening for events is a call of MinIO's own, which S3 refuses",
                "send the bucket's notifications to SQS or SNS, and use that source",
            )


@rule("ARGO046", Level.WARNING, on=Document)
def every_object(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A trigger per object: a dataset of 10,000 shards starts 10,000 workflows."""
    del bundle
    for event in document.spec["minio"].entries.values() if document.is_a("EventSource", "argoproj.io") else ():
        if event.is_mapping and not event.at("filter.prefix") and not event.at("filter.suffix"):
            yield Problem(
                event["filter"] if event["filter"].exists else event["bucket"],
                "no filter: every object that is written to the bucket is an event, also each shard of a dataset",
                "filter by prefix and suffix for one object that is written last (a manifest)",
            )


@rule("ARGO047", Level.WARNING, on=Document)
def bus(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """NATS Streaming is dead, and a bus of one pod forgets."""
    del bundle
    if not document.is_a("EventBus", "argoproj.io"):
        return
    native = document.spec.at("nats.native")
    if native.exists:
        yield Problem(
            native,
            "NATS Streaming, which its makers ended in 2023",
            "use jetstream with a version that the controller's configuration lists",
        )
    jet = document.spec["jetstream"]
    if jet["version"].text == "latest":
        yield Problem(
            jet["version"],
            "version: latest of JetStream: the bus changes when its pods are restarted",
            "name a version from argo-events-controller-config",
        )
    if jet["replicas"].number is not None and (jet["replicas"].number or 0) < 3 and not jet["persistence"]:
        yield Problem(
            jet["replicas"],
            f"a JetStream of {jet['replicas'].text} pods without persistence forgets its events with them",
            "set replicas: 3 and persistence",
            level=Level.NOTE,
        )
