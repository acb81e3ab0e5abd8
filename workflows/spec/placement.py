"""Which runtime, placement and launcher go together; what is refused, and why."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.workflows.spec.refusal import Refusal, suggestion

RUNTIMES: Mapping[str, tuple[str, ...]] = {
    "jobset": ("none", "native", "kueue", "volcano", "coscheduling", "kai"),
    "job": ("none", "native", "kueue", "volcano", "coscheduling"),
    "pytorchjob": ("none", "kueue", "volcano", "coscheduling", "kai"),
    "tfjob": ("none", "kueue", "volcano", "coscheduling", "kai"),
    "xgboostjob": ("none", "kueue", "volcano", "coscheduling", "kai"),
    "mpijob": ("none", "kueue", "volcano", "coscheduling", "kai"),
    "trainjob": ("none", "kueue", "volcano", "coscheduling", "kai"),
    "volcano": ("volcano",),
    "rayjob": ("none", "kueue", "volcano", "coscheduling", "kai"),
}
"""Who creates the pods -> the placements that run with it now."""
PLACEMENTS = ("none", "native", "kueue", "volcano", "coscheduling", "kai")
"""Who makes it all-or-nothing."""
RENDERED = ("coscheduling", "kai")
"""Placements that were never seen to place a gang here: their manifests follow the schemas and the sources."""
LAUNCHERS = ("torchrun", "plain", "mpirun", "ray")
ILLEGAL: Mapping[tuple[str, str], str] = {
    ("volcano", "none"): "Volcano places its Jobs whole, so say placement = volcano",
    ("volcano", "kueue"): "a Volcano Job queues in Volcano: two admissions would wait for each other",
    ("volcano", "kai"): "a Volcano Job is bound by Volcano's scheduler only",
    ("volcano", "coscheduling"): "a Volcano Job is bound by Volcano's scheduler only",
    ("volcano", "native"): "a Volcano Job makes a PodGroup of its own",
    ("job", "kai"): "KAI makes each pod of a plain Job a group of its own",
    ("pytorchjob", "native"): "the Training Operator v1 does not set schedulingGroup",
    ("mpijob", "native"): "the MPI Operator does not set schedulingGroup",
    ("tfjob", "native"): "the Training Operator v1 does not set schedulingGroup",
    ("xgboostjob", "native"): "the Training Operator v1 does not set schedulingGroup",
    ("rayjob", "native"): "KubeRay writes the PodGroups of Kubernetes 1.36, which 1.37 no longer has",
}
"""Pairs that can never work -> the reason; said before what merely does not exist yet."""
_KNOWN: Mapping[str, Mapping[str, bool]] = {
    "runtime": {name: bool(placements) for name, placements in RUNTIMES.items()},
    "placement": {name: any(name in placements for placements in RUNTIMES.values()) for name in PLACEMENTS},
    "launcher": dict.fromkeys(LAUNCHERS, True),
}


QUEUES: Mapping[str, str] = {"kueue": "the namespace's LocalQueue", "kai": "a Queue of KAI"}
"""Placements that admit from a queue and have no default one -> what that is."""


def check_host(runtime: str, placement: str, launcher: str) -> None:
    """Accept what can run now.

    Raises:
        Refusal: an unknown name, a pair that cannot work, or one that is not built.
    """
    chosen = {"runtime": runtime, "placement": placement, "launcher": launcher}
    for field, value in chosen.items():
        if value not in _KNOWN[field]:
            raise Refusal(f"is no {field}", suggestion(value, [*_KNOWN[field]], f"{field}s"), field=field, value=value)
    if reason := ILLEGAL.get((runtime, placement)):
        raise Refusal(
            f"cannot go with runtime = {runtime!r}: {reason}", _what_exists(), field="placement", value=placement
        )
    for field, value in chosen.items():
        if not _KNOWN[field][value]:
            raise Refusal("is not built yet", _what_exists(), field=field, value=value)
    if placement not in RUNTIMES[runtime]:
        built = " or ".join(map(repr, RUNTIMES[runtime]))
        remedy = f"what exists with it: placement = {built}"
        raise Refusal(f"is not built yet with runtime = {runtime!r}", remedy, field="placement", value=placement)


def check_queue(placement: str, queue: str, queue_priority: str) -> None:
    """Accept a queue exactly where somebody admits from it.

    Raises:
        Refusal: Kueue or KAI without a queue, a queue that nobody admits from, or a priority that is not Kueue's.
    """
    if placement in QUEUES and not queue:
        raise Refusal(f"is required with placement = {placement!r}", f"name {QUEUES[placement]}", field="queue")
    if queue and placement not in (*QUEUES, "volcano"):
        reason = {
            "none": "nothing would admit the gang from it",
            "coscheduling": "its groups know no queues",
            "native": "Kueue admits whole gangs by itself, and the pods of one that it holds back would never come",
        }[placement]
        raise Refusal(
            f"cannot go with placement = {placement!r}: {reason}",
            'write placement = "kueue", "volcano" or "kai", or remove it',
            field="queue",
            value=queue,
        )
    if queue_priority and placement != "kueue":
        remedy = "remove it, or write priority_class"
        raise Refusal("is Kueue's alone", remedy, field="queue_priority", value=queue_priority)


def pairs_table() -> str:
    """Every runtime with every placement, as :func:`check_host` judges it: a Markdown table and its reasons."""
    rows = [
        "| runtime | " + " | ".join(f"`{name}`" for name in PLACEMENTS) + " |",
        "|---" * (len(PLACEMENTS) + 1) + "|",
    ]
    for runtime in RUNTIMES:
        cells = " | ".join(_verdict(runtime, placement) for placement in PLACEMENTS)
        rows.append(f"| `{runtime}` | {cells} |")
    reasons = [f"- `{runtime}` with `{placement}`: {reason}." for (runtime, placement), reason in ILLEGAL.items()]
    return "\n".join([*rows, "", "Never, and why:", "", *reasons, ""])


def _verdict(runtime: str, placement: str) -> str:
    try:
        check_host(runtime, placement, LAUNCHERS[0])
    except Refusal:
        return "never" if (runtime, placement) in ILLEGAL else "not built"
    return "rendered only" if placement in RENDERED else "**yes**"


def _what_exists() -> str:
    return "what exists: " + ", ".join(
        f"{field} = {' or '.join(repr(name) for name, runs in table.items() if runs)}"
        for field, table in _KNOWN.items()
    )
