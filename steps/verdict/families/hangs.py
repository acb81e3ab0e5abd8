"""Programs and watchers that say that nothing moves."""

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.weight import Weight
from argosy.steps.verdict.pattern import Pattern

PATTERNS = (
    Pattern(
        Cause.HANG,
        r"(?i)\bmay (hang|be stuck)\b|\bstalled (ranks|ops|tensors?)\b|appears? to (be )?(hung|stuck|hang)"
        r"|hang(ing)? detected|(has|have) been (stuck|hanging)"
        r"|no (progress|step|heartbeat) (was made |made )?(for|in|within) \d+"
        r"|\[(missing|ready) ranks: |did not (send|receive) a heartbeat|stuck for \d+ ?s|watchdog.*no progress",
        "One or more tensors were submitted to be reduced by subset of ranks. Stalled ranks: 1",
        Weight.MESSENGER,
    ),
)
