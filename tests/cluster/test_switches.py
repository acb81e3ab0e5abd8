"""The switches that fault tests turn: a node's power, its cable, the API server, etcd, Argo's controller, S3."""

from __future__ import annotations

import time
import urllib.request
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.progress import wait_for

SECURITY = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
OWN = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod(name: str, code: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "argosy/step:0.1.0", "command": ["python", "-c", code]}
    container["securityContext"] = OWN  # type: ignore[assignment]
    spec = {"containers": [container], "securityContext": SECURITY, "restartPolicy": "Never", **more}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def phase(cluster: Cluster, namespace: str, name: str) -> str:
    found = cluster.api.get("v1", "Pod", name, namespace) or {}
    return str(found.get("status", {}).get("phase", ""))


def test_a_node_loses_its_power_and_gets_it_back(cluster: Cluster, namespace: str) -> None:
    node = cluster.nodes["node-c"]
    cluster.api.create(pod("sleeper", "import time; time.sleep(3600)", nodeName="node-c"), namespace)
    wait_for("the pod to run", lambda: phase(cluster, namespace, "sleeper") == "Running", 60)
    node.kill()
    try:
        node.wait_ready(False)
    finally:
        node.up()
        node.wait_ready()
    wait_for("its pod to be known as ended", lambda: phase(cluster, namespace, "sleeper") in ("Failed", ""), 120)


def test_a_node_is_cut_off_and_joined_again(cluster: Cluster, namespace: str) -> None:
    node = cluster.nodes["node-b"]
    node.partition()
    try:
        node.wait_ready(False)
        assert node.init is not None, "it goes on, unheard"
    finally:
        node.heal()
    node.wait_ready()


@pytest.mark.parametrize("name", ["etcd", "kube-apiserver", "workflow-controller", "versitygw"])
def test_a_component_is_killed_and_started_again(cluster: Cluster, name: str) -> None:
    component = cluster.component(name)
    component.kill()
    assert not component.healthy
    component.start()
    component.wait()
    cluster.wait()


def test_the_api_server_stands_still_and_goes_on(cluster: Cluster) -> None:
    server = cluster.component("kube-apiserver")
    server.pause()
    try:
        assert not server.healthy
    finally:
        server.resume()
    server.wait()


def test_s3_is_slow_for_as_long_as_it_is_told(cluster: Cluster, namespace: str) -> None:
    bucket = cluster.create_bucket(namespace)
    client = cluster.s3_client()
    data = bytes(256 * 1024)
    cluster.slow_s3("1mbit")
    try:
        began = time.monotonic()
        client.put_object(Bucket=bucket.removeprefix("s3://"), Key="slow", Body=data)
        slow = time.monotonic() - began
    finally:
        cluster.slow_s3(None)
    assert slow > 1.5, "a quarter of a megabyte needs two seconds at one megabit"
    with urllib.request.urlopen(f"{cluster.s3_endpoint}/health", timeout=10) as answer:
        assert answer.status == 200


def test_pods_find_each_other_by_name_across_nodes(cluster: Cluster, namespace: str) -> None:
    spec = {"clusterIP": "None", "selector": {"gang": "one"}, "publishNotReadyAddresses": True}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "gang"}, "spec": spec}
    cluster.api.create(service, namespace)
    listens = "import socket; s = socket.create_server(('', 8000)); s.accept()[0].sendall(b'hello')"
    first = pod("first", listens, nodeName="node-a", hostname="first", subdomain="gang")
    first["metadata"]["labels"] = {"gang": "one"}
    dials = """
import socket, time
for _ in range(120):
    try:
        with socket.create_connection(("first.gang", 8000), timeout=5) as found:
            print(found.recv(5).decode()); break
    except OSError:
        time.sleep(0.5)
"""
    cluster.api.create(first, namespace)
    cluster.api.create(pod("second", dials, nodeName="node-b"), namespace)
    wait_for("the second pod to end", lambda: phase(cluster, namespace, "second") == "Succeeded", 120, every=0.5)
    assert cluster.kubectl("logs", "second", "-n", namespace) == "hello\n"
