"""Every field of a run changes the YAML: one without effect has no place in TrainingRun."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.spec.explain import field_paths
from argosy.workflows.spec.run import TrainingRun

OPAQUE = {"checkpoint": {"mode": "opaque", "path": "out"}}
MARKED = {"checkpoint": {"mode": "opaque", "path": "out", "marker": "done"}}
EVERY = {"checkpoint": {"mode": "opaque", "path": "out", "marker": "done", "writers": "every"}}
GPU = {"gang": {"nnodes": 1, "resources": {"gpu": 1}}}
EVALUATION_GPU = {"evaluation": {"script": "e.py", "metric": "m", "direction": "min", "resources": {"gpu": 1}}}
CACHED = {"dataset": {"uri": "s3://b/d", "cache": {"claim": "c"}}}
ON_HOST = {"dataset": {"uri": "s3://b/d", "cache": {"host_path": "/mnt/one"}}}
EPHEMERAL = {"dataset": {"uri": "s3://b/d", "cache": {"ephemeral": "10Gi"}}}
ON_MNT = {"storage": {"uri": "file:///mnt/store"}, "dataset": {"uri": "s3://b/d"}}
TOLERATED = {"gang": {"tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}]}}

SPOT = {"gang": {"spot": {"label": "s", "tolerations": TOLERATED["gang"]["tolerations"]}}}
QUEUED = {"gang": {"placement": "kueue", "queue": "gpu"}}
VOLUME = {
    "gang": {
        "pod": {
            "volumes": [
                {"name": "d", "mount_path": "/mnt/d", "source": {"persistentVolumeClaim": {"claimName": "d"}}},
            ]
        }
    }
}

# Field -> another value, and what else the run needs for it to be legal or to be in use.
CHANGES: dict[str, tuple[Any, dict[str, Any]]] = {
    "name": ("other", {}),
    "image": ("r.example/x:1", {}),
    "step_image": ("r.example/x:1", {}),
    "script": ("other.py", {}),
    "module": ("pkg.train", {"script": "", "module": "pkg.one"}),
    "args": (["--x"], {}),
    "code": ("", {}),
    "working_dir": ("/workspace", {"code": ""}),
    "env": ({"A": "b"}, {}),
    "secrets": (["s"], {}),
    "progress_pattern": (r"(?P<step>\d+)", {}),
    "storage.uri": ("s3://b/p", {}),
    "storage.claim": ("other", {}),
    "storage.mount_path": ("/mnt", ON_MNT),
    "dataset.uri": ("s3://b/d", {}),
    "dataset.layout": ("sharded", {}),
    "dataset.manifest": ("listing.csv", {}),
    "dataset.version": ("a" * 64, {}),
    "dataset.staging": ("shared", {}),
    "dataset.verify": ("etag", {"dataset": {"uri": "s3://b/data", "staging": "stream"}}),
    "dataset.cache.claim": ("other", CACHED),
    "dataset.cache.host_path": ("/mnt/two", ON_HOST),
    "dataset.cache.ephemeral": ("20Gi", EPHEMERAL),
    "dataset.cache.storage_class": ("nvme", EPHEMERAL),
    "dataset.cache.size_gib": (7.5, CACHED),
    "dataset.cache.verify": ("full", CACHED),
    "dataset.cache.read_only": (True, CACHED),
    "gang.runtime": ("job", {}),
    "gang.placement": ("native", {}),
    "gang.launcher": ("plain", {}),
    "gang.queue": ("other", QUEUED),
    "gang.queue_priority": ("urgent", QUEUED),
    "gang.nnodes": (3, {}),
    "gang.preload": (["torch"], {}),
    "gang.spares": (1, {}),
    "gang.nproc_per_node": (3, {}),
    "gang.fabric": ("tcp", {}),
    "gang.transport": ("off", {}),
    "gang.preflight": ("warn", {}),
    "gang.fabric_parameters": ({"interface": "eth1"}, {"gang": {"nnodes": 2, "fabric": "tcp"}}),
    "gang.fabric_profile": ({"name": "ours", "about": "Ours.", "env": [{"name": "A", "value": "b"}]}, {}),
    "gang.shm_size": ("512Mi", {}),
    "gang.node_selector": ({"a": "b"}, {}),
    "gang.tolerations.key": ("other", TOLERATED),
    "gang.tolerations.operator": ("Exists", {"gang": {"tolerations": [{"key": "k"}]}}),
    "gang.tolerations.value": ("other", TOLERATED),
    "gang.tolerations.effect": ("NoSchedule", TOLERATED),
    "gang.tolerations.seconds": (5, TOLERATED),
    "gang.priority_class": ("high", {}),
    "gang.topology.required": ("example.com/rack", {}),
    "gang.topology.preferred": ("example.com/rack", {}),
    "gang.spot.label": ("other", SPOT),
    "gang.spot.value": ("yes", SPOT),
    "gang.spot.preemptions": (7, SPOT),
    "gang.spot.tolerations.key": ("other", SPOT),
    "gang.spot.tolerations.operator": ("Exists", {"gang": {"spot": {"label": "s", "tolerations": [{"key": "k"}]}}}),
    "gang.spot.tolerations.value": ("other", SPOT),
    "gang.spot.tolerations.effect": ("NoSchedule", SPOT),
    "gang.spot.tolerations.seconds": (5, SPOT),
    "gang.service_account": ("sa", {}),
    "gang.resources.cpu": ("500m", {}),
    "gang.resources.memory": ("3Gi", {}),
    "gang.resources.gpu": (2, {}),
    "gang.resources.gpu_resource": ("amd.com/gpu", GPU),
    "gang.resources.extended": ({"rdma/ib": "8"}, {}),
    "gang.pod.labels": ({"a": "b"}, {}),
    "gang.pod.annotations": ({"a": "b"}, {}),
    "gang.pod.affinity": ({"nodeAffinity": {}}, {}),
    "gang.pod.volumes.name": ("other", VOLUME),
    "gang.pod.volumes.mount_path": ("/mnt/other", VOLUME),
    "gang.pod.volumes.sub_path": ("x", VOLUME),
    "gang.pod.volumes.read_only": (True, VOLUME),
    "gang.pod.volumes.source": ({"emptyDir": {}}, VOLUME),
    "gang.pod.scheduler": ("volcano", {}),
    "gang.pod.runtime_class": ("nvidia", {}),
    "gang.pod.host_network": (True, {}),
    "gang.pod.image_pull_secrets": (["s"], {}),
    "gang.pod.image_pull_policy": ("Always", {}),
    "checkpoint.path": ("elsewhere", OPAQUE),
    "checkpoint.include": (["*.pt"], OPAQUE),
    "checkpoint.unit": (["checkpoint-*"], OPAQUE),
    "checkpoint.units_stored": ("all", OPAQUE),
    "checkpoint.expect": (["*rank{rank}*"], OPAQUE),
    "checkpoint.marker": ("done", OPAQUE),
    "checkpoint.writers": ("every", MARKED),
    "checkpoint.reshard": ("all", EVERY),
    "checkpoint.timeout_seconds": (7, EVERY),
    "checkpoint.resume_args": (["--resume"], OPAQUE),
    "checkpoint.every_steps": (7, {}),
    "checkpoint.failure_hours": (7.5, {}),
    "checkpoint.keep": (7, {}),
    "checkpoint.peer_copy": (True, {"gang": {"nnodes": 2, "spares": 1}}),
    "checkpoint.end_step": (7, {}),
    "retry.max_same_failure": (7, {}),
    "retry.nan_losses": (9, {}),
    "retry.nan_skip_steps": (9, {}),
    "retry.max_restarts": (7, {}),
    "retry.max_preemptions": (7, {}),
    "retry.backoff_seconds": (7.5, {}),
    "retry.backoff_cap_seconds": (7.5, {}),
    "retry.supervisor_limit": (7, {}),
    "retry.exit_codes": ({"3": 75}, {}),
    "evaluation.script": ("other.py", {}),
    "evaluation.module": ("pkg.judge", {"evaluation": {"module": "pkg.other", "metric": "m", "direction": "min"}}),
    "evaluation.args": (["--x"], {}),
    "evaluation.metric": ("accuracy", {}),
    "evaluation.direction": ("max", {}),
    "evaluation.floor": (7.5, {}),
    "evaluation.baseline": ("none", {}),
    "evaluation.dataset_uri": ("s3://b/held", {}),
    "evaluation.timeout_seconds": (7, {}),
    "evaluation.shm_size": ("512Mi", {}),
    "evaluation.resources.cpu": ("500m", {}),
    "evaluation.resources.memory": ("3Gi", {}),
    "evaluation.resources.gpu": (2, {}),
    "evaluation.resources.gpu_resource": ("amd.com/gpu", EVALUATION_GPU),
    "evaluation.resources.extended": ({"rdma/ib": "8"}, {}),
    "promotion.pointer": ("candidate", {}),
    "deadlines.run_seconds": (7, {}),
    "deadlines.placement_seconds": (7, {}),
    "deadlines.check_in_seconds": (7, {}),
    "deadlines.heartbeat_seconds": (7, {}),
    "deadlines.hang_seconds": (7, {}),
    "deadlines.on_stall": ("act", {}),
    "deadlines.stall_seconds": (30, {}),
    "deadlines.on_slow_rank": ("act", {}),
    "deadlines.grow_seconds": (7, {"gang": {"nnodes": "1:2"}}),
    "deadlines.grace_seconds": (7, {}),
    "batch.micro_batch_size": (7, {}),
    "batch.accumulation_steps": (7, {}),
    "batch.base_learning_rate": (0.7, {}),
    "batch.base_batch_size": (7, {}),
    "notify.webhook_secret": ("hook", {}),
}
# Refused with the reason.
UNBUILT = {"gang.launcher": ("mpi", "torchrn")}


def test_every_field_is_covered() -> None:
    here = {path for path in field_paths() if not path.startswith("trigger.")}  # those: test_trigger_fields.py
    assert {*CHANGES, "checkpoint.mode"} == here


def test_the_mode_of_checkpoints(full: dict[str, Any], compiled: Callable[..., str]) -> None:
    # Opaque mode needs a path too, so it cannot be changed alone.
    assert "--checkpoint-mode" not in compiled(full)
    assert "--checkpoint-mode=opaque" in compiled({**full, **OPAQUE})


@pytest.mark.parametrize("path", CHANGES)
def test_a_field_changes_the_yaml(
    path: str, full: dict[str, Any], change: Callable[..., dict[str, Any]], compiled: Callable[..., str]
) -> None:
    value, needed = CHANGES[path]
    base = {**full, **needed}
    assert compiled(change(base, path, value)) != compiled(base)


@pytest.mark.parametrize(("path", "value"), [(path, value) for path, values in UNBUILT.items() for value in values])
def test_what_does_not_run_is_refused(
    path: str, value: str, full: dict[str, Any], change: Callable[..., dict[str, Any]]
) -> None:
    with pytest.raises(
        InputError, match=rf"^{path} = '{value}': .*(what exists: runtime = 'jobset' or 'job' |did you mean|are )"
    ):
        TrainingRun(**change(full, path, value))
