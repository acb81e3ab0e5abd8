"""Certificates of an authority of our own, for servers on 127.0.0.1."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

Signed = tuple[x509.Certificate, ec.EllipticCurvePrivateKey]


def signed(name: str, issuer: Signed | None = None) -> Signed:
    """A certificate and its key: an authority of its own, or 127.0.0.1's by an authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer[0].subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
    )
    return made.sign(key if issuer is None else issuer[1], hashes.SHA256()), key


def write_certificates(folder: Path) -> Path:
    """The authority's certificate; beside it server.pem, with key and certificate of 127.0.0.1."""
    authority = signed("argosy tests")
    leaf, key = signed("server", authority)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    private = key.private_bytes(pem, pkcs8, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(private + leaf.public_bytes(pem))
    (folder / "authority.pem").write_bytes(authority[0].public_bytes(pem))
    return folder / "authority.pem"
