"""Operators beside a cluster: who makes the pods of runtimes that Kubernetes and JobSet do not know."""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from argosy.workflows.cluster.installation import namespace_manifest
from tests.cluster import binaries
from tests.cluster.cluster import Cluster
from tests.cluster.component import Component
from tests.cluster.operators import FURTHER, register_webhooks, wait_served
from tests.cluster.pin import Pin
from tests.cluster.progress import wait_for

PINS = Path(__file__).with_name("runtimes.toml")
TRAINING_WEBHOOKS, TRAINING_HEALTH = 9643, 8383
MPI_HEALTH = 8080
TRAINER_WEBHOOKS, TRAINER_HEALTH = 9743, 8483
RAY_HEALTH = 8482
VOLCANO_HEALTH = {"vc-scheduler": 11351, "vc-controller-manager": 11352}
SCHEDULING = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
UNBUILT = ("volcano",)
"""Its API is a module nested in it, which Go's module client does not get: it runs where its programs are at hand."""
WEBHOOKS = "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"
LOCAL = "127.0.0.1"
"""API server and operators are in one network namespace."""


@contextmanager
def operators(cluster: Cluster) -> Iterator[set[str]]:
    """All of them that can be had, running, by name; ended afterwards, with webhooks, which would refuse everything."""
    pins = {name: Pin(name, **row) for name, row in tomllib.loads(PINS.read_text()).items()}
    for lacking in binaries.absent({name: pins[name] for name in UNBUILT}):
        del pins[lacking.name]
    found = binaries.obtain(pins)
    with ExitStack() as running:
        for name in pins:
            running.enter_context(OPERATORS[name](cluster, found[name], pins[name].manifest_folder(found[name])))
        running.enter_context(_queued(cluster))
        yield {*pins}


@contextmanager
def _queued(cluster: Cluster) -> Iterator[None]:
    """Kueue serves the kinds that are there when it starts; it looks for others now and then, minutes apart."""
    kueue, authority = cluster.component("kueue"), cluster.instance.folder / "pki" / "ca.crt"
    kueue.restart()
    folders = binaries.obtain()
    register_webhooks(cluster.api, folders, authority, FURTHER)
    try:
        yield
    finally:
        register_webhooks(cluster.api, folders, authority)


@contextmanager
def _training_operator(cluster: Cluster, folder: Path, manifests: Path) -> Iterator[None]:
    """It makes its webhooks' certificates itself, into a Secret that Kubernetes would mount."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "training-operator-webhook-cert"}}
    # Only an external name leads the API server to a service outside of every pod.
    outside = {"type": "ExternalName", "externalName": LOCAL}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "training-operator"}, "spec": outside}
    (hooks,) = _read([manifests / "manifests/base/webhook/manifests.yaml"])
    hooks["metadata"]["name"] = "validator.training-operator.kubeflow.org"
    wanted = ("pytorchjob", "tfjob", "xgboostjob")
    hooks["webhooks"] = [each for each in hooks["webhooks"] if each["name"].split(".")[1] in wanted]
    for each in hooks["webhooks"]:
        path = each["clientConfig"]["service"]["path"]
        where = {"name": "training-operator", "namespace": "kubeflow", "path": path, "port": TRAINING_WEBHOOKS}
        each["clientConfig"] = {"service": where}
    _serve(cluster, _read(manifests / f"manifests/base/crds/kubeflow.org_{each}s.yaml" for each in wanted))
    cluster.api.apply([namespace_manifest("kubeflow")])
    cluster.api.apply([secret, service], "kubeflow")
    options = [f"-health-probe-bind-address={cluster.instance.control_address}:{TRAINING_HEALTH}"]
    options += ["-metrics-bind-address=0", f"-webhook-server-port={TRAINING_WEBHOOKS}"]
    options += [f"-enable-scheme={each}" for each in wanted]
    component = _component(cluster, folder / "training-operator", options, TRAINING_HEALTH, "kubeflow")
    with _hooked(cluster, component, hooks):
        component.start()
        filled = partial(cluster.api.get, "v1", "Secret", secret["metadata"]["name"], "kubeflow")  # type: ignore[index]
        wait_for("the operator's certificates", lambda: "tls.crt" in (filled().get("data") or {}), 60)
        for name in ("tls.key", "tls.crt"):
            (_certificates(cluster, component.name) / name).write_bytes(base64.b64decode(filled()["data"][name]))
        component.wait()
        yield


@contextmanager
def _mpi_operator(cluster: Cluster, folder: Path, manifests: Path) -> Iterator[None]:
    """No webhooks: it looks at a job when it is there."""
    _serve(cluster, _read([manifests / "manifests/base/kubeflow.org_mpijobs.yaml"]))
    instance = cluster.instance
    command = [folder / "mpi-operator", "-kubeConfig", cluster.kubeconfig, "-lock-namespace", "default", "-logtostderr"]
    health = f"http://{instance.control_address}:{MPI_HEALTH}/healthz"
    component = Component("mpi-operator", instance.folder, instance.name, command, health)
    try:
        component.start()
        component.wait()
        yield
    finally:
        component.kill()


@contextmanager
def _trainer(cluster: Cluster, folder: Path, manifests: Path) -> Iterator[None]:
    instance = cluster.instance
    (hooks,) = _read([manifests / "manifests/base/webhook/manifests.yaml"])
    hooks["metadata"]["name"] = "validator.trainer.kubeflow.org"
    authority = base64.b64encode((instance.folder / "pki" / "ca.crt").read_bytes()).decode()
    for each in hooks["webhooks"]:
        url = f"https://{LOCAL}:{TRAINER_WEBHOOKS}{each['clientConfig']['service']['path']}"
        each["clientConfig"] = {"url": url, "caBundle": authority}
    _serve(cluster, _read(sorted((manifests / "manifests/base/crds").glob("trainer.kubeflow.org_*.yaml"))))
    settings = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "certManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": LOCAL, "port": TRAINER_WEBHOOKS},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"{instance.control_address}:{TRAINER_HEALTH}"},
    }
    (instance.folder / "etc" / "trainer.yaml").write_text(yaml.safe_dump(settings))
    for end in ("crt", "key"):
        pair = (instance.folder / "pki" / f"webhook.{end}").read_bytes()
        (_certificates(cluster, "trainer") / f"tls.{end}").write_bytes(pair)
    options = [f"--config={instance.folder / 'etc' / 'trainer.yaml'}"]
    component = _component(cluster, folder / "trainer", options, TRAINER_HEALTH, "default")
    component.start()
    component.wait()
    with _hooked(cluster, component, hooks):
        yield


@contextmanager
def _volcano(cluster: Cluster, folder: Path, manifests: Path) -> Iterator[None]:
    """Scheduler and controllers. Its webhooks would only add what our Jobs say."""
    instance = cluster.instance
    _serve(cluster, _read(sorted((manifests / "config/crd").glob("*/bases/*.yaml"))))
    cluster.api.apply([namespace_manifest("volcano-system")])
    (instance.folder / "etc" / "volcano.yaml").write_text(SCHEDULING)
    made = []
    for name, port in VOLCANO_HEALTH.items():
        address = f"{instance.control_address}:{port}"
        command = [folder / name, f"--kubeconfig={cluster.kubeconfig}", "--leader-elect=false"]
        command += ["--enable-healthz=true", f"--healthz-address={address}"]
        if name == "vc-scheduler":
            command += [f"--scheduler-conf={instance.folder / 'etc' / 'volcano.yaml'}", "--cache-dumper=false"]
        made.append(Component(name, instance.folder, instance.name, command, f"http://{address}/healthz"))
    try:
        for component in made:
            component.start()
        for component in made:
            component.wait()
        yield
    finally:
        for component in made:
            component.kill()


@contextmanager
def _kuberay(cluster: Cluster, folder: Path, manifests: Path) -> Iterator[None]:
    """No webhooks unless asked for, and then of RayClusters only."""
    _serve(cluster, _read(sorted((manifests / "config/crd/bases").glob("*.yaml"))))
    instance = cluster.instance
    address = f"{instance.control_address}:{RAY_HEALTH}"
    command = [folder / "kuberay", f"-kubeconfig={cluster.kubeconfig}", "-enable-leader-election=false"]
    command += ["-metrics-addr=0", f"-health-probe-bind-address={address}"]
    component = Component("kuberay", instance.folder, instance.name, command, f"http://{address}/healthz")
    try:
        component.start()
        component.wait()
        yield
    finally:
        component.kill()


def _component(cluster: Cluster, program: Path, options: list[str], health: int, namespace: str) -> Component:
    """A controller that reads its webhooks' certificates at the usual place: in a /tmp of its own."""
    instance = cluster.instance
    own = _certificates(cluster, program.name).parents[1]
    command = ["unshare", "--mount", "--", "sh", "-c", f'mount --bind {own} /tmp && exec "$@"', "sh", program]
    url = f"http://{instance.control_address}:{health}/readyz"
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "MY_POD_NAMESPACE": namespace, "TMPDIR": "/tmp"}
    return Component(program.name, instance.folder, instance.name, [*command, *options], url, environment)


def _certificates(cluster: Cluster, name: str) -> Path:
    return cluster.instance.part("etc", name, "k8s-webhook-server", "serving-certs")


@contextmanager
def _hooked(cluster: Cluster, component: Component, hooks: dict[str, Any]) -> Iterator[None]:
    cluster.api.apply([hooks])
    try:
        yield
    finally:
        cluster.api.delete(*WEBHOOKS, hooks["metadata"]["name"])
        component.kill()


def _read(paths: Iterable[Path]) -> list[dict[str, Any]]:
    return [each for path in paths for each in yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader) if each]


def _serve(cluster: Cluster, crds: list[dict[str, Any]]) -> None:
    cluster.api.apply(crds)
    wait_served(cluster.api, crds)


OPERATORS = {
    "training-operator": _training_operator,
    "mpi-operator": _mpi_operator,
    "trainer": _trainer,
    "volcano": _volcano,
    "kuberay": _kuberay,
}
