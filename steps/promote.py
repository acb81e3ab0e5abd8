"""Step ``promote``: move the pointer to the checkpoint that was evaluated and passed, or back to the one before."""

from __future__ import annotations

import sys
import time
from typing import Any

from argosy.steps.contract.arguments import PromoteArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import check_digest
from argosy.steps.evaluations import evaluation_key, finite, gate_key, read_record
from argosy.steps.gate import Rule
from argosy.steps.outputs import step_main, write_output
from argosy.steps.pointers import Pointer, Promotion, standing
from argosy.steps.runlog import RunLog
from argosy.steps.store import ObjectStore, open_store


def promote(args: PromoteArgs) -> None:
    """Append to the pointer's history by compare-and-swap; once per workflow, however often it runs.

    When somebody moved the pointer after our gate, the gate's rule is applied again to what is promoted now; a
    checkpoint that no longer passes is not promoted, and ``promoted-digest`` is empty.

    Raises:
        InputError: the checkpoint was not evaluated in this run or did not pass its gate; or there is nothing to
            roll back to.
    """
    check_digest(args.checkpoint_digest, "checkpoint digest")
    store = open_store(args.store_uri)
    pointer = Pointer(store, args.name, args.pointer)
    promoted = _rolled_back(pointer, args) if args.rollback else _promoted(store, pointer, args)
    with RunLog(store, args.prefix, "promote") as log:
        if isinstance(promoted, str):
            log.append("gated", decision="refuse", reason=promoted, metric=args.metric)
            print(f"refuse: {promoted}", flush=True)
            write_output("promoted-digest", "")
            return
        told = {"digest": promoted.digest, "previous": promoted.previous, "rollback": promoted.rollback}
        log.append("promoted", pointer=args.pointer, **told)
    write_output("promoted-digest", promoted.digest)
    print(f"{args.pointer} -> {promoted.digest}", flush=True)


def _own(history: list[Promotion], args: PromoteArgs) -> Promotion | None:
    """What this workflow has already appended: a retry must not move the pointer again."""
    for entry in history:
        same = (entry.workflow_uid, entry.rollback) == (args.workflow_uid, args.rollback)
        if same and (args.rollback or entry.digest == args.checkpoint_digest):
            return entry
    return None


def _promoted(store: ObjectStore, pointer: Pointer, args: PromoteArgs) -> Promotion | str:
    digest = args.checkpoint_digest
    evaluation = read_record(store, evaluation_key(args.prefix, digest))
    gated = read_record(store, gate_key(args.prefix, digest))
    if evaluation is None or evaluation.get("checkpoint_digest") != digest:
        raise InputError(f"checkpoint {digest[:12]} was never evaluated in run {args.effective_run_id}: run evaluate")
    if gated is None or gated.get("checkpoint_digest") != digest:
        raise InputError(f"checkpoint {digest[:12]} never came to the gate in run {args.effective_run_id}: run gate")
    if gated.get("decision") != "promote":
        raise InputError(f"checkpoint {digest[:12]} was refused by the gate: {gated.get('reason')}")
    if args.value and finite(args.value, "value") != evaluation.get("value"):
        raise InputError(f"value = {args.value}: the evaluation of {digest[:12]} says {evaluation.get('value')}")
    while True:
        history = pointer.history()
        if own := _own(history, args):
            return own
        current = history[-1] if history else None
        if len(history) != gated.get("pointer_entries"):
            decision, reason = _rule(gated).judge(float(evaluation["value"]), current)
            if decision != "promote":
                return f"the pointer moved after the gate: {reason}"
        entry = _entry(args, evaluation, current)
        if pointer.append(len(history), entry):
            return entry


def _rule(gated: dict[str, Any]) -> Rule:
    rule = gated["rule"]
    return Rule(str(rule["metric"]), str(rule["direction"]), rule["floor"], bool(rule["baseline"]))


def _entry(args: PromoteArgs, evaluation: dict[str, Any], current: Promotion | None) -> Promotion:
    return Promotion(
        pointer=args.pointer,
        digest=args.checkpoint_digest,
        uri=str(evaluation.get("checkpoint_uri", "")),
        metric=str(evaluation["metric"]),
        value=float(evaluation["value"]),
        run_id=args.effective_run_id,
        workflow=args.workflow,
        workflow_uid=args.workflow_uid,
        previous=current.digest if current else "",
        time=time.time(),
        step=evaluation.get("step"),
    )


def _rolled_back(pointer: Pointer, args: PromoteArgs) -> Promotion:
    while True:
        history = pointer.history()
        if own := _own(history, args):
            return own
        stack = standing(history)
        if len(stack) < 2:
            none = f"nothing was ever promoted below {args.store_uri.rstrip('/')}/{args.name}"
            last = f"what it is at now, {stack[0].digest[:12]}, was the first" if stack else none
            raise InputError(f"pointer {args.pointer!r}: there is nothing to go back to: {last}")
        current, target = stack[-1], stack[-2]
        if args.checkpoint_digest != current.digest:
            there = f"it is at {current.digest[:12]}, not at {args.checkpoint_digest[:12]}"
            raise InputError(f"pointer {args.pointer!r}: {there}: look again")
        moved = {"workflow": args.workflow, "workflow_uid": args.workflow_uid, "previous": current.digest}
        entry = Promotion(**{**vars(target), **moved, "time": time.time(), "rollback": True})
        if pointer.append(len(history), entry):
            return entry


if __name__ == "__main__":
    sys.exit(step_main(PromoteArgs, promote))
