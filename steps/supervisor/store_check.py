"""Before the first claim of a run: does its store keep what the commit log rests on? Asked once per run."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.store.base import ObjectMissing, ObjectStore, StoreError
from argosy.steps.store.probe import VERSION, Finding, probe

FORMAT = "argosy.probe/1"
_REMEDY = (
    "train on a store that honours conditional writes and shows them at once (S3, GCS, Azure, a local disk, NFS), "
    "without a cache before it; or mend this one and start again"
)


def check_store(store: ObjectStore, prefix: str) -> list[Finding]:
    """Probe the run's store unless ``<prefix>/probe.json`` says that it was found fit; what is wrong but harmless.

    Raises:
        StepError: ``s3_access``, exit code 78: the store does not keep a promise that several writers rely on.
        StepError: ``disk_full``, exit code 78: there is no room for it.
        StoreError: the store does not serve.
    """
    if _found_fit(store, prefix):
        return []
    began = time.monotonic()
    try:
        found = probe(store, prefix)
    except StoreError as error:
        if error.cause != Cause.DISK_FULL:
            raise
        # Before the first step nobody loses by an end, and room that is missing now does not come by waiting.
        raise StepError(error.cause, str(error), quote=error.quote, code=ExitCode.CONFIGURATION) from error
    record = {"format": FORMAT, "version": VERSION, "created": round(time.time(), 3)}
    record |= {"seconds": round(time.monotonic() - began, 3), "findings": [asdict(finding) for finding in found]}
    store.put(f"{prefix}/probe.json", json.dumps(record, sort_keys=True).encode())
    for finding in found:
        print(f"argosy: store {store.uri}: {finding.rule}: {finding.message}", file=sys.stderr)
    refused = [finding for finding in found if finding.refuses]
    if refused:
        rules = ", ".join(finding.rule for finding in refused)
        raise StepError(
            Cause.S3_ACCESS,
            f"{store.uri} cannot hold checkpoints ({rules}): {refused[0].message}; {_REMEDY}",
            quote=refused[0].message,
            code=ExitCode.CONFIGURATION,
        )
    return found


def _found_fit(store: ObjectStore, prefix: str) -> bool:
    try:
        written = store.get(f"{prefix}/probe.json")
        record = json.loads(written)
        fit = not any(finding["refuses"] for finding in record["findings"])
        known = fit and record["format"] == FORMAT and record["version"] >= VERSION
    except (ObjectMissing, ValueError, KeyError, TypeError):
        return False
    if known:
        store.put(f"{prefix}/probe.json", written)  # keys that may only read are refused here, for good
    return known
