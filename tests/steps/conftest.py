"""Steps as they run in a pod: real processes with their argv, environment, output files and exit code."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.argv import StepArgs
from argosy.steps.contract.layout import run_prefix
from argosy.steps.runlog import Event, read_events
from argosy.steps.store import ObjectStore, open_store
from tests.starts import Started


@dataclass
class Told:
    """What a step left."""

    code: int
    out: str
    err: str
    outputs: dict[str, str]
    termination: str


@dataclass
class Pods:
    """Runs steps of one run's name on one store; every call is a pod with a root of its own."""

    folder: Path
    store_uri: str
    name: str = "run"
    env: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> ObjectStore:
        return open_store(self.store_uri)

    def common(self, workflow: str) -> dict[str, Any]:
        return {"store_uri": self.store_uri, "name": self.name, "workflow": workflow, "workflow_uid": f"uid-{workflow}"}

    def start(self, kind: type[StepArgs], workflow: str = "wf-1", **given: Any) -> tuple[Started, Path]:
        """Start the step; returns the process and the pod's root."""
        root = Path(given.pop("root", None) or self.folder / "pods" / uuid.uuid4().hex)
        root.mkdir(parents=True, exist_ok=True)
        argv = kind(**self.common(workflow) | given).to_argv()
        return Started("-m", kind.MODULE, *argv, env=os.environ | {"ARGOSY_POD_ROOT": str(root)} | self.env), root

    def finish(self, child: Started, root: Path) -> Told:
        out, err = child.communicate(timeout=60)
        assert "Traceback" not in err, err
        found = {path.name: path.read_text() for path in root.glob("argosy/outputs/*")}
        log = root / "dev" / "termination-log"
        return Told(child.wait(), out, err, found, log.read_text() if log.exists() else "")

    def run(self, kind: type[StepArgs], workflow: str = "wf-1", **given: Any) -> Told:
        return self.finish(*self.start(kind, workflow, **given))

    def events(self, workflow: str = "wf-1", kind: str = "") -> list[Event]:
        found = read_events(self.store, run_prefix(self.name, workflow))
        return [event for event in found if kind in ("", event.kind)]

    def json(self, key: str) -> Any:
        return json.loads(self.store.get(key))


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    from tests.s3.moto import moto

    with moto() as endpoint:
        yield endpoint


AWS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def s3(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Make a bucket; returns its uri. The environment of this process and of the pods points at it."""
    import boto3

    for name, value in (AWS | {"AWS_ENDPOINT_URL": moto_url, "AWS_ALLOW_HTTP": "true"}).items():
        monkeypatch.setenv(name, value)

    def make() -> str:
        bucket = f"b-{uuid.uuid4().hex[:12]}"
        client = boto3.client("s3", endpoint_url=moto_url)
        client.create_bucket(Bucket=bucket)
        client.close()
        return f"s3://{bucket}"

    return make


@pytest.fixture
def pods(tmp_path: Path) -> Pods:
    """On a file store."""
    return Pods(tmp_path, f"file://{tmp_path}/store")


@pytest.fixture(params=["file", "s3"])
def any_pods(request: pytest.FixtureRequest, tmp_path: Path) -> Pods:
    """On a file store, and on S3."""
    if request.param == "file":
        return Pods(tmp_path, f"file://{tmp_path}/store")
    return Pods(tmp_path, f"{request.getfixturevalue('s3')()}/some/prefix")


def write(uri: str, files: dict[str, bytes]) -> None:
    """Put objects below a uri."""
    store = open_store(uri)
    for key, content in files.items():
        store.put(key, content)


@pytest.fixture(name="write")
def write_fixture() -> Callable[[str, dict[str, bytes]], None]:
    return write
