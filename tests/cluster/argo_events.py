"""Argo Events beside a cluster: its controller, a JetStream for its buses, and the image of its pods."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster import binaries
from tests.cluster.cluster import Cluster
from tests.cluster.component import DIRECT, Component
from tests.cluster.images import USERS, Archive
from tests.cluster.instance import cache_folder
from tests.cluster.operators import wait_served
from tests.cluster.pin import Pin

PINS = Path(__file__).with_name("events.toml")
IMAGE = "quay.io/argoproj/argo-events:v1.9.6"
NATS_PORT, NATS_HEALTH, CONTROLLER_HEALTH = 4222, 8222, 8281


def obtain() -> dict[str, Path]:
    """The folder of both programs' pins; what is nowhere is built, once."""
    return binaries.obtain({name: Pin(name, **row) for name, row in tomllib.loads(PINS.read_text()).items()})


def bus(cluster: Cluster, name: str) -> dict[str, Any]:
    """An EventBus over the JetStream that runs beside the cluster."""
    url = f"nats://{cluster.instance.control_address}:{NATS_PORT}"
    spec = {"jetstreamExotic": {"url": url, "streamConfig": "replicas: 1\nduplicates: 300s\n"}}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "EventBus", "metadata": {"name": name}, "spec": spec}


def listeners(events: Mapping[str, Component]) -> int:
    """How many consumers JetStream has: a Sensor is told of what comes once it has its own, after its pod is Ready."""
    asked = events["nats-server"].health.replace("/healthz", "/jsz")
    with DIRECT.open(asked, timeout=20) as answer:
        return int(json.load(answer)["consumers"])


@contextmanager
def argo_events(cluster: Cluster) -> Iterator[dict[str, Component]]:
    """Controller and JetStream, running; ended afterwards."""
    folders = obtain()
    crds = folders["argo-events"] / "manifests" / "argo-events" / "manifests" / "base"
    definitions = [yaml.safe_load(path.read_text()) for path in sorted((crds / "crds").glob("argoproj.io_*.yaml"))]
    cluster.api.apply(definitions)
    wait_served(cluster.api, definitions)
    _load_image(cluster, folders["argo-events"] / "argo-events")
    made = {"nats-server": _nats(cluster, folders), "argo-events": _controller(cluster, folders, crds)}
    try:
        for component in made.values():
            component.start()
        for component in made.values():
            component.wait()
        yield made
    finally:
        # Its objects have finalizers, which only it takes off: their namespaces would stay for ever.
        cluster.kubectl("delete", "sensors,eventsources,eventbus", "--all", "--all-namespaces", "--wait=true")
        for component in reversed(made.values()):
            component.kill()


def _load_image(cluster: Cluster, program: Path) -> None:
    target = cache_folder() / "argo-events.tar"
    if not target.exists():
        archive = Archive()
        archive.folder("tmp", 0o1777)
        archive.file("etc/passwd", USERS.encode())
        archive.file("bin/argo-events", program.read_bytes(), 0o755)
        archive.write(target, [IMAGE], {"PATH": "/bin"}, ["/bin/argo-events"])
    cluster.load(target)


def _nats(cluster: Cluster, folders: dict[str, Path]) -> Component:
    instance = cluster.instance
    address = instance.control_address
    command = [folders["nats-server"] / "nats-server", "-js", "-sd", instance.part("jetstream"), "-a", address]
    command += ["-p", str(NATS_PORT), "-m", str(NATS_HEALTH)]
    # Argo Events speaks TLS to a bus, whoever signed its certificate.
    pki = instance.folder / "pki"
    command += ["--tls", "--tlscert", pki / "webhook.crt", "--tlskey", pki / "webhook.key"]
    return Component("nats-server", instance.folder, instance.name, command, f"http://{address}:{NATS_HEALTH}/healthz")


def _controller(cluster: Cluster, folders: dict[str, Path], manifests: Path) -> Component:
    instance = cluster.instance
    settings = yaml.safe_load((manifests / "controller-manager" / "controller-config.yaml").read_text())
    layer = instance.part("etc", "argo-events-layer", "argo-events")
    (layer / "controller-config.yaml").write_text(settings["data"]["controller-config.yaml"])
    # It reads its settings at a fixed path: a second layer over /etc, which only it sees.
    over = f"mount -t overlay overlay -o lowerdir={layer.parent}:/etc /etc"
    program = [folders["argo-events"] / "argo-events", "controller", "--leader-election=false"]
    program += ["--metrics-port=8277", f"--health-port={CONTROLLER_HEALTH}"]
    command = ["unshare", "--mount", "--", "sh", "-c", f'{over} && exec "$@"', "sh", *program]
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "NAMESPACE": "argo", "ARGO_EVENTS_IMAGE": IMAGE}
    environment["IMAGE_PULL_POLICY"] = "IfNotPresent"
    health = f"http://{instance.control_address}:{CONTROLLER_HEALTH}/readyz"
    return Component("argo-events", instance.folder, instance.name, command, health, environment)
