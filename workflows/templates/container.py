"""The container of a step: an installed module with an argv list, admitted by Pod Security "restricted"."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from hera.workflows import Container, Parameter, RetryStrategy
from hera.workflows.artifact import Artifact
from hera.workflows.models import (
    ContainerPort,
    EmptyDirVolumeSource,
    EnvFromSource,
    EnvVar,
    PersistentVolumeClaimVolumeSource,
    PodSecurityContext,
    ResourceRequirements,
    SecurityContext,
    Volume,
    VolumeMount,
)

from argosy.steps.contract.argv import StepArgs
from argosy.steps.outputs import OUTPUTS
from argosy.workflows.gang.pod import (
    CLAIM_VOLUME,
    CONTAINER_SECURITY,
    POD_SECURITY,
    environment,
    environment_sources,
)
from argosy.workflows.spec.run import TrainingRun

_RESTRICTED: Final = {"securityContext": dict(CONTAINER_SECURITY)}
_EXECUTOR: Final = {
    "initContainers": [{"name": "init", **_RESTRICTED}],
    "containers": [{"name": "wait", **_RESTRICTED}],
}
"""Argo's own containers beside ours: without a setting of the controller they have no security context at all, and
Pod Security "restricted" would refuse the whole pod."""
STEP_RESOURCES: Final = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


def step_container(
    run: TrainingRun,
    name: str,
    args: StepArgs,
    *,
    retries: RetryStrategy,
    inputs: Sequence[Parameter | Artifact],
    outputs: Sequence[Parameter] = (),
    image: str = "",
    folders: dict[str, str] | None = None,
    volumes: tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]] = ((), ()),
    env: Sequence[dict[str, Any]] = (),
    resources: dict[str, Any] | None = None,
    deadline_seconds: int | None = None,
    grace_seconds: int | None = None,
    labels: dict[str, str] | None = None,
    ports: dict[str, int] | None = None,
) -> Container:
    """A Hera template; created inside a workflow's context it joins that workflow.

    ``folders`` are further folders on the pod's own disk (volume name -> path); ``volumes`` (and their mounts) and
    ``env`` are further ones as Kubernetes has them; ``grace_seconds`` is the time between SIGTERM and SIGKILL (30
    unless given); ``ports`` are names and numbers of those that others may ask.
    """
    own, mounts = _volumes(run, {"outputs": OUTPUTS, **(folders or {})})
    grace = {} if grace_seconds is None else {"terminationGracePeriodSeconds": grace_seconds}
    return Container(
        name=name,
        image=image or run.step_image,
        command=args.command(),
        args=args.to_argv(),
        inputs=list(inputs),
        outputs=list(outputs) or None,
        labels=labels,
        ports=[
            ContainerPort(name=port, container_port=number, protocol="TCP") for port, number in (ports or {}).items()
        ]
        or None,
        env=[EnvVar.model_validate(each) for each in environment(run, *env)],
        env_from=[EnvFromSource.model_validate(each) for each in environment_sources(run)] or None,
        resources=ResourceRequirements.model_validate(resources or STEP_RESOURCES),
        retry_strategy=retries,
        security_context=SecurityContext.model_validate(CONTAINER_SECURITY),
        pod_security_context=PodSecurityContext.model_validate(POD_SECURITY),
        service_account_name=run.gang.service_account or None,
        volumes=[*own, *(Volume.model_validate(each) for each in volumes[0])],
        volume_mounts=[*mounts, *(VolumeMount.model_validate(each) for each in volumes[1])],
        active_deadline_seconds=deadline_seconds,
        pod_spec_patch=json.dumps({**grace, **_EXECUTOR}, separators=(",", ":")),
    )


def restricted(container: Container) -> Container:
    """A task of your own, as Pod Security "restricted" admits it: as user 1000, without privileges."""
    container.pod_security_context = PodSecurityContext.model_validate(POD_SECURITY)
    container.security_context = SecurityContext.model_validate(CONTAINER_SECURITY)
    container.pod_spec_patch = json.dumps(_EXECUTOR, separators=(",", ":"))
    return container


def _volumes(run: TrainingRun, folders: dict[str, str]) -> tuple[list[Volume], list[VolumeMount]]:
    volumes = [Volume(name=name, empty_dir=EmptyDirVolumeSource()) for name in folders]
    mounts = [VolumeMount(name=name, mount_path=path) for name, path in folders.items()]
    if run.mounts_claim:
        source = PersistentVolumeClaimVolumeSource(claim_name=run.storage.claim)
        volumes.insert(0, Volume(name=CLAIM_VOLUME, persistent_volume_claim=source))
        mounts.insert(0, VolumeMount(name=CLAIM_VOLUME, mount_path=run.storage.mount_path))
    return volumes, mounts
