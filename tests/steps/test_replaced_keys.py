"""Keys of S3 that are replaced while data are staged: a pod keeps those it began with, another has the new ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.arguments import LaunchArgs, SnapshotArgs, StageArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import StandBy
from argosy.steps.contract.errors import StepError
from argosy.steps.data import fetching
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.prepare import prepared_data
from tests.s3 import S3Server
from tests.s3.faults import Seen

OBJECTS = {f"part-{number:02}": bytes([number]) * 1000 for number in range(40)}


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server(("lake",)) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        for key, data in OBJECTS.items():
            server.buckets["lake"].put(key, data)
        yield server


def after(count: int) -> Callable[[Seen], str]:
    """Everything is refused once so many reads of whole objects were served."""
    seen: list[Seen] = []

    def plan(request: Seen) -> str:
        seen.append(request)
        reads = sum(one.operation == "GetObject" and not one.range.endswith("=0-0") for one in seen)
        return "denied" if reads > count else ""

    return plan


def test_a_long_stage_is_given_one_more_pod(pods: Any, lake: S3Server) -> None:
    """It ended with 78, hours after it had begun, where a training would have had new pods."""
    digest = pods.run(SnapshotArgs, dataset_uri="s3://lake").outputs["dataset-digest"]
    pods.env["ARGOSY_MOUNTS"] = json.dumps({"/shared": str(pods.folder / "volume")})
    given = {"dataset_digest": digest, "mode": "shared", "layout": "replicated", "path": "/shared"}
    lake.begin(after(10))
    told = pods.run(StageArgs, **given)
    assert told.code == 75, told.err
    assert "it was allowed until now, and the next pod reads its keys anew" in told.err
    lake.begin(lambda _: "denied")
    assert pods.run(StageArgs, **given).code == 78, "the next pod had what the Secret holds now"
    lake.begin(lambda seen: "denied" if seen.path.endswith("part-33") else "")
    assert pods.run(StageArgs, **given).code == 78, "what a policy forbids is forbidden to the next pod, too"


@pytest.mark.parametrize(("began", "code"), [(True, 75), (False, 78)])
def test_a_node_that_fetched_for_hours_asks_for_new_pods(
    pods: Any, lake: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began: bool, code: int
) -> None:
    """Before the first step access that is refused stops a run: it was taken for keys that never were right."""
    monkeypatch.setattr(fetching, "TELL_SECONDS", 0.0)
    digest = pods.run(SnapshotArgs, dataset_uri="s3://lake").outputs["dataset-digest"]
    data = str(tmp_path / "data")
    args = LaunchArgs(store_uri=pods.store_uri, name="run", script="train.py", staging="node", data_path=data)
    one = StandBy(nnodes=1, workflow="wf-1", dataset_digest=digest)
    me = Identity("pod", "node", 0, "http://unused", "token", "g")
    came = [0 if began else 1]
    # The second half is not served before it is known that something has come, and refused then.
    lake.begin(lambda seen: "denied" if came[0] else "slow-down" if seen.path >= "/lake/part-20" else "")

    def tell(_kind: str, **told: Any) -> None:
        came[0] = came[0] or told["fetched_bytes"]

    with pytest.raises(StepError) as caught, prepared_data(args, one, pods.store, me, tell, lambda: None):
        pass
    assert (caught.value.cause, caught.value.code) == (Cause.S3_ACCESS, code)
