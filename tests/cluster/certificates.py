"""The cluster's authority, its certificates and kubeconfigs."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.instance import API_SERVICE, NODE_NAMES, Instance

MASTERS = "system:masters"
"""The group of those that are not under test here: the administrator and the controllers."""
CLIENTS = {
    "admin": ("admin", MASTERS),
    "kubelet-client": ("kube-apiserver-kubelet-client", MASTERS),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "coredns": ("coredns", MASTERS),
    "argo": ("argo-controller", MASTERS),
    "jobset": ("jobset-controller", MASTERS),
    "kueue": ("kueue-controller", MASTERS),
}
_Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


def _pem(key: _Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common: str, group: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


class Authority:
    """Signs what the cluster needs into ``folder``, good for thirty days."""

    def __init__(self, instance: Instance) -> None:
        self.folder = instance.part("pki")
        self.server = f"https://{instance.control_address}"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(instance.name)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        self._certificate = (
            self._builder(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)
        self._write("ca", self.pem, self._key)

    def _builder(self, subject: x509.Name, key: _Key) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )

    def _write(self, name: str, certificate: bytes, key: _Key) -> None:
        (self.folder / f"{name}.crt").write_bytes(certificate)
        path = self.folder / f"{name}.key"
        path.touch(mode=0o600)
        path.write_bytes(_pem(key))

    def issue(self, name: str, common: str, group: str = "", hosts: Iterable[str] = ()) -> None:
        """``name``.crt, .key and .kubeconfig; ``hosts`` are the names and addresses that it may serve."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = self._builder(_name(common, group), key).add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if alternatives := [_alternative(host) for host in hosts]:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        pem = builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        self._write(name, pem, key)
        user = {"client-certificate-data": _base64(pem), "client-key-data": _base64(_pem(key))}
        path = self.folder / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(kubeconfig(self.server, self.pem, user), indent=1))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def kubeconfig(server: str, authority: bytes, user: dict[str, str], namespace: str = "default") -> dict[str, object]:
    """What a client of the cluster reads."""
    cluster = {"server": server, "certificate-authority-data": _base64(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "argosy",
        "clusters": [{"name": "argosy", "cluster": cluster}],
        "users": [{"name": "argosy", "user": user}],
        "contexts": [{"name": "argosy", "context": {"cluster": "argosy", "user": "argosy", "namespace": namespace}}],
    }


def make(instance: Instance) -> Path:
    """All certificates of an instance; returns their folder."""
    authority = Authority(instance)
    for name, (common, group) in CLIENTS.items():
        authority.issue(name, common, group)
    service = [".".join(["kubernetes", "default", "svc", "cluster", "local"][:n]) for n in (1, 2, 3, 5)]
    authority.issue("apiserver", "kube-apiserver", "", [instance.control_address, API_SERVICE, "127.0.0.1", *service])
    authority.issue("webhook", "webhook", "", ["127.0.0.1"])
    for index, node in enumerate(NODE_NAMES, 1):
        authority.issue(node, f"system:node:{node}", "system:nodes", [node, instance.node_address(index)])
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    authority._write("service-accounts", public, key)
    return authority.folder
