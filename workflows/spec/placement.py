"""Which runtime, placement and launcher go together; what is refused, and why."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.workflows.spec.refusal import Refusal, suggestion

RUNTIMES: Mapping[str, bool] = {
    "jobset": True,
    "job": False,
    "trainjob": False,
    "volcano": False,
    "pytorchjob": False,
    "mpijob": False,
    "tfjob": False,
    "rayjob": False,
}
"""Who creates the pods -> whether it runs now."""
PLACEMENTS: Mapping[str, bool] = {
    "none": True,
    "kueue": False,
    "native": False,
    "volcano": False,
    "coscheduling": False,
    "kai": False,
}
LAUNCHERS: Mapping[str, bool] = {"torchrun": True, "mpi": False, "tensorflow": False, "ray": False, "xgboost": False}
ILLEGAL: Mapping[tuple[str, str], str] = {
    ("volcano", "kueue"): "a Volcano Job queues in Volcano: two admissions would wait for each other",
    ("volcano", "kai"): "a Volcano Job is bound by Volcano's scheduler only",
    ("volcano", "coscheduling"): "a Volcano Job is bound by Volcano's scheduler only",
    ("volcano", "native"): "a Volcano Job makes a PodGroup of its own",
    ("jobset", "native"): "JobSet's CRD prunes the child Jobs' scheduling field, so no PodGroup would name the gang",
    ("pytorchjob", "native"): "the Training Operator v1 does not set schedulingGroup",
    ("mpijob", "native"): "the MPI Operator does not set schedulingGroup",
    ("tfjob", "native"): "the Training Operator v1 does not set schedulingGroup",
}
"""Pairs that can never work -> the reason; said before what merely does not exist yet."""


def check_host(runtime: str, placement: str, launcher: str) -> None:
    """Accept what can run now.

    Raises:
        Refusal: an unknown name, a pair that cannot work, or one that is not built.
    """
    for field, value, known in (
        ("runtime", runtime, RUNTIMES),
        ("placement", placement, PLACEMENTS),
        ("launcher", launcher, LAUNCHERS),
    ):
        if value not in known:
            raise Refusal(f"is no {field}", suggestion(value, [*known], f"{field}s"), field=field, value=value)
    if reason := ILLEGAL.get((runtime, placement)):
        raise Refusal(
            f"cannot go with runtime = {runtime!r}: {reason}", _what_exists(), field="placement", value=placement
        )
    for field, value, known in (
        ("runtime", runtime, RUNTIMES),
        ("placement", placement, PLACEMENTS),
        ("launcher", launcher, LAUNCHERS),
    ):
        if not known[value]:
            raise Refusal("is not built yet", _what_exists(), field=field, value=value)


def _what_exists() -> str:
    built = {
        name: next(key for key, runs in table.items() if runs)
        for name, table in (("runtime", RUNTIMES), ("placement", PLACEMENTS), ("launcher", LAUNCHERS))
    }
    return "what exists: " + ", ".join(f"{name} = {value!r}" for name, value in built.items())
