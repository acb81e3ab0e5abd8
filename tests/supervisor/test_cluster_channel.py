"""The channel's objects of a gang on a cluster, when somebody tidies up and when a quota is full."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.cluster.connecting import connect
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.gang.host import Identity
from argosy.steps.gang.kubernetes import KubernetesHost
from argosy.steps.gang.manifest import GangManifest, read_manifest
from tests.cli.api_server import FakeApi, serving

GOLDEN = Path(__file__).parents[1] / "goldens" / "two-nodes-cpu.yaml"
CHANNEL = ["secrets", "services", "networkpolicies", "networkpolicies"]


class Namespace(FakeApi):
    """Says the same of each thing of the channel that is to be made."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__({"metadata": {"name": "w"}})
        self.said, self.made = (status, {"reason": reason, "message": f"{reason}: as this namespace is"}), list[str]()
        self.over = threading.Event()

    def answer(self, path: str, query: dict[str, list[str]]) -> bytes | None:
        if "watch" in query:
            self.over.wait(30)
            return b""
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": []}).encode()

    def write(self, method: str, path: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        self.made.append(path.rpartition("/")[2])
        return (201, document) if self.made[-1] not in CHANNEL else self.said


@pytest.fixture
def manifest(tmp_path: Path) -> GangManifest:
    workflow = yaml.safe_load(GOLDEN.read_text())
    train = next(each for each in workflow["spec"]["templates"] if each["name"] == "train")
    (tmp_path / "gang.yaml").write_text(train["inputs"]["artifacts"][0]["raw"]["data"])
    return read_manifest(tmp_path / "gang.yaml")


@pytest.mark.parametrize(
    ("status", "reason", "asked"),
    [
        (409, "AlreadyExists", CHANNEL),  # each once, by a dry run: a quota counts what is to be made
        (403, "Forbidden", CHANNEL),  # by a full quota, also what is there already
        (201, "", [each for each in CHANNEL for _ in range(2)]),  # gone
    ],
)
def test_a_gang_does_not_end_for_what_is_there_already(
    status: int, reason: str, asked: list[str], manifest: GangManifest, tmp_path: Path, capfd: Any
) -> None:
    namespace = Namespace(status, reason)
    with serving(namespace, tmp_path) as kubeconfig:
        host = KubernetesHost(connect(kubeconfig=str(kubeconfig)), manifest, Owner(name="w", uid="u-1"), "token")
        try:
            assert host.endpoint().token == "token"
            assert namespace.made == asked
            for attempt in (1, 2):
                host.create(manifest, Identity(name=f"w-{attempt}", attempt=attempt, nnodes=2, env={}))
        finally:
            host.close()
            namespace.over.set()
    assert namespace.made == [*asked, "jobsets", *asked, "jobsets"]
    assert ("is still there is not known" in capfd.readouterr().err) is (status == 403)
