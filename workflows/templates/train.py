"""The train step: the supervisor of the gang."""

from __future__ import annotations

import json
from typing import Any, Final

from hera.workflows import Container, RawArtifact

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.env import CHANNEL_TOKEN
from argosy.steps.contract.objects import METRICS_PORT, METRICS_PORT_NAME, ROLE_LABEL, TOKEN_KEY, channel_name
from argosy.workflows.gang.documents import gang_yaml
from argosy.workflows.spec.run import TrainingRun
from argosy.workflows.templates.container import step_container
from argosy.workflows.templates.inputs import given, identity, input_parameters, output_parameters
from argosy.workflows.templates.needs import need_code
from argosy.workflows.templates.retries import train_retries

GANG_FOLDER: Final = "/argosy/in"
GANG_PATH: Final = f"{GANG_FOLDER}/gang.yaml"
_TOKEN: Final[dict[str, Any]] = {
    "name": CHANNEL_TOKEN,
    "valueFrom": {
        "secretKeyRef": {"name": channel_name("{{workflow.uid}}"), "key": TOKEN_KEY, "optional": True},
    },
}
"""The first supervisor makes the Secret; those after it have the token from here, so that none may read Secrets."""
CLEAN_UP_SECONDS: Final = 60
"""After the gang's own grace: time to see its last commits and delete it."""


def train(run: TrainingRun, code_digest: str = "") -> Container:
    """Template ``train``.

    Inputs: ``dataset-digest``, ``args`` (JSON list), ``resume-from``, ``run-id``, and the artifact ``gang`` (the
    gang's manifest). Outputs: ``checkpoint-uri``, ``checkpoint-digest``, ``verdict``. ``code_digest`` is the
    SHA-256 of the pushed code archive, required unless ``code`` is "".

    Raises:
        InputError: the code folder was not packed.
    """
    need_code(run, code_digest)
    # An emptyDir of its own: below the claim's mount, two runs would write one and the same gang.yaml.
    folders = {"gang": GANG_FOLDER}
    manifest = RawArtifact(name="gang", path=GANG_PATH, data=gang_yaml(run, code_digest))
    return step_container(
        run,
        "train",
        _arguments(run),
        retries=train_retries(run),
        inputs=[*input_parameters("dataset-digest", "args", "resume-from"), manifest],
        outputs=output_parameters("checkpoint-uri", "checkpoint-digest", "verdict"),
        folders=folders,
        env=[_TOKEN],
        # The Service of the control channel selects the supervisor's pod by it and by Argo's label of the workflow.
        labels={ROLE_LABEL: "supervisor"},
        ports={METRICS_PORT_NAME: METRICS_PORT},
        grace_seconds=run.deadlines.grace_seconds + CLEAN_UP_SECONDS,
    )


def _arguments(run: TrainingRun) -> TrainArgs:
    retry, deadlines = run.retry, run.deadlines
    return TrainArgs(
        gang=GANG_PATH,
        min_nnodes=run.gang.min_nnodes,
        dataset_digest=given("dataset-digest"),
        args=given("args"),
        resume_from=given("resume-from"),
        end_step=run.checkpoint.end_step,
        placement_timeout_seconds=deadlines.placement_seconds,
        check_in_timeout_seconds=deadlines.check_in_seconds,
        heartbeat_timeout_seconds=deadlines.heartbeat_seconds,
        hang_timeout_seconds=deadlines.hang_seconds,
        act_on_stall=deadlines.on_stall == "act",
        stall_seconds=deadlines.stall_seconds,
        act_on_slow_rank=deadlines.on_slow_rank == "act",
        grow_seconds=deadlines.grow_seconds if run.gang.elastic else 0,
        spot="" if run.gang.spot is None else json.dumps(run.gang.spot.supervised(), separators=(",", ":")),
        grace_seconds=deadlines.grace_seconds,
        max_same_failure=retry.max_same_failure,
        nan_losses=retry.nan_losses,
        nan_skip_steps=retry.nan_skip_steps,
        max_restarts=retry.max_restarts,
        max_preemptions=retry.max_preemptions,
        backoff_seconds=retry.backoff_seconds,
        backoff_cap_seconds=retry.backoff_cap_seconds,
        exit_code_map=json.dumps(retry.exit_codes, separators=(",", ":")),
        **identity(run),
    )
