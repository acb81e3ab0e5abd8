"""The numbers of a gang that must fit each other, checked where they are known at last: in the pod."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError

_DEVICES: Final = Path("/dev")


def check_arithmetic(args: LaunchArgs, assignment: Assignment) -> None:
    """The effective batch against the ranks that are really there, and the ranks against the pod's GPUs.

    The compiler computed batch and learning rate for a number of ranks; a manifest that was edited since, or
    a gang that got another number of nodes, would train with a batch that nobody declared.

    Raises:
        StepError: the declared batch is for another number of ranks (``launcher_usage``).
    """
    ranks = assignment.nnodes * args.nproc_per_node
    if args.effective_batch_size and args.micro_batch_size:
        here = args.micro_batch_size * args.accumulation_steps * ranks
        if here != args.effective_batch_size:
            text = (
                f"the effective batch of {args.effective_batch_size} is not what {ranks} ranks "
                f"({assignment.nnodes} nodes x {args.nproc_per_node}) make: {args.micro_batch_size} samples x "
                f"{args.accumulation_steps} micro steps x {ranks} = {here}; compile the run for this gang"
            )
            raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
        if assignment.node_rank == 0:
            print(f"argosy: {_batch(args, ranks)}", flush=True)
    gpus = visible_gpus()
    if 0 < gpus != args.nproc_per_node:
        less = "share them" if gpus < args.nproc_per_node else f"leave {gpus - args.nproc_per_node} idle"
        text = f"warning: {args.nproc_per_node} ranks on a node with {gpus} GPUs {less}"
        print(f"argosy: {text}", file=sys.stderr, flush=True)


def _batch(args: LaunchArgs, ranks: int) -> str:
    rate = f"; learning rate {args.learning_rate:g}" if args.learning_rate is not None else ""
    return (
        f"batch: {args.micro_batch_size} samples x {args.accumulation_steps} micro steps x {ranks} ranks = "
        f"{args.effective_batch_size} per optimizer step{rate}"
    )


def visible_gpus(devices: Path = _DEVICES) -> int:
    """NVIDIA GPUs of this pod, count: the container runtime makes a device file for each of them."""
    try:
        return sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia*"))
    except OSError:
        return 0
