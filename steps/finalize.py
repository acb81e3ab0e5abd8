"""Step ``finalize``, on exit: settle the claim, leave a summary, notify. Runs however the workflow ended."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.error
import urllib.request
from dataclasses import asdict
from typing import Any

from argosy.steps.claims import ClaimLog, State, admission_note_key
from argosy.steps.cluster.api import ApiError
from argosy.steps.cluster.connecting import connect, in_pod
from argosy.steps.contract.arguments import FinalizeArgs
from argosy.steps.contract.env import GANG_HOST, WEBHOOK_URL
from argosy.steps.contract.errors import StepError
from argosy.steps.evaluations import read_record, write_record
from argosy.steps.gang.sweeping import sweep_gangs
from argosy.steps.outputs import step_main
from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.summary import attempts
from argosy.steps.runlog import RunLog, read_events
from argosy.steps.store import open_store
from argosy.steps.store.base import UNSERVED, ObjectStore
from argosy.steps.store.leaving import LeavableStore

WEBHOOK_SECONDS = 10.0
WAIT_SECONDS, BRIEF_SECONDS = 720.0, 30.0
"""How long a store is waited for in all: where the run succeeded, and where it did not."""
UNRECORDED = (
    "what was committed and promoted is kept, its claim runs out by itself, and whoever reads the store finds it silent"
)


def summary_key(prefix: str) -> str:
    """Key of the summary below the run's prefix."""
    return f"{prefix}/summary.json"


def finalize(args: FinalizeArgs) -> None:
    """Settle, log, summarise, notify; a webhook that fails is reported and fails nothing.

    Nor does a store that stays away: Argo would call a run failed that has trained, and one that was stopped would not
    end. Nobody has a run done again that failed; one that succeeded has a claim, so that is waited for.
    """
    _sweep(args)
    leave, patience = threading.Event(), WAIT_SECONDS if args.status == "Succeeded" else BRIEF_SECONDS
    timer = threading.Timer(patience, leave.set)
    timer.daemon = True
    timer.start()
    try:
        summary = _stored(args, LeavableStore(open_store(args.store_uri, retry_seconds=patience), leave))
    except StepError as error:
        if error.cause not in UNSERVED:
            raise
        print(f"argosy: the end of the run is not recorded: {error}; {UNRECORDED}", file=sys.stderr, flush=True)
        summary = _summary(args, build_record([], {"phase": args.status}))
    timer.cancel()
    print(summary["text"], flush=True)
    if args.webhook:
        _notify(summary)


def _stored(args: FinalizeArgs, store: ObjectStore) -> dict[str, Any]:
    note = read_record(store, admission_note_key(args.prefix, args.workflow_uid))
    state: State = "succeeded" if args.status == "Succeeded" else "failed"
    holds = note is not None and ClaimLog(store, args.name, str(note.get("key"))).settle(args.workflow_uid, state)
    with RunLog(store, args.prefix, "finalize") as log:
        log.append("finalized", status=args.status)
    summary = _summary(args, build_record(read_events(store, args.prefix), {"phase": args.status}))
    if holds or note is None or read_record(store, summary_key(args.prefix)) is None:
        # A duplicate that shares the run id of the real run must not overwrite what that one achieved.
        write_record(store, summary_key(args.prefix), summary)
    return summary


def _sweep(args: FinalizeArgs) -> None:
    """A supervisor that was killed for the last time has left its gang; on one machine the engine ends everything."""
    if not in_pod() or os.environ.get(GANG_HOST):
        return
    try:
        for name in sweep_gangs(connect(), args.workflow_uid):
            print(f"argosy: deleted {name}, which nobody supervised any more", file=sys.stderr)
    except (ApiError, StepError) as error:
        print(f"argosy: gangs that are left were not deleted: {error}", file=sys.stderr)


def _summary(args: FinalizeArgs, record: RunRecord) -> dict[str, Any]:
    admission, evaluation, gate = record.admission, record.evaluation, record.gate
    promoted = record.promotion.digest if record.promotion and not record.refused else ""
    return {
        "name": args.name,
        "run_id": args.effective_run_id,
        "workflow": args.workflow,
        "phase": args.status,
        "run_uri": f"{args.store_uri.rstrip('/')}/{args.prefix}",
        "admission": asdict(admission) if admission else dict.fromkeys(("decision", "reason", "event"), ""),
        "dataset_digest": record.dataset_digest,
        "attempts": attempts(record),
        "checkpoint_digest": record.checkpoint_digest,
        "metric": {"name": evaluation.metric, "value": evaluation.value} if evaluation else None,
        "gate": asdict(gate) if gate else None,
        "promoted_digest": promoted,
        "text": _text(args, record, promoted),
    }


def _text(args: FinalizeArgs, record: RunRecord, promoted: str) -> str:
    """One line for a person: what Slack and Mattermost show of the webhook."""
    line = f"{args.name} ({args.workflow}): {args.status}"
    if record.duplicate and record.admission:
        return f"{line}, not started: {record.admission.reason}"
    if record.gate is None:
        return f"{line}, promoted {promoted[:12]}" if promoted else line
    return f"{line}, {f'promoted {promoted[:12]}' if promoted else 'not promoted'}: {record.gate.reason}"


def _notify(summary: dict[str, Any]) -> None:
    url = os.environ.get(WEBHOOK_URL, "").strip()
    if not url.startswith(("https://", "http://")):
        # The url itself is a secret: it is never printed.
        print(f"argosy: no notification: ${WEBHOOK_URL} holds no http(s) url", file=sys.stderr)
        return
    body = json.dumps(summary, default=str).encode()
    try:
        request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=WEBHOOK_SECONDS) as answer:
            print(f"notified: {answer.status}", flush=True)
    except urllib.error.HTTPError as error:
        print(f"argosy: notification refused: {error.code}", file=sys.stderr)
    except Exception as error:  # whatever a url can make http.client raise: the run has ended, nothing is lost
        print(f"argosy: notification failed: {type(error).__name__}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(step_main(FinalizeArgs, finalize))
