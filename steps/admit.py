"""Step ``admit``: an event for work that is done or under way starts nothing; a person's start always does."""

from __future__ import annotations

import json
import os
import sys
import time

from argosy.steps.claims import ClaimLog, RunClaim, admission_key, admission_note_key
from argosy.steps.contract.arguments import AdmitArgs
from argosy.steps.contract.env import GANG_HOST
from argosy.steps.contract.errors import InputError
from argosy.steps.outputs import step_main, write_output
from argosy.steps.runlog import RunLog
from argosy.steps.store import ObjectStore, open_store

MAX_EVENT = 1024


def admit(args: AdmitArgs) -> None:
    """Decide, claim, and say why.

    Of two workflows that decide at the same moment one finds its claim's place taken and decides again.

    Raises:
        InputError: the event id is not one printable line of at most :data:`MAX_EVENT` characters.
    """
    if len(args.event) > MAX_EVENT or not (args.event == "" or args.event.isprintable()):
        raise InputError(f"event: {len(args.event)} characters; an event id is one printable line, max. {MAX_EVENT}")
    if args.lease_seconds < 1:
        raise InputError(f"lease_seconds = {args.lease_seconds}: a lease lasts at least 1 second")
    store = open_store(args.store_uri)
    key = admission_key(args.name, args.run_digest, args.dataset_digest)
    _note(store, args, key)
    decision, reason = _decide(ClaimLog(store, args.name, key), args)
    with RunLog(store, args.prefix, "admit") as log:
        here = {"local": True} if os.environ.get(GANG_HOST) else {}
        log.append("admission", decision=decision, reason=reason, key=key, event=args.event, **here)
    write_output("reason", reason)
    write_output("key", key)
    write_output("decision", decision)
    print(f"{decision}: {reason}", flush=True)


def _note(store: ObjectStore, args: AdmitArgs, key: str) -> None:
    # Before the claim: a workflow that dies in between has a note without a claim, which harms nobody.
    note = {"key": key, "workflow": args.workflow}
    store.put(admission_note_key(args.prefix, args.workflow_uid), json.dumps(note).encode())


def _decide(claims: ClaimLog, args: AdmitArgs) -> tuple[str, str]:
    while True:
        seq, latest = claims.read()
        own = latest.pop(args.workflow_uid, None)
        if own is not None and own.state == "running":
            return "start", "this workflow holds the claim already"
        obstacle = _obstacle(claims, latest, args.dataset_digest)
        if obstacle and own is None and (args.event or args.once) and not args.force:
            return "duplicate", obstacle
        reason = _reason(args, latest, obstacle, own)
        if claims.append(seq + 1, _claim(args, reason)):
            return "start", reason


def _obstacle(claims: ClaimLog, latest: dict[str, RunClaim], dataset: str) -> str:
    what = f"this run{' and dataset' if dataset else ''}"
    for claim in reversed(latest.values()):
        if claim.state == "succeeded":
            return f"workflow {claim.workflow} has already succeeded with {what}"
        if claims.is_alive(claim):
            silent = f"{max(0.0, time.time() - claims.last_sign(claim)):.0f} s ago"
            held = f"holds {what} since {_utc(claim.time)}"
            return f"workflow {claim.workflow} {held}, and gave its last sign of life {silent}"
    return ""


def _reason(args: AdmitArgs, latest: dict[str, RunClaim], obstacle: str, own: RunClaim | None) -> str:
    if own is not None:
        return f"this workflow takes up its own claim again, which had {own.state}"
    if obstacle:
        return f"{'forced' if args.force else 'started by hand'}, although {obstacle}"
    if not latest:
        return f"the first start of this run as it stands{', with this dataset' if args.dataset_digest else ''}"
    last = list(latest.values())[-1]
    end = f"gave no sign of life for {last.lease_seconds:.0f} s" if last.state == "running" else last.state
    anew = f"; this run begins anew, with run-id={last.run_id} it would go on from the checkpoints of that one"
    return f"taken over: workflow {last.workflow} {end}{'' if last.run_id == args.effective_run_id else anew}"


def _claim(args: AdmitArgs, reason: str) -> RunClaim:
    return RunClaim(
        workflow=args.workflow,
        workflow_uid=args.workflow_uid,
        run_id=args.effective_run_id,
        state="running",
        time=time.time(),
        lease_seconds=args.lease_seconds,
        event=args.event,
        reason=reason,
    )


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


if __name__ == "__main__":
    sys.exit(step_main(AdmitArgs, admit))
