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

    Raises:
        StepError: no whole number of micro steps makes the declared batch with so many ranks (``launcher_usage``).
    """
    steps = accumulation(args, assignment)
    if args.effective_batch_size and args.micro_batch_size and assignment.node_rank == 0:
        print(f"argosy: {_batch(args, steps, assignment.nnodes * args.nproc_per_node)}", flush=True)
    gpus = visible_gpus()
    if 0 < gpus != args.nproc_per_node:
        less = "share them" if gpus < args.nproc_per_node else f"leave {gpus - args.nproc_per_node} idle"
        text = f"warning: {args.nproc_per_node} ranks on a node with {gpus} GPUs {less}"
        print(f"argosy: {text}", file=sys.stderr, flush=True)


def accumulation(args: LaunchArgs, assignment: Assignment) -> int:
    """Micro steps per optimizer step, so that the effective batch and its learning rate stay what was declared.

    An elastic gang that goes on with fewer nodes takes more of them.

    Raises:
        StepError: see :func:`check_arithmetic`.
    """
    if not (args.effective_batch_size and args.micro_batch_size):
        return args.accumulation_steps
    ranks = assignment.nnodes * args.nproc_per_node
    steps, rest = divmod(args.effective_batch_size, args.micro_batch_size * ranks)
    if rest or not steps:
        text = (
            f"the effective batch of {args.effective_batch_size} is no multiple of what {ranks} ranks "
            f"({assignment.nnodes} nodes x {args.nproc_per_node}) take in one micro step: {args.micro_batch_size} "
            f"samples x {ranks} = {args.micro_batch_size * ranks}; compile the run for this gang"
        )
        raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
    return steps


def _batch(args: LaunchArgs, steps: int, ranks: int) -> str:
    rate = f"; learning rate {args.learning_rate:g}" if args.learning_rate is not None else ""
    return (
        f"batch: {args.micro_batch_size} samples x {steps} micro steps x {ranks} ranks = "
        f"{args.effective_batch_size} per optimizer step{rate}"
    )


def visible_gpus(devices: Path = _DEVICES) -> int:
    """NVIDIA GPUs of this pod, count: the container runtime makes a device file for each of them."""
    try:
        return sum(path.name.removeprefix("nvidia").isdigit() for path in devices.glob("nvidia*"))
    except OSError:
        return 0
