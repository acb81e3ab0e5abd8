"""New data start runs through real Argo Events: announced several times each, each dataset starts one workflow."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.events.journal import Journal
from argosy.steps.store import open_store
from tests.cluster.argo_events import argo_events, bus, listeners
from tests.cluster.cluster import Cluster
from tests.cluster.component import Component
from tests.cluster.progress import wait_for

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
DATASETS = int(os.environ.get("ARGOSY_EVENTS", "6"))
"""CI has no time for more; ARGOSY_EVENTS=50 is the proof."""
TOKEN = "only-the-bucket-knows"
RUN = """
name = "fed"
script = "train.py"
code = ""
module = ""
secrets = ["s3"]
[env]
AWS_ENDPOINT_URL = "{endpoint}"
AWS_REGION = "us-east-1"
[storage]
uri = "s3://{bucket}/store"
[dataset]
uri = "s3://{bucket}/corpus"
[trigger]
marker = ["_SUCCESS"]
max_starts_per_hour = 1000
event_bus = "bus"
[trigger.event_source.webhook]
"""


@pytest.fixture(scope="module")
def events(cluster: Cluster) -> Iterator[dict[str, Component]]:
    with argo_events(cluster) as made:
        yield made


class Fed:
    """One namespace with the trigger installed, and its bucket."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, events: Mapping[str, Component]) -> None:
        self.cluster, self.namespace, self.folder = cluster, namespace, folder
        cluster.create_bucket(namespace)
        cluster.create_s3_secret(namespace)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fed-webhook"}}
        cluster.api.apply([{**secret, "stringData": {"token": TOKEN}}, bus(cluster, "bus")], namespace)
        text = RUN.format(endpoint=cluster.s3_endpoint, bucket=namespace).replace('script = "train.py"\n', "")
        (folder / "run.toml").write_text(text.replace('module = ""', 'module = "json.tool"'))
        self.put("old")
        put_in = int(time.time())
        # The API server writes down when a template was created in whole seconds.
        wait_for("the next second", lambda: int(time.time()) > put_in, 5)
        self.argosy("install", "-n", namespace, "--trigger", "run.toml", "--apply")
        for kind in ("eventsource", "sensor"):
            wait_for(f"the pod of the {kind}", lambda kind=kind: self.pod(kind) is not None, 180, every=1)  # type: ignore[misc]
        wait_for("the sensor to listen", lambda: listeners(events) > 0, 120, every=0.5)
        wait_for("the event source to answer", lambda: self.announce(b"{}", token="nobody") != 0, 120, every=1)

    def argosy(self, *words: str) -> str:
        environment = {**os.environ, **self.cluster.s3_environment, "KUBECONFIG": str(self.cluster.kubeconfig)}
        done = subprocess.run(
            [*ARGOSY, *words], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def pod(self, kind: str) -> str | None:
        """The address of a ready pod of the event source or the sensor."""
        found = self.cluster.kubectl(
            "get", "pods", "-n", self.namespace, "-l", f"{kind}-name=fed-trigger", "-o", "json"
        )
        for pod in json.loads(found)["items"]:
            ready = [each["status"] for each in pod["status"].get("conditions", []) if each["type"] == "Ready"]
            if ready == ["True"] and "deletionTimestamp" not in pod["metadata"]:
                return str(pod["status"]["podIP"])
        return None

    def put(self, name: str) -> bytes:
        """A complete dataset; returns its announcement."""
        client = self.cluster.s3_client()
        client.put_object(Bucket=self.namespace, Key=f"corpus/{name}/part-0", Body=name.encode())
        client.put_object(Bucket=self.namespace, Key=f"corpus/{name}/_SUCCESS", Body=b"")
        item = {"bucket": {"name": self.namespace}, "object": {"key": f"corpus/{name}/_SUCCESS", "eTag": "e"}}
        return json.dumps({"Records": [{"eventName": "ObjectCreated:Put", "s3": item}]}).encode()

    def announce(self, body: bytes, token: str = TOKEN) -> int:
        """POST it to the event source; its status, 0 when it is away."""
        # Pods are reached from the control plane's network, where the API server and other pods' traffic come from.
        inside = f"--net=/run/netns/{self.cluster.instance.name}"
        command = ["nsenter", inside, "--", "curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}"]
        headers = [f"Authorization: Bearer {token}", "Content-Type: application/json"]
        options = [word for header in headers for word in ("-H", header)]
        url = f"http://{self.pod('eventsource')}:12000/fed"
        command += [*options, "--noproxy", "*", "--data-binary", "@-", url]
        done = subprocess.run(command, input=body, capture_output=True, check=False)
        return int(done.stdout or 0)

    def runs(self) -> list[dict[str, Any]]:
        """Workflows that were started for data."""
        found = self.cluster.kubectl("get", "workflows", "-n", self.namespace, "-l", "argosy.dev/run=fed", "-o", "json")
        return list(json.loads(found)["items"])

    def subjects(self) -> list[str]:
        """The data of each of them, sorted."""
        given = [run["spec"]["arguments"]["parameters"] for run in self.runs()]
        return sorted(each["value"] for parameters in given for each in parameters if each["name"] == "dataset-uri")

    def journal(self) -> Journal:
        return Journal(open_store(f"s3://{self.namespace}/store"), "fed")


@pytest.fixture
def fed(
    cluster: Cluster, events: dict[str, Component], namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Fed:
    for key, value in cluster.s3_environment.items():
        monkeypatch.setenv(key, value)
    return Fed(cluster, namespace, tmp_path, events)


@pytest.mark.timeout(1800)
def test_each_dataset_starts_once_while_what_announces_it_is_killed(fed: Fed, events: dict[str, Component]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    names = [f"v{number}" for number in range(DATASETS)]
    bodies = [body for name in names for body in [fed.put(name)] * dice.randint(1, 5)]
    dice.shuffle(bodies)
    assert fed.announce(bodies[0], token="guessed") in (400, 401, 403)
    victims = ["sensor", "eventsource", "nats-server", "argo-events", "workflow-controller"]
    killed_before = {len(bodies) * place // (len(victims) + 1): victim for place, victim in enumerate(victims, 1)}
    assert len(killed_before) == len(victims)
    for number, body in enumerate(bodies):
        if victim := killed_before.get(number):
            kill(fed, events, victim)
        wait_for("an announcement to be taken", lambda body=body: fed.announce(body) == 200, 120, every=0.5)  # type: ignore[misc]
    try:
        wait_for("every dataset to be started", lambda: len(fed.runs()) >= DATASETS, 900, every=2)
    finally:
        print(fed.argosy("events", "run.toml"), fed.cluster.argo("list", namespace=fed.namespace), sep="\n")
    assert fed.subjects() == sorted(f"s3://{fed.namespace}/corpus/{name}" for name in names)
    journal = fed.journal()
    assert journal.last() == DATASETS
    assert journal.undone() == []
    for name in names:
        why = json.loads(fed.argosy("events", "why", f"s3://{fed.namespace}/corpus/{name}", "run.toml", "--json"))
        assert [each["decision"] for each in why["decisions"]].count("start") == 1


def kill(fed: Fed, events: dict[str, Component], victim: str) -> None:
    if victim in events:
        events[victim].restart()
    elif victim == "workflow-controller":
        fed.cluster.component(victim).restart()
    else:
        fed.cluster.kubectl("delete", "pod", "-n", fed.namespace, "-l", f"{victim}-name=fed-trigger", "--force",
                            "--grace-period=0", "--wait=false")  # fmt: skip
        wait_for(f"the {victim}'s pod", lambda: fed.pod(victim) is not None, 120, every=1)


def test_an_event_is_an_admitted_workflow_within_seconds(fed: Fed) -> None:
    """Printed, not asserted: what a machine under load takes says nothing of the way."""
    taken = []
    for number in range(5):
        body, before = fed.put(f"t{number}"), len(fed.runs())
        began = time.monotonic()
        assert fed.announce(body) == 200
        wait_for("its run", lambda before=before: len(fed.runs()) > before, 60, every=0.1)  # type: ignore[misc]
        taken.append(round(time.monotonic() - began, 2))
    print(f"event to admitted workflow, seconds: {sorted(taken)}")


def test_the_reconciler_starts_what_no_event_told_of(fed: Fed) -> None:
    for number in (1, 2):  # the first look, too: what came since the installation is new, and what was there is not
        fed.put(f"v{number}")
        look = fed.cluster.argo(
            "submit", "--from", "workflowtemplate/fed-trigger", "-o", "name", namespace=fed.namespace
        )
        ended = fed.cluster.wait_workflow(look.strip().rpartition("/")[2], fed.namespace, 120)
        assert ended["status"]["phase"] == "Succeeded"
        assert fed.subjects() == [f"s3://{fed.namespace}/corpus/v{each}" for each in range(1, number + 1)]


def test_what_compiles_is_accepted_strictly(cluster: Cluster, events: object, namespace: str, tmp_path: Path) -> None:
    kinds = {
        "sqs": 'queue = "q"\nregion = "eu-west-1"',
        "minio": 'endpoint = "minio:9000"\nbucket = { name = "b" }',
        "webhook": "",
        "pubSub": 'projectID = "p"\ntopic = "t"\nsubscriptionID = "s"',
        "azureQueueStorage": 'queueName = "q"\nstorageAccountName = "a"',
        "kafka": 'url = "kafka:9092"\ntopic = "t"\npartition = "0"',
        "calendar": 'schedule = "0 2 * * *"',
    }
    for kind, fields in kinds.items():
        text = RUN.format(endpoint="http://s3", bucket="bucket").replace('script = "train.py"\n', "")
        text = text.replace('module = ""', 'module = "json.tool"').replace('event_bus = "bus"\n', "")
        text = text.replace("[trigger.event_source.webhook]", f"[trigger.event_source.{kind}]\n{fields}")
        (tmp_path / "run.toml").write_text(text)
        done = subprocess.run(
            [*ARGOSY, "install", "-n", namespace, "--trigger", "run.toml"],
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        cluster.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", stdin=done.stdout)
        assert len(list(yaml.safe_load_all(done.stdout))) > 10
