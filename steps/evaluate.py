"""Step ``evaluate``: one checkpoint, named by digest and verified, through the user's evaluation script."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from argosy.steps.checkpoint.manifest import Checkpoint
from argosy.steps.checkpoint.node_paths import merged
from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.claims import heartbeat
from argosy.steps.contract import env
from argosy.steps.contract.arguments import EvaluateArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Ending
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.placeholders import fill, filled
from argosy.steps.data.cache.use import Cache, use
from argosy.steps.data.listing import take_snapshot
from argosy.steps.data.manifest import check_digest
from argosy.steps.data.staging import stage_objects
from argosy.steps.evaluations import evaluation_key, write_record
from argosy.steps.outputs import step_main, write_output
from argosy.steps.paths import resolve
from argosy.steps.runlog import RunLog
from argosy.steps.script import ScriptEnding, python_command, run_script
from argosy.steps.store import ObjectStore, open_store
from argosy.steps.verdict import judge

MAX_METRICS_BYTES = 1 << 20


@dataclass(frozen=True)
class Inputs:
    """What the script is given: folders on this pod, and the digest of the held-out data ("" for none)."""

    checkpoint: Checkpoint
    checkpoint_path: Path
    data_path: Path
    data_digest: str
    workdir: Path


def evaluate(args: EvaluateArgs) -> None:
    """Fetch and verify, run the script, read the metric, record it.

    Raises:
        InputError: neither or both of script and module, or a digest that is none.
        StepError: the checkpoint is missing or corrupt, the script failed or ran too long, or its metrics do not
            hold the number.
    """
    check_digest(args.checkpoint_digest, "checkpoint digest")
    if bool(args.script) == bool(args.module):
        raise InputError("script, module: name exactly one evaluation script")
    store = open_store(args.store_uri)
    with heartbeat(store, args), ExitStack() as stack:
        inputs = _prepare(store, args, stack)
        began = time.monotonic()
        metrics = _run(args, inputs)
        value = _metric(metrics, args.metric)
    record = _record(args, inputs, metrics, value, time.monotonic() - began)
    key = evaluation_key(args.prefix, args.checkpoint_digest)
    write_record(store, key, record)
    with RunLog(store, args.prefix, "evaluate") as log:
        log.append("evaluated", metric=args.metric, value=value, checkpoint_digest=args.checkpoint_digest)
    write_output("report-uri", f"{store.uri}/{key}")
    write_output("metric", repr(value))
    print(f"{args.metric} = {value!r} of checkpoint {args.checkpoint_digest[:12]}", flush=True)


def _prepare(store: ObjectStore, args: EvaluateArgs, stack: ExitStack) -> Inputs:
    checkpoints = CheckpointStore(store, args.prefix)
    checkpoint = checkpoints.by_digest(args.checkpoint_digest)
    into = resolve(args.checkpoint_path) / args.checkpoint_digest
    shutil.rmtree(into, ignore_errors=True)  # of an evaluation that was killed: nothing unverified may stay
    into.mkdir(parents=True)
    checkpoints.fetch(replace(checkpoint, files=merged(checkpoint.files)), into)
    data_path, data_digest = _held_out(args, stack)
    workdir = resolve(args.workdir)
    if args.code_digest:
        from argosy.steps.code import unpack

        unpack(store, args.name, args.code_digest, workdir)
    elif not workdir.is_dir():
        workdir = Path.cwd()  # the code is in the image, and so is the working directory
    if args.script and not (workdir / args.script).is_file():
        raise StepError(Cause.LAUNCHER_USAGE, f"no script {args.script!r} in the code folder {workdir}")
    return Inputs(checkpoint, into, data_path, data_digest, workdir)


def _held_out(args: EvaluateArgs, stack: ExitStack) -> tuple[Path, str]:
    """Folder and digest of the held-out data; in a cache it is kept until ``stack`` ends."""
    into = resolve(args.data_path)
    if not args.dataset_uri:
        return into, ""
    manifest = take_snapshot(args.dataset_uri)
    if not args.cache_path:
        stage_objects(manifest, manifest, into)
        return into, manifest.digest
    cache = Cache.of(resolve(args.cache_path), args.cache_gib, args.cache_verify, "")
    used = stack.enter_context(use(cache, manifest, manifest, who=f"the evaluate step of {args.workflow}"))
    print(f"held-out data: {used.result.bytes} bytes, {used.result.fetched_bytes} fetched", flush=True)
    return used.path, manifest.digest


def _run(args: EvaluateArgs, inputs: Inputs) -> dict[str, Any]:
    # Beside the checkpoint: the one folder that is ours and can be written to in every pod.
    with tempfile.TemporaryDirectory(prefix="metrics-", dir=inputs.checkpoint_path.parent) as folder:
        metrics_path = Path(folder) / "metrics.json"
        given = _environment(args, inputs, metrics_path)
        filled(given, args.filled_variables.split(","))
        command = python_command(args.script, args.module, [fill(text, given) for text in args.arg])
        ending = run_script(command, given, inputs.workdir, args.timeout_seconds)
        if ending.exit_code != 0:
            raise _failure(ending)
        return _read_metrics(metrics_path)


def _environment(args: EvaluateArgs, inputs: Inputs, metrics_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        env.RUN_NAME: args.name,
        env.RUN_ID: args.effective_run_id,
        env.RUN_URI: f"{args.store_uri.rstrip('/')}/{args.prefix}",
        env.CHECKPOINT_PATH: str(inputs.checkpoint_path),
        env.DATA_PATH: str(inputs.data_path),
        env.DATA_URI: args.dataset_uri,
        env.METRICS_PATH: str(metrics_path),
    }


def _failure(ending: ScriptEnding) -> StepError:
    told = Ending(
        rank=0, time=time.time(), exit_code=ending.exit_code, signal=ending.signal, stopped=False, tail=[*ending.tail]
    )
    verdict = judge([told], [], [])
    cause, code = verdict.cause, ExitCode(verdict.exit_code)
    if cause == Cause.UNKNOWN and ending.signal is None:
        cause, code = Cause.USER_EXCEPTION, ExitCode.USER_BUG  # a script that exits on purpose would do it again
    how = f"exit code {ending.exit_code}" if ending.signal is None else f"signal {ending.signal}"
    quote = verdict.quote if verdict.cause == cause and verdict.quote else ending.last_line
    return StepError(cause, f"the evaluation script ended with {how}: {quote}", quote=quote, code=code)


def _read_metrics(path: Path) -> dict[str, Any]:
    remedy = f"write a JSON object {{name: number}} to the path in ${env.METRICS_PATH}"
    try:
        if path.stat().st_size > MAX_METRICS_BYTES:
            raise StepError(Cause.USER_EXCEPTION, f"the metrics are larger than {MAX_METRICS_BYTES} bytes; {remedy}")
        metrics = json.loads(path.read_bytes())
    except OSError as error:
        raise StepError(Cause.USER_EXCEPTION, f"the evaluation script wrote no metrics; {remedy}") from error
    except ValueError as error:
        raise StepError(Cause.USER_EXCEPTION, f"the metrics are not JSON ({error}); {remedy}") from error
    if not isinstance(metrics, dict):
        raise StepError(Cause.USER_EXCEPTION, f"the metrics are a {type(metrics).__name__}; {remedy}")
    return metrics


def _metric(metrics: dict[str, Any], name: str) -> float:
    value = metrics.get(name)
    if name not in metrics:
        there = ", ".join(sorted(metrics)) or "nothing"
        raise StepError(Cause.USER_EXCEPTION, f"the metrics have no {name!r}, they have {there}")
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    raise StepError(Cause.USER_EXCEPTION, f"metric {name!r} is {value!r}, not a finite number")


def _record(
    args: EvaluateArgs, inputs: Inputs, metrics: dict[str, Any], value: float, seconds: float
) -> dict[str, Any]:
    return {
        "checkpoint_digest": args.checkpoint_digest,
        "checkpoint_uri": inputs.checkpoint.uri,
        "step": inputs.checkpoint.step,
        "metric": args.metric,
        "value": value,
        "metrics": metrics,
        "script": args.script or args.module,
        "args": list(args.arg),
        "code_digest": args.code_digest,
        "dataset_uri": args.dataset_uri,
        "dataset_digest": inputs.data_digest,
        "run_id": args.effective_run_id,
        "workflow": args.workflow,
        "workflow_uid": args.workflow_uid,
        "time": time.time(),
        "seconds": round(seconds, 3),
    }


if __name__ == "__main__":
    sys.exit(step_main(EvaluateArgs, evaluate))
