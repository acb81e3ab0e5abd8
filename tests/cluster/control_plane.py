"""The programs of the control plane and how each is started."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from tests.cluster.component import Component
from tests.cluster.instance import SERVICES, Instance

S3_PORT = 7070
S3_KEYS = {"access": "argosy", "secret": "argosy-secret"}
JOBSET_WEBHOOKS = 9443
KUEUE_WEBHOOKS = 9543
JOBSET_HEALTH = 8082
KUEUE_HEALTH = 8182
KUEUE: Mapping[str, object] = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "manageJobsWithoutQueueName": False,
    "waitForPodsReady": {"timeout": "60s", "blockAdmission": True},
    "integrations": {
        "frameworks": [
            "batch/job",
            "jobset.x-k8s.io/jobset",
            *(f"kubeflow.org/{kind}" for kind in ("pytorchjob", "tfjob", "xgboostjob", "mpijob")),
            "trainer.kubeflow.org/trainjob",
            "ray.io/rayjob",
        ]
    },
}
AUDIT: Mapping[str, object] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "namespaces": ["kube-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}
NOTICES_LOSS = {"--node-monitor-period": "1s", "--node-monitor-grace-period": "8s"}
"""A lost node is called lost after 8 s (Kubernetes' default is 50 s): tests need not wait for it."""


def components(instance: Instance) -> dict[str, Component]:
    """By name, in the order of their start."""
    makers: tuple[Callable[[Instance], Component], ...] = (
        etcd,
        api_server,
        controller_manager,
        scheduler,
        coredns,
        versitygw,
        argo,
        jobset,
        kueue,
    )
    return {made.name: made for made in (maker(instance) for maker in makers)}


def _component(
    instance: Instance,
    name: str,
    options: dict[str, str],
    health: str,
    environment: dict[str, str] | None = None,
) -> Component:
    command: list[str | Path] = [instance.folder / "bin" / name, *(f"{key}={value}" for key, value in options.items())]
    return Component(name, instance.folder, instance.name, command, health, environment or {})


def _pki(instance: Instance, name: str) -> str:
    return str(instance.folder / "pki" / name)


def audit_log(instance: Instance) -> Path:
    """One JSON line for every request that a service account made."""
    return instance.folder / "log" / "audit.jsonl"


def configure(instance: Instance) -> None:
    """Write the files that the programs read."""
    (instance.part("etc") / "Corefile").write_text(f""".:53 {{
  bind {instance.control_address}
  errors
  ready {instance.control_address}:8181
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {_pki(instance, "coredns.kubeconfig")}
    pods insecure
    ttl 1
  }}
}}
""")
    instance.part("s3")
    (instance.folder / "etc" / "audit.yaml").write_text(yaml.safe_dump(AUDIT))
    certificates = instance.part("etc", "certificates")
    layer = instance.part("etc", "kueue-layer", "kueue", "metrics", "certs")
    for end in ("crt", "key"):
        for folder in (certificates, layer):
            shutil.copyfile(_pki(instance, f"webhook.{end}"), folder / f"tls.{end}")
    for name, port, health, more in (
        ("jobset", JOBSET_WEBHOOKS, JOBSET_HEALTH, {"apiVersion": "config.jobset.x-k8s.io/v1alpha1"}),
        ("kueue", KUEUE_WEBHOOKS, KUEUE_HEALTH, KUEUE),
    ):
        configuration = {
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(certificates)},
            "metrics": {"bindAddress": f"127.0.0.1:{port + 1}"},
            "health": {"healthProbeBindAddress": f"{instance.control_address}:{health}"},
        }
        (instance.folder / "etc" / f"{name}.yaml").write_text(yaml.safe_dump({**configuration, **more}))


def etcd(instance: Instance) -> Component:
    """No fsync: its disk is wiped at the next start anyway."""
    here = "http://127.0.0.1:2379"
    options = {
        "--data-dir": str(instance.folder / "etcd"),
        "--listen-client-urls": here,
        "--advertise-client-urls": here,
        "--listen-peer-urls": "http://127.0.0.1:2380",
        "--listen-metrics-urls": f"http://{instance.control_address}:2381",
        "--unsafe-no-fsync": "true",
        "--log-level": "warn",
    }
    return _component(instance, "etcd", options, f"http://{instance.control_address}:2381/health")


def api_server(instance: Instance) -> Component:
    """On port 443 of the control plane's address and of the ``kubernetes`` service's."""
    options = {
        "--etcd-servers": "http://127.0.0.1:2379",
        "--secure-port": "443",
        "--bind-address": "0.0.0.0",
        "--advertise-address": instance.control_address,
        "--service-cluster-ip-range": SERVICES,
        "--allow-privileged": "true",
        "--tls-cert-file": _pki(instance, "apiserver.crt"),
        "--tls-private-key-file": _pki(instance, "apiserver.key"),
        "--client-ca-file": _pki(instance, "ca.crt"),
        "--service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "--service-account-key-file": _pki(instance, "service-accounts.crt"),
        "--service-account-signing-key-file": _pki(instance, "service-accounts.key"),
        "--authorization-mode": "Node,RBAC",
        "--enable-admission-plugins": "NodeRestriction",
        "--kubelet-client-certificate": _pki(instance, "kubelet-client.crt"),
        "--kubelet-client-key": _pki(instance, "kubelet-client.key"),
        "--kubelet-certificate-authority": _pki(instance, "ca.crt"),
        "--kubelet-preferred-address-types": "InternalIP",
        "--audit-policy-file": str(instance.folder / "etc" / "audit.yaml"),
        "--audit-log-path": str(audit_log(instance)),
        "--audit-log-maxsize": "200",
        "--feature-gates": "GenericWorkload=true",
        "--runtime-config": "scheduling.k8s.io/v1beta1=true",
    }
    return _component(instance, "kube-apiserver", options, f"https://{instance.control_address}/readyz")


def _controller(instance: Instance, name: str, user: str, port: int, options: dict[str, str]) -> Component:
    kubeconfig = _pki(instance, f"{user}.kubeconfig")
    shared = {
        "--kubeconfig": kubeconfig,
        "--authentication-kubeconfig": kubeconfig,
        "--authorization-kubeconfig": kubeconfig,
        "--leader-elect": "false",
    }
    return _component(instance, name, shared | options, f"https://{instance.control_address}:{port}/healthz")


def controller_manager(instance: Instance) -> Component:
    """Kubernetes' own controllers."""
    options = {
        "--use-service-account-credentials": "true",
        "--service-account-private-key-file": _pki(instance, "service-accounts.key"),
        "--root-ca-file": _pki(instance, "ca.crt"),
        "--cluster-signing-cert-file": _pki(instance, "ca.crt"),
        "--cluster-signing-key-file": _pki(instance, "ca.key"),
        "--terminated-pod-gc-threshold": "2000",
        # A PodGroup has a finalizer from the API server's gate on; only this gate's controller takes it off again.
        "--feature-gates": "GenericWorkload=true",
    }
    return _controller(instance, "kube-controller-manager", "controller-manager", 10257, options | NOTICES_LOSS)


def scheduler(instance: Instance) -> Component:
    """With PodGroups, which Kubernetes 1.37 has behind a gate."""
    return _controller(instance, "kube-scheduler", "scheduler", 10259, {"--feature-gates": "GenericWorkload=true"})


def coredns(instance: Instance) -> Component:
    """Names of services and of their pods; every other name does not exist, so that no lookup hangs."""
    return _component(
        instance,
        "coredns",
        {"-conf": str(instance.folder / "etc" / "Corefile")},
        f"http://{instance.control_address}:8181/ready",
    )


def argo(instance: Instance) -> Component:
    """One controller for all namespaces."""
    options = {
        "--kubeconfig": _pki(instance, "argo.kubeconfig"),
        "--namespace": "argo",
        "--loglevel": "info",
        "--qps": "100",
        "--burst": "200",
    }
    environment = {"LEADER_ELECTION_DISABLE": "true", "DEFAULT_REQUEUE_TIME": "100ms"}
    health = f"http://{instance.control_address}:6060/healthz"
    return _component(instance, "workflow-controller", options, health, environment)


def _operator(instance: Instance, name: str, port: int, more: dict[str, str]) -> Component:
    options = {
        "--kubeconfig": _pki(instance, f"{name}.kubeconfig"),
        "--config": str(instance.folder / "etc" / f"{name}.yaml"),
    }
    health = f"http://{instance.control_address}:{port}/readyz"
    return _component(instance, name, options | more, health, {"POD_NAMESPACE": f"{name}-system"})


def jobset(instance: Instance) -> Component:
    """JobSet's controller and webhooks."""
    return _operator(instance, "jobset", JOBSET_HEALTH, {})


def kueue(instance: Instance) -> Component:
    """Kueue for Jobs and JobSets that name a queue; a job is admitted when the one before it has all its pods."""
    made = _operator(instance, "kueue", KUEUE_HEALTH, {"--feature-gates": "VisibilityOnDemand=false"})
    # It looks for a certificate of its metrics at a fixed path: a second layer over /etc, which only it sees.
    over = f"mount -t overlay overlay -o lowerdir={instance.folder / 'etc' / 'kueue-layer'}:/etc /etc"
    return replace(made, command=["unshare", "--mount", "--", "sh", "-c", f'{over} && exec "$@"', "sh", *made.command])


def versitygw(instance: Instance) -> Component:
    """S3 over a folder, in a namespace of its own: its cable can be slow or cut while the cluster is well."""
    address = f"{instance.s3_address}:{S3_PORT}"
    command: list[str | Path] = [instance.folder / "bin" / "versitygw", "--port", address, "--health", "/health"]
    command += ["--region", "us-east-1", "posix", instance.folder / "s3"]
    environment = {"ROOT_ACCESS_KEY": S3_KEYS["access"], "ROOT_SECRET_KEY": S3_KEYS["secret"]}
    namespace = instance.namespace("s3")
    return Component("versitygw", instance.folder, namespace, command, f"http://{address}/health", environment)
