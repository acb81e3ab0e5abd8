"""What every node of a gang is told, as far as it is known at compile time."""

from __future__ import annotations

from argosy.steps.contract.arguments import LaunchArgs
from argosy.workflows.gang.cache import cache_arguments, cache_path
from argosy.workflows.spec.placeholders import filled_variables
from argosy.workflows.spec.run import TrainingRun

DATA_PATH = "/argosy/data"


def launch_args(run: TrainingRun, code_digest: str) -> LaunchArgs:
    """Arguments of ``argosy.steps.launch``."""
    gang, checkpoint, dataset, batch = run.gang, run.checkpoint, run.dataset, run.batch
    expected = run.fabric.expected(run.env, gang.max_nnodes)
    rate = batch.learning_rate(gang.world_size) if batch else None
    return LaunchArgs(
        store_uri=run.storage.uri,
        name=run.name,
        script=run.script,
        module=run.module,
        arg=run.args,
        code_digest=code_digest,
        workdir=run.working_dir or LaunchArgs.workdir,
        nproc_per_node=gang.nproc_per_node,
        launcher=gang.launcher,
        preload=gang.preload,
        staging=dataset.staging if dataset else "none",
        layout=dataset.layout if dataset else "replicated",
        data_path=DATA_PATH,
        cache_path=cache_path(run),
        **cache_arguments(run),
        checkpoint_mode=checkpoint.mode,
        checkpoint_path=checkpoint.path,
        checkpoint_include=(checkpoint.include or ("**/*",)) if checkpoint.mode == "opaque" else (),
        checkpoint_unit=checkpoint.unit,
        checkpoint_units_stored=_unless(checkpoint.units_stored, "newest"),
        checkpoint_writers=_unless(checkpoint.writers, "first"),
        checkpoint_expect=checkpoint.expect,
        checkpoint_marker=checkpoint.marker,
        checkpoint_reshard=_unless(checkpoint.reshard, "own"),
        checkpoint_timeout_seconds=checkpoint.timeout_seconds,
        resume_arg=checkpoint.resume_args,
        checkpoint_every_steps=str(checkpoint.every_steps),
        checkpoint_failure_hours=checkpoint.failure_hours,
        checkpoint_keep=checkpoint.keep,
        checkpoint_peer_copy=checkpoint.peer_copy,
        progress_pattern=run.progress_pattern,
        grace_seconds=run.deadlines.grace_seconds,
        micro_batch_size=batch.micro_batch_size if batch else 0,
        accumulation_steps=batch.accumulation_steps if batch else 1,
        effective_batch_size=batch.effective_batch_size(gang.world_size) if batch else 0,
        learning_rate=rate,
        filled_variables=",".join(filled_variables(run)),
        expected_transport="" if expected is None else expected.to_json(),
        fabric_variables=",".join(setting.name for setting in run.fabric.env if setting.name not in run.env),
        transport=_unless(gang.transport, "warn"),
        preflight=_unless(gang.preflight, "off"),
    )


def _unless(value: str, default: str) -> str:
    """Empty for the default: the manifest shows what was chosen."""
    return "" if value == default else value
