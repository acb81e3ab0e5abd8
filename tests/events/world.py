"""A bucket as a folder, a store, and a cluster that knows a workflow by its name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.contract.trigger_arguments import TriggerArgs
from argosy.steps.events.admission import Admission
from argosy.steps.events.hearing import Hearing
from argosy.steps.events.journal import Decision, Journal
from argosy.steps.store import ObjectStore, open_store


@dataclass
class Cluster:
    """What was started, by name: a name that is there is not started again, as in Kubernetes."""

    place: str = "here"
    started: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    busy: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def running(self) -> list[str]:
        return list(self.busy)

    def start(self, decision: Decision) -> None:
        self.calls.append(decision.workflow)
        self.started.setdefault(decision.workflow, decision.parameters)

    def stop(self, workflow: str) -> None:
        self.stopped.append(workflow)


@dataclass
class World:
    """One run's trigger over ``folder``."""

    folder: Path
    cluster: Cluster = field(default_factory=Cluster)
    clock: float = 1_000_000.0
    settings: dict[str, Any] = field(default_factory=dict)
    installed: float | None = None

    @property
    def store_uri(self) -> str:
        return f"file://{self.folder}/store"

    @property
    def dataset_uri(self) -> str:
        return f"file://{self.folder}/bucket/corpus"

    def hearing(self, store: ObjectStore | None = None) -> Hearing:
        """What a new process has."""
        given = {"max_starts_per_hour": 100} | self.settings
        args = TriggerArgs(store_uri=self.store_uri, name="run", dataset_uri=self.dataset_uri, **given)
        journal = Journal(store or open_store(self.store_uri), "run")
        return Hearing(Admission(args, journal, self.cluster, now=lambda: self.clock), lambda: self.installed)

    def put(self, key: str, text: str = "x") -> None:
        path = self.folder / "bucket" / "corpus" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def dataset(self, name: str, text: str = "") -> str:
        """A complete dataset, and its announcement."""
        self.put(f"{name}/part-0", text or name)
        self.put(f"{name}/_SUCCESS", "")
        return s3_event("bucket", f"corpus/{name}/_SUCCESS")


def s3_event(bucket: str, key: str, **item: Any) -> str:
    """As S3 sends it."""
    record = {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket}, "object": {"key": key, **item}}}
    return json.dumps({"Records": [record]})
