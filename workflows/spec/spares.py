"""Which gangs may have spares, and why others may not."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.workflows.spec.refusal import Refusal

MAX_SPARES = 16
_ENDS = "its operator ends the whole gang when a pod of it is lost"
RUNTIMES: Mapping[str, str] = {
    "jobset": "",
    "job": "",
    "pytorchjob": _ENDS,
    "tfjob": _ENDS,
    "xgboostjob": _ENDS,
    "mpijob": _ENDS,
    "trainjob": "Trainer takes every pod of a TrainJob for a node that trains",
    "volcano": "its scheduler places all pods or none, and a spare that has no node would keep the gang from starting",
    "rayjob": "a pod that KubeRay makes for a lost one waits for Ray's head, which has ended when the ranks begin",
}
"""Runtime -> why a spare cannot stand by there; "": it can."""
_UNSEEN = "nobody has seen its scheduler place a pod that comes when its PodGroup runs already"
PLACEMENTS: Mapping[str, str] = {
    "native": "its PodGroup is placed, and taken away, as a whole: with the spare that was to outlive the rest",
    "volcano": _UNSEEN,
    "coscheduling": _UNSEEN,
    "kai": "it counts every pod among those that it places all or none of, the spare too",
}


def check_spares(spares: int, nnodes: str, runtime: str, placement: str) -> None:
    """Accept spares where one can take a lost rank's place.

    Raises:
        Refusal: the runtime, the placement or an elastic gang has no place for them.
    """
    if not spares:
        return
    able = " or ".join(repr(name) for name, why in RUNTIMES.items() if not why)
    if reason := RUNTIMES.get(runtime, ""):
        _refuse(spares, f"cannot go with runtime = {runtime!r}: {reason}", f"write runtime = {able}, or spares = 0")
    if reason := PLACEMENTS.get(placement, ""):
        _refuse(
            spares,
            f"cannot go with placement = {placement!r}: {reason}",
            "write placement = 'none' or 'kueue', or spares = 0",
        )
    if ":" in nnodes:
        _refuse(
            spares,
            f"cannot go with nnodes = {nnodes!r}: an elastic gang trains on every node that it gets",
            f"write nnodes = {nnodes.split(':')[-1]}, or spares = 0",
        )


def check_peer_copy(mode: str, spares: int, nnodes: int) -> None:
    """Accept copies of a checkpoint on other nodes where a restart can find them.

    Raises:
        Refusal: the copies would go with the gang, or nobody makes them; it is relative to the run.
    """
    why = ""
    if mode == "opaque":
        why = "copies what argosy.Checkpointer saved; an opaque folder's files lie on the nodes' disks"
    elif not spares:
        why = "has an effect with gang.spares only: without them a lost node ends the gang, and its memory with it"
    elif nnodes == 1:
        why = "needs a second node that keeps the copy, and nnodes = 1"
    if why:
        raise Refusal(why, "leave peer_copy out", field="checkpoint.peer_copy", value=True)


def _refuse(spares: int, reason: str, remedy: str) -> None:
    raise Refusal(reason, remedy, field="spares", value=spares)
