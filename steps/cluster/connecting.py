"""Which API server is asked, and as whom: that of this pod, or of a kubeconfig."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy.steps.cluster.api import PATIENCE_SECONDS, Api
from argosy.steps.contract.errors import InputError

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def connect(*, kubeconfig: str = "", context: str = "", namespace: str = "", patience: float = PATIENCE_SECONDS) -> Api:
    """The cluster that this pod runs in, or the one that ``kubeconfig`` ($KUBECONFIG, ~/.kube/config) describes.

    ``patience``: for how many seconds a call is repeated while the server is away.

    Raises:
        InputError: there is no such file or context.
    """
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import config_exception, incluster_config, kube_config

    configuration = Configuration()
    if in_pod() and not kubeconfig:
        incluster_config.load_incluster_config(client_configuration=configuration)
        own = (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
        return Api(ApiClient(configuration), namespace or own, patience)
    tried = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        given = {"config_file": kubeconfig or None, "context": context or None}
        with _heard() as heard:
            kube_config.load_kube_config(**given, client_configuration=configuration)
        contexts, active = kube_config.list_kube_config_contexts(kubeconfig or None)
    except config_exception.ConfigException as error:
        told = str(error).removeprefix("Invalid kube-config file. ").rstrip(".")
        raise InputError(
            f"kubeconfig = {tried!r}: {told}; set KUBECONFIG or pass --kubeconfig and --context"
        ) from error
    except Exception as error:  # the client's loader takes the file's form for granted
        raise InputError(
            f"kubeconfig = {tried!r}: no file that kubectl could read ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:200]}); see `kubectl config view`, or name another with --kubeconfig"
        ) from error
    if heard:
        told = " ".join(heard[-1].split())[:200]
        raise InputError(f"kubeconfig = {tried!r}: no credentials ({told}); log in until `kubectl auth whoami` answers")
    chosen = next((each for each in contexts if each["name"] == context), active) if context else active
    return Api(ApiClient(configuration), namespace or chosen["context"].get("namespace") or "default", patience)


@contextmanager
def _heard() -> Iterator[list[str]]:
    """What the client's loader logs: a login program that fails is no error to it, it goes on as nobody."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        yield found
    finally:
        logging.getLogger().removeHandler(handler)


def in_pod() -> bool:
    """Whether this process runs in a pod with a service account."""
    return (_ACCOUNT / "token").exists()
