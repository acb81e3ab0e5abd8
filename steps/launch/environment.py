"""What a training script finds in its environment: the names are public (argosy.steps.contract.env)."""

from __future__ import annotations

import os
import re

from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.layout import run_prefix
from argosy.steps.launch.arithmetic import accumulation

_WITHHELD = (names.CHANNEL_URL, names.CHANNEL_TOKEN, names.LIFELINE_FD, names.FAULT, names.INJECT, names.PROGRESS_FD)
"""Ours alone: a training script has no business with the control channel."""
_READ_ONCE = {
    "OMP_NUM_THREADS": "1",
    # Lines must be out when a rank is killed, and a crash must leave its stack.
    "PYTHONUNBUFFERED": "1",
    "PYTHONFAULTHANDLER": "1",
}
"""Defaults that Python and torch read once, when they start."""
_WANDB_ID = re.compile(r"[^A-Za-z0-9_-]")


def _passed_on() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _WITHHELD}


def standby_environment() -> dict[str, str]:
    """What is read once, at the start of Python and of torch, is as ranks find it."""
    return _READ_ONCE | _passed_on()


def rank_environment(args: LaunchArgs, assignment: Assignment, *, data_path: str, data_uri: str) -> dict[str, str]:
    """The whole environment of the ranks of one restart; what the user set stays."""
    environ = _passed_on()
    environ.update(_run(args, assignment))
    environ.update(_batch(args, assignment))
    if assignment.skip:
        environ[names.SKIP_STEPS] = assignment.skip
    if args.checkpoint_failure_hours:
        environ[names.FAILURE_HOURS] = repr(args.checkpoint_failure_hours)
    if data_path:
        environ[names.DATA_PATH] = data_path
    if data_uri:
        environ[names.DATA_URI] = data_uri
        environ[names.DATASET_DIGEST] = assignment.dataset_digest
    for name, value in _defaults(args, assignment).items():
        environ.setdefault(name, value)
    if environ["PYTHONUNBUFFERED"] == "0":  # the Training Operator sets it so in the pods of an XGBoostJob
        environ["PYTHONUNBUFFERED"] = "1"
    return environ


def _run(args: LaunchArgs, assignment: Assignment) -> dict[str, str]:
    prefix = run_prefix(args.name, assignment.run_id)
    opaque = args.checkpoint_mode == "opaque"
    return {
        names.RUN_NAME: args.name,
        names.RUN_ID: assignment.run_id,
        names.RUN_URI: f"{args.store_uri.rstrip('/')}/{prefix}",
        names.ATTEMPT: str(assignment.attempt),
        names.RESTART: str(assignment.restart),
        names.GENERATION: str(assignment.generation),
        names.LOG_SEQ: str(assignment.log_seq),
        names.CHECKPOINT_EVERY: args.checkpoint_every_steps,
        names.CHECKPOINT_KEEP: str(args.checkpoint_keep),
        names.RESUME_DIGEST: "" if opaque else assignment.resume_digest,
        names.RESUME_STEP: str(assignment.resume_step),
    }


def _batch(args: LaunchArgs, assignment: Assignment) -> dict[str, str]:
    declared = {
        names.MICRO_BATCH: str(args.micro_batch_size or ""),
        names.ACCUMULATION: str(accumulation(args, assignment)),
        names.EFFECTIVE_BATCH: str(args.effective_batch_size or ""),
        names.LEARNING_RATE: "" if args.learning_rate is None else repr(args.learning_rate),
    }
    return {name: value for name, value in declared.items() if value}


def _defaults(args: LaunchArgs, assignment: Assignment) -> dict[str, str]:
    defaults = {
        # One stable id, so that curves go on over restarts; an own choice of the user's wins.
        "WANDB_RUN_ID": _WANDB_ID.sub("-", assignment.run_id)[:64],
        "WANDB_RESUME": "allow",
        "MLFLOW_RUN_NAME": assignment.run_id,
        **_READ_ONCE,
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(args.grace_seconds),
    }
    if os.environ.get(names.GANG_HOST) == "processes" and assignment.master_addr.startswith("127."):
        # The machine's own name need not resolve; all ranks are here.
        defaults["GLOO_SOCKET_IFNAME"] = "lo"
    return defaults
