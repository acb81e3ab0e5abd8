"""Step ``gate``: is this checkpoint good enough, and not worse than what is promoted now?"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

from argosy.steps.contract.arguments import GateArgs
from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import check_digest
from argosy.steps.evaluations import evaluation_key, finite, gate_key, read_record, write_record
from argosy.steps.outputs import step_main, write_output
from argosy.steps.pointers import Pointer, Promotion
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store


@dataclass(frozen=True)
class Rule:
    """What a metric must satisfy. ``direction``: ``min`` (less is better) or ``max``; ``floor``: worst that passes."""

    metric: str
    direction: str
    floor: float | None
    baseline: bool

    def __post_init__(self) -> None:
        if self.direction not in ("min", "max"):
            raise InputError(f"direction = {self.direction!r}: use min (less is better) or max")

    def judge(self, value: float, current: Promotion | None) -> tuple[str, str]:
        """``promote`` or ``refuse``, and why, in one line."""
        side = "below" if self.direction == "min" else "above"
        said = f"{self.metric} {value:.6g}"
        if self.floor is not None and self._is_worse(value, self.floor):
            return "refuse", f"{said} is not {side} floor {self.floor:.6g}"
        if not self.baseline:
            return "promote", f"{said}: {self._floor_text()}, no baseline asked for"
        if current is None:
            return "promote", f"{said}: {self._floor_text()}, nothing was promoted before"
        if current.metric != self.metric or current.value is None:
            what = f"{current.metric or 'nothing'}; gate with baseline none once to change the metric"
            return "refuse", f"{said} cannot be compared: what is promoted was measured by {what}"
        if self._is_worse(value, current.value):
            return "refuse", f"{said} is worse than {current.value:.6g} of what is promoted ({current.digest[:12]})"
        return "promote", f"{said}: {self._floor_text()}, not worse than the promoted {current.value:.6g}"

    def _is_worse(self, value: float, than: float) -> bool:
        return value > than if self.direction == "min" else value < than

    def _floor_text(self) -> str:
        return "no floor" if self.floor is None else f"passes floor {self.floor:.6g}"


def gate(args: GateArgs) -> None:
    """Judge, record the decision and what it was compared with.

    Raises:
        InputError: no number, unknown direction or baseline, or a checkpoint that this run did not evaluate.
    """
    check_digest(args.checkpoint_digest, "checkpoint digest")
    if args.baseline not in ("pointer", "none"):
        raise InputError(f"baseline = {args.baseline!r}: use pointer or none")
    value = finite(args.value, f"value of {args.metric}")
    rule = Rule(args.metric, args.direction, args.floor, args.baseline == "pointer")
    store = open_store(args.store_uri)
    evaluation = read_record(store, evaluation_key(args.prefix, args.checkpoint_digest))
    if evaluation is None or (evaluation.get("metric"), evaluation.get("value")) != (args.metric, value):
        found = "has no evaluation in this run" if evaluation is None else "was evaluated to something else"
        raise InputError(f"checkpoint {args.checkpoint_digest[:12]} {found} than {args.metric} {value}: run evaluate")
    history = Pointer(store, args.name, args.pointer).history()
    current = history[-1] if history else None
    decision, reason = rule.judge(value, current)
    record = {
        "checkpoint_digest": args.checkpoint_digest,
        "decision": decision,
        "reason": reason,
        "value": value,
        "rule": vars(rule),
        "pointer": args.pointer,
        "pointer_entries": len(history),
        "workflow": args.workflow,
        "time": time.time(),
    }
    write_record(store, gate_key(args.prefix, args.checkpoint_digest), record)
    with RunLog(store, args.prefix, "gate") as log:
        told = {"floor": args.floor, "baseline": current.value if current and rule.baseline else None}
        log.append("gated", decision=decision, reason=reason, metric=args.metric, value=value, **told)
    write_output("reason", reason)
    write_output("decision", decision)
    print(f"{decision}: {reason}", flush=True)


if __name__ == "__main__":
    sys.exit(step_main(GateArgs, gate))
