"""What goes with which launcher, beyond its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from argosy.workflows.spec.refusal import Refusal

if TYPE_CHECKING:
    from argosy.workflows.spec.gang import Gang
    from argosy.workflows.spec.run import TrainingRun

_WORKERS = "Ray starts the workers, as many as the script's ScalingConfig(num_workers=...) says"


def check_launcher(gang: Gang) -> None:
    """Accept what the launcher can do.

    Raises:
        Refusal: a field of the gang that has no meaning with it.
    """
    if gang.preflight != "off" and gang.launcher != "torchrun":
        rule = f"is done by torchrun's ranks, and launcher = {gang.launcher!r} starts none"
        raise Refusal(rule, "leave preflight out", field="preflight", value=gang.preflight)
    if gang.preload and gang.launcher != "torchrun":
        rule = f"goes with torchrun: what launcher = {gang.launcher!r} starts is no fork of ours"
        raise Refusal(rule, "leave preload out", field="preload", value=list(gang.preload))
    if gang.launcher != "ray":
        return
    if gang.nproc_per_node != 1:
        remedy = "leave nproc_per_node out, and write num_workers in the script"
        raise Refusal(f"cannot go with launcher = 'ray': {_WORKERS}", remedy, field="nproc_per_node",
                      value=gang.nproc_per_node)  # fmt: skip
    if gang.elastic:
        rule = "cannot go with launcher = 'ray': with fewer nodes Ray Train waits for the workers that find no room"
        raise Refusal(rule, f"write nnodes = {gang.max_nnodes}", field="nnodes", value=gang.nnodes)


def check_workers(run: TrainingRun) -> None:
    """Accept of a run under Ray what needs no number of ours for its workers.

    Raises:
        Refusal: a field that counts ranks by nodes; it is relative to the run.
    """
    if run.gang.launcher != "ray":
        return
    if run.batch is not None:
        rule = f"cannot go with launcher = 'ray': {_WORKERS}, so nobody can compute the effective batch"
        raise Refusal(rule, "leave [batch] out, and let the script compute it", field="batch")
    numbered = any("{rank}" in glob for glob in run.checkpoint.expect)
    if run.gang.max_nnodes > 1 and (numbered or run.checkpoint.writers == "every"):
        field = "expect" if numbered else "writers"
        rule = "cannot go with launcher = 'ray': Ray decides which node a worker runs on, and which number it has"
        remedy = "write checkpoints with argosy.Checkpointer in the train function, or to a volume that all nodes share"
        raise Refusal(rule, remedy, field=f"checkpoint.{field}", value=getattr(run.checkpoint, field))
