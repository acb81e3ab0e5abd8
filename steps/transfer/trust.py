"""Which certificates are trusted: those of ``AWS_CA_BUNDLE``, of the system, or of botocore where it has none."""

from __future__ import annotations

import ssl
from importlib.util import find_spec
from pathlib import Path


def trusting(ca_bundle: str) -> ssl.SSLContext:
    """A context that trusts them; a file that is named was read when the settings were."""
    context = ssl.create_default_context(cafile=ca_bundle or None)
    if not ca_bundle and not context.cert_store_stats()["x509_ca"] and (known := _of_botocore()):
        context.load_verify_locations(known)
    return context


def trusted_file(ca_bundle: str) -> str:
    """The file to name to a library, "" where it finds the system's by itself."""
    if ca_bundle:
        return ca_bundle
    return "" if ssl.create_default_context().cert_store_stats()["x509_ca"] else _of_botocore()


def _of_botocore() -> str:
    """For images that have none; "" where the system has a folder of them, which no context counts."""
    folder = ssl.get_default_verify_paths().capath
    found = find_spec("botocore")
    if (folder and Path(folder).is_dir() and any(Path(folder).iterdir())) or found is None or found.origin is None:
        return ""
    return str(Path(found.origin).with_name("cacert.pem"))
