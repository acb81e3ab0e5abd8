"""The store of a cluster's run, from a machine that is no pod of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.store.base import ObjectStore, StoreError
from argosy.steps.store.opening import PERSON_SECONDS, open_store
from argosy.steps.store.s3_settings import Identity

ENDPOINT = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
ADDRESS = (*ENDPOINT, "AWS_REGION", "AWS_VIRTUAL_HOSTED_STYLE_REQUEST")
"""What the run's ``[env]`` may say of where the bucket is; keys stand in Secrets, and are never taken from there."""
_taken: set[str] = set()
"""Variables that we set: the next run may say something else."""


def open_run_store(
    uri: str, workflow: Mapping[str, Any], namespace: str, retry_seconds: float = PERSON_SECONDS, *, quiet: bool = False
) -> ObjectStore:
    """The store at ``uri`` as the run's pods reach it, with this machine's own credentials.

    Raises:
        InputError: a folder of a volume that this machine does not have.
        StoreError: ``s3_access``: nobody here knows any credentials.
    """
    if uri.startswith("file:"):
        return _folder(uri, typed=not workflow)
    take_address(workflow)
    if uri.startswith("s3:") and not os.environ.get("AWS_SKIP_SIGNATURE"):
        _need_keys(uri, workflow, namespace)
    return open_store(uri, retry_seconds=retry_seconds, quiet=quiet)


def take_address(workflow: Mapping[str, Any]) -> None:
    """Reach buckets as the run's ``[env]`` says, where this process's own environment says nothing."""
    for name in _taken:
        os.environ.pop(name, None)
    _taken.clear()
    chosen = any(name in os.environ for name in ENDPOINT)
    for name, value in _variables(workflow):
        if name not in os.environ and not (chosen and name in ENDPOINT):
            os.environ[name] = value
            _taken.add(name)


def endpoint_of(workflow: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a command line has to set to find the run's bucket: (variable, value), where the run says so itself."""
    return sorted({(name, value) for name, value in _variables(workflow) if name in ENDPOINT})


def _folder(uri: str, *, typed: bool) -> ObjectStore:
    path = unquote(urlsplit(uri).path)
    # A new volume has no store yet; whoever writes to it makes the folder.
    if not os.path.isdir(path) and not os.path.ismount(os.path.dirname(path)):
        own = min(Path(".argosy/volumes").glob(f"*/{Path(path).name}"), default=None)
        of_here = f"; the store of the runs that were made in this folder is {own.absolute().as_uri()}" if own else ""
        if typed:
            told = f"{uri}: there is no folder {path} here; correct it, or mount there the volume that has it"
            raise InputError(f"{told}{of_here}")
        raise InputError(
            f"the run's store {uri} is a folder of a volume of the cluster, which this machine does not see; mount the "
            f'volume here so that {path} is there, or keep runs in a bucket (storage.uri = "s3://…"){of_here}'
        )
    return open_store(uri)


def _need_keys(uri: str, workflow: Mapping[str, Any], namespace: str) -> None:
    try:
        Identity(uri).keys()
    except StoreError as error:
        named = sorted(secrets_of(workflow))
        if not named:
            raise
        text = f"{error}; the run's own pods have theirs from the secret {', '.join(named)} of namespace {namespace}"
        raise StoreError(Cause.S3_ACCESS, text, quote=error.quote) from error


def secrets_of(document: Any) -> set[str]:
    """Secrets that the pods of a workflow take variables from, and cannot do without."""
    found = set()
    for each in _maps(document):
        for key in ("secretRef", "secretKeyRef"):
            reference = each.get(key)
            if isinstance(reference, Mapping) and reference.get("name") and not reference.get("optional"):
                found.add(str(reference["name"]))
    return found


def _variables(document: Any) -> Iterator[tuple[str, str]]:
    for each in _maps(document):
        if each.get("name") in ADDRESS and isinstance(each.get("value"), str):
            yield str(each["name"]), str(each["value"])


def _maps(root: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(root, Mapping):
        yield root
        root = list(root.values())
    for each in root if isinstance(root, list) else ():
        yield from _maps(each)
