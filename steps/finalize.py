"""Step ``finalize``, on exit: settle the claim, leave a summary, notify. Runs however the workflow ended."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any

from argosy.steps.claims import ClaimLog, State, admission_note_key
from argosy.steps.contract.arguments import FinalizeArgs
from argosy.steps.contract.env import WEBHOOK_URL
from argosy.steps.evaluations import read_record, write_record
from argosy.steps.outputs import step_main
from argosy.steps.runlog import Event, RunLog, read_events
from argosy.steps.store import open_store

WEBHOOK_SECONDS = 10.0


def summary_key(prefix: str) -> str:
    """Key of the summary below the run's prefix."""
    return f"{prefix}/summary.json"


def finalize(args: FinalizeArgs) -> None:
    """Settle, log, summarise, notify; a webhook that fails is reported and fails nothing."""
    store = open_store(args.store_uri)
    note = read_record(store, admission_note_key(args.prefix, args.workflow_uid))
    state: State = "succeeded" if args.status == "Succeeded" else "failed"
    holds = note is not None and ClaimLog(store, args.name, str(note.get("key"))).settle(args.workflow_uid, state)
    with RunLog(store, args.prefix, "finalize") as log:
        log.append("finalized", status=args.status)
    summary = _summary(args, read_events(store, args.prefix))
    if holds or note is None or read_record(store, summary_key(args.prefix)) is None:
        # A duplicate that shares the run id of the real run must not overwrite what that one achieved.
        write_record(store, summary_key(args.prefix), summary)
    print(summary["text"], flush=True)
    if args.webhook:
        _notify(summary)


def _summary(args: FinalizeArgs, events: list[Event]) -> dict[str, Any]:
    last = {event.kind: event.fields for event in events}
    evaluated, gated = last.get("evaluated", {}), last.get("gated", {})
    promoted = last.get("promoted", {}).get("digest", "")
    if events and gated.get("decision") == "refuse":
        promoted = ""
    admitted = last.get("admission", {})
    return {
        "name": args.name,
        "run_id": args.effective_run_id,
        "workflow": args.workflow,
        "phase": args.status,
        "run_uri": f"{args.store_uri.rstrip('/')}/{args.prefix}",
        "admission": {key: admitted.get(key, "") for key in ("decision", "reason", "event")},
        "dataset_digest": last.get("snapshot_taken", {}).get("dataset_digest", ""),
        "attempts": _attempts(events),
        "checkpoint_digest": last.get("train_ended", {}).get("checkpoint_digest", ""),
        "metric": {"name": evaluated["metric"], "value": evaluated["value"]} if evaluated else None,
        "gate": {key: gated.get(key) for key in ("decision", "reason", "floor", "baseline")} if gated else None,
        "promoted_digest": promoted,
        "text": _text(args, admitted, gated, promoted),
    }


def _attempts(events: list[Event]) -> list[dict[str, Any]]:
    """One entry per restart, in order; what is not known is None. The last one's step is the last it reported."""
    attempts: dict[tuple[Any, Any], dict[str, Any]] = {}
    for event in events:
        number = event.fields.get("attempt"), event.fields.get("restart")
        if event.kind == "step" and number in attempts:
            known = attempts[number]
            known["last_step"] = max(known["last_step"] or 0, int(event.fields.get("step") or 0))
        elif event.kind in ("restart_began", "restart_ended"):
            known = attempts.setdefault(number, dict.fromkeys(_ATTEMPT_FIELDS))
            known.update({key: value for key, value in event.fields.items() if key in _ATTEMPT_FIELDS})
    return list(attempts.values())


_ATTEMPT_FIELDS = (
    "attempt", "restart", "cause", "signal", "exit_code", "rank", "node", "quote", "restored_step", "last_step",
)  # fmt: skip


def _text(args: FinalizeArgs, admitted: dict[str, Any], gated: dict[str, Any], promoted: str) -> str:
    """One line for a person: what Slack and Mattermost show of the webhook."""
    line = f"{args.name} ({args.workflow}): {args.status}"
    if admitted.get("decision") == "duplicate":
        return f"{line}, not started: {admitted.get('reason')}"
    if promoted:
        return f"{line}, promoted {promoted[:12]}: {gated.get('reason')}"
    if gated:
        return f"{line}, not promoted: {gated.get('reason')}"
    return line


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
