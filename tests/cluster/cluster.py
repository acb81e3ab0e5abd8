"""A whole cluster: started, swept away, and what tests do with it."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from tests.cluster import binaries, certificates, cgroups, control_plane, images, machine, network, operators
from tests.cluster.client import Client
from tests.cluster.component import Component
from tests.cluster.instance import NODE_NAMES, Instance, alone
from tests.cluster.node import Node
from tests.cluster.pin import pins
from tests.cluster.progress import ClusterError, say, wait_for

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Cluster(Client):
    """The cluster of an instance, whether this program started it or another did."""

    def __init__(self, instance: Instance | None = None) -> None:
        self.instance = instance or Instance.from_environment()
        super().__init__(self.instance.kubeconfig, self.instance.folder / "bin")
        self.nodes = {name: Node(name, self.instance, self.api) for name in NODE_NAMES}
        self.s3_endpoint = f"http://{self.instance.s3_address}:{control_plane.S3_PORT}"
        self.s3_keys = control_plane.S3_KEYS

    @cached_property
    def components(self) -> dict[str, Component]:
        """By name: etcd, kube-apiserver, workflow-controller, versitygw …"""
        return control_plane.components(self.instance)

    def component(self, name: str) -> Component:
        """One of them. Raises ClusterError with the names there are."""
        if name not in self.components:
            raise ClusterError(f"{name}: no component; there are {', '.join(self.components)}")
        return self.components[name]

    @property
    def running(self) -> bool:
        """Whether every program of it lives, well or not."""
        processes = [component.process for component in self.components.values()]
        return all(process.pid is not None for process in (*processes, *(node.process for node in self.nodes.values())))

    @property
    def healthy(self) -> bool:
        """Whether every component and every node says that it is well."""
        with contextlib.suppress(ClusterError):
            asked = all(component.healthy for component in self.components.values())
            return asked and all(node.ready for node in self.nodes.values())
        return False

    def wait(self, seconds: float = 180) -> None:
        """Until it is healthy."""
        wait_for(
            f"{self.instance.name} to be well", lambda: self.healthy, seconds, f"logs: {self.instance.folder}/log", 1
        )

    def up(self) -> None:
        """Start it from nothing; what an earlier start left is swept away first."""
        machine.prepare()
        folders = binaries.obtain()
        with alone(self.instance.name):
            self._sweep()
            say(f"{self.instance.name}: state and logs in {self.instance.folder}")
            try:
                self._start(folders)
            except BaseException:
                network.remove(self.instance)
                cgroups.remove(self.instance)
                raise

    def _start(self, folders: dict[str, Path]) -> None:
        instance = self.instance
        for name in ("run", "log", "bin", "images"):
            instance.part(name)
        binaries.link(folders, self.bin)
        certificates.make(instance)
        control_plane.configure(instance)
        images.base_spec(instance.folder / "base-spec.json", folders["argo-workflows"] / "argoexec")
        images.pause(instance.folder / "images" / "pause.tar")
        images.executor(instance.folder / "images" / "argoexec.tar", pins()["argo-workflows"].version)
        images.thin(self._own_image, images.project_names() + images.EXAMPLES)
        network.create(instance)
        first = [self.component(name) for name in ("etcd", "kube-apiserver", "versitygw")]
        for component in first:
            component.start()
        for node in self.nodes.values():
            node.up()
        for component in first:
            component.wait()
        say("etcd, API server, S3")
        second = [self.component(name) for name in ("kube-controller-manager", "kube-scheduler", "coredns")]
        for component in second:
            component.start()
        operators.install(self.api, folders)
        say("CRDs")
        second += [self.component(name) for name in ("workflow-controller", "jobset", "kueue")]
        for component in second:
            component.start()
        for component in second:
            component.wait()
        operators.register_webhooks(self.api, folders, instance.folder / "pki" / "ca.crt")
        say("controllers, DNS, Argo, JobSet, Kueue")
        for node in self.nodes.values():
            node.wait_ready()
        say(f"{len(self.nodes)} nodes are Ready: export KUBECONFIG={self.kubeconfig} PATH={self.bin}:$PATH")

    def down(self) -> int:
        """End everything of the instance, whoever started it; the logs stay. Returns how many processes ended."""
        with alone(self.instance.name):
            return self._end()

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """For as long as it is needed: the one that runs, with the code of this checkout, else one that is started now
        and ended afterwards.
        """
        if self.running:
            self.refresh()
            yield
            return
        self.up()
        try:
            yield
        finally:
            self.down()

    def _end(self) -> int:
        ended = network.remove(self.instance)
        cgroups.remove(self.instance)
        for name in ("nodes", "etcd", "s3"):
            shutil.rmtree(self.instance.folder / name, ignore_errors=True)
        return ended

    def _sweep(self) -> None:
        if ended := self._end():
            say(f"{self.instance.name}: {ended} processes of an earlier start were ended")
        shutil.rmtree(self.instance.folder, ignore_errors=True)

    @property
    def _own_image(self) -> Path:
        return self.instance.folder / "images" / "project.tar"

    def refresh(self) -> None:
        """Give the nodes of a running cluster the code of this checkout when it has changed."""
        self.wait()
        before = hashlib.sha256(self._own_image.read_bytes()).hexdigest()
        images.thin(self._own_image, images.project_names() + images.EXAMPLES)
        if hashlib.sha256(self._own_image.read_bytes()).hexdigest() != before:
            self.load(self._own_image)

    @property
    def s3_environment(self) -> dict[str, str]:
        """What a client of the S3 gateway needs, here and in pods."""
        return {
            "AWS_ENDPOINT_URL": self.s3_endpoint,
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": self.s3_keys["access"],
            "AWS_SECRET_ACCESS_KEY": self.s3_keys["secret"],
        }

    def slow_s3(self, rate: str | None) -> None:
        """Let at most ``rate`` (``1mbit``) pass to and from the S3 gateway, each way; None: as fast as it can."""
        network.limit(self.instance, "s3", rate)

    def cut_s3(self, cut: bool) -> None:
        """Pull the gateway's cable, or put it back."""
        network.cable(self.instance, "s3", "down" if cut else "up")

    def s3_client(self) -> S3Client:
        """boto3's, of the gateway."""
        made: S3Client = boto3.client(
            "s3",
            endpoint_url=self.s3_endpoint,
            region_name="us-east-1",
            aws_access_key_id=self.s3_keys["access"],
            aws_secret_access_key=self.s3_keys["secret"],
        )
        return made

    def create_bucket(self, name: str) -> str:
        """An empty bucket; returns its uri."""
        self.s3_client().create_bucket(Bucket=name)
        return f"s3://{name}"

    def create_s3_secret(self, namespace: str, name: str = "s3") -> None:
        """The gateway's keys as a Secret that ``secrets = ["s3"]`` of a run.toml names."""
        keys = {key: value for key, value in self.s3_environment.items() if "KEY" in key}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": keys}
        self.api.apply([secret], namespace)

    def load(self, archive: Path) -> None:
        """Import an image archive on every node."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.load(archive), self.nodes.values()))


def why_not() -> str:
    """Why a cluster cannot start here without a build of minutes; empty when it can."""
    if reason := machine.why_not():
        return reason
    absent = ", ".join(pin.name for pin in binaries.absent())
    return f"not built yet: {absent} (make cluster builds them, about 20 minutes)" if absent else ""
