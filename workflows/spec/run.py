"""``TrainingRun``: the one thing a user writes, in Python or in TOML."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from argosy.workflows.fabric.fabric import Fabric
from argosy.workflows.spec.batch import Batch
from argosy.workflows.spec.checkpoint import Checkpoint
from argosy.workflows.spec.checkpoint_folder import check_volume
from argosy.workflows.spec.dataset import Dataset
from argosy.workflows.spec.deadlines import Deadlines
from argosy.workflows.spec.entry import check_args, check_entry, check_uri_credentials
from argosy.workflows.spec.environment import check_environment
from argosy.workflows.spec.evaluation import Evaluation
from argosy.workflows.spec.fabric import check_contradictions, fabric_warnings
from argosy.workflows.spec.gang import Gang
from argosy.workflows.spec.launcher import check_workers
from argosy.workflows.spec.notify import Notify
from argosy.workflows.spec.placeholders import check_placeholders
from argosy.workflows.spec.promotion import Promotion
from argosy.workflows.spec.refusal import Refusal
from argosy.workflows.spec.retry import Retry
from argosy.workflows.spec.spares import check_peer_copy
from argosy.workflows.spec.storage import POD_FOLDER, Storage, file_path, is_below
from argosy.workflows.spec.table import Table
from argosy.workflows.spec.texts import Image, KubeName, Line, ModuleName, RunName, ScriptPath
from argosy.workflows.spec.trigger import Trigger
from argosy.workflows.spec.variables import check_variables, variable_warnings


def _check_pattern(text: str) -> str:
    try:
        groups = set(re.compile(text).groupindex)
    except re.error as error:
        raise Refusal(f"is no regular expression: {error}", "test it with Python's re") from None
    if text and "step" not in groups:
        raise Refusal("has no group named step", "write for example 'step (?P<step>[0-9]+) loss (?P<loss>[0-9.]+)'")
    return text


def _check_working_dir(path: str) -> str:
    if path and (not path.startswith("/") or ".." in path.split("/")):
        raise Refusal("must be an absolute folder of the image", 'write for example "/workspace"')
    return path


class TrainingRun(Table):
    """A training run: what is trained, on what, by how many nodes, judged how, and promoted where.

    Raises:
        InputError: at construction, naming field, value, rule and remedy.
    """

    name: RunName = Field(description="Name of the run, a DNS label of at most 40 characters; prefix of all its keys.")
    image: Image = Field(default="argosy/trainer:0.1.0", description="Image of the training and evaluation pods.")
    step_image: Image = Field(
        default="argosy/step:0.1.0", description="Image of the other steps' pods (no CUDA, no torch)."
    )
    script: ScriptPath = Field(
        default="",
        description="Training script, relative to the code folder; absolute when the code is in the image; or module.",
    )
    module: ModuleName = Field(default="", description="Training module (python -m); or give script.")
    args: tuple[Line, ...] = Field(
        default=(),
        description="Arguments of the training script; the workflow parameter args adds to them. {data} in one stands "
        "for the folder with the data, and so on (argosy explain-config args).",
    )
    code: Line = Field(
        default=".",
        description="Folder with the code, relative to the TOML file; it travels as an archive named by its digest. "
        "Checkpoints, logs, events and what .gitignore and .argosyignore name stay at home; !NAME in the latter takes "
        "a file along. Empty: the code is in the image.",
    )
    working_dir: Annotated[Line, AfterValidator(_check_working_dir)] = Field(
        default="",
        description="Folder of the image that the script runs in, when the code is in the image (code empty).",
    )
    env: Annotated[dict[str, str], BeforeValidator(check_environment)] = Field(
        default={},
        description="Environment of the run's pods: NAME = value; {data} and the like as in args. Refuses what looks "
        "like a credential (see secrets). ARGOSY_S3_TRANSPORT chooses what reads datasets from s3:// (auto, wire or "
        "library; docs/s3-transport.md).",
    )
    secrets: tuple[Annotated[KubeName, Field(min_length=1)], ...] = Field(
        default=(), description="Kubernetes Secrets whose keys become environment variables of the run's pods."
    )
    progress_pattern: Annotated[Line, AfterValidator(_check_pattern)] = Field(
        default="",
        description="Regular expression with named groups step and loss that finds progress in the output of a script "
        "that does not call argosy.report, as in 'iter (?P<step>[0-9]+) err (?P<loss>[0-9.]+)'. Empty: a line that "
        "has a loss, mse or nll, and a step, iteration, batch, epoch or [10/200] (step 10/200 loss 2.1), or a bar.",
    )
    storage: Storage = Field(default=Storage(), description="The run's store.")
    dataset: Dataset | None = Field(
        default=None, description="The training data. Absent: the script needs none from argosy."
    )
    gang: Gang = Field(default=Gang(), description="The nodes that train together.")
    checkpoint: Checkpoint = Field(default=Checkpoint(), description="How checkpoints are made and kept.")
    retry: Retry = Field(default=Retry(), description="How often which failure is forgiven.")
    evaluation: Evaluation | None = Field(
        default=None, description="How the result is judged. Absent: nothing is promoted."
    )
    promotion: Promotion = Field(default=Promotion(), description="What happens to a checkpoint that passed.")
    deadlines: Deadlines = Field(default=Deadlines(), description="How long things may take.")
    batch: Batch | None = Field(
        default=None, description="Batch arithmetic, handed to the script. Absent: not declared."
    )
    notify: Notify = Field(default=Notify(), description="Who is told of the end.")
    trigger: Trigger | None = Field(default=None, description="What starts the run by itself. Absent: nothing does.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_entry(self.script, self.module)
        check_args(self.args)
        if self.code and (self.script.startswith("/") or self.working_dir):
            field = "working_dir" if self.working_dir else "script"
            remedy = 'write code = "" (the code is in the image), or a path in the code folder'
            raise Refusal(
                f"lies in the image, but code = {self.code!r} travels", remedy, field=field, value=getattr(self, field)
            )
        if "promotion" in self.model_fields_set and self.evaluation is None:
            raise Refusal("has no effect without [evaluation]", "add [evaluation], or remove it", field="promotion")
        if self.batch is not None:
            self.batch.check_elastic(self.gang.min_nnodes, self.gang.max_nnodes, self.gang.nproc_per_node)
        check_contradictions(self)
        check_workers(self)
        claim = self.storage.mount_path if self.mounts_claim else ""
        store = file_path(self.storage.uri) or ""
        every = self.checkpoint.writers == "every"
        check_volume(self.checkpoint.path, self.working_dir, self.gang.pod.volumes, claim, store, every=every)
        if self.checkpoint.peer_copy:
            check_peer_copy(self.checkpoint.mode, self.gang.spares, self.gang.max_nnodes)
        self._check_trigger()
        for field, uri in self.uris().items():
            check_uri_credentials(field, uri)
            if is_below(file_path(uri) or "/", POD_FOLDER):
                remedy = f"write for example file://{self.storage.mount_path}/store"
                raise Refusal("lies on each pod's own disk, gone with the pod", remedy, field=field, value=uri)
        self._check_evaluation()
        check_placeholders(self)
        check_variables(self)
        return self

    def _check_trigger(self) -> None:
        if self.trigger is None:
            return
        if self.dataset is None:
            raise Refusal("has no effect without [dataset]", "add [dataset], or remove it", field="trigger")
        if self.trigger.continue_from and self.checkpoint.end_step:
            raise Refusal(
                f"the promoted checkpoint has reached checkpoint.end_step = {self.checkpoint.end_step} already",
                "remove checkpoint.end_step: the run then ends when its script ends",
                field="trigger.continue_from",
                value=self.trigger.continue_from,
            )

    def _check_evaluation(self) -> None:
        if self.evaluation is None:
            return
        try:
            check_args(self.evaluation.args)
        except Refusal as refusal:
            raise Refusal(str(refusal), "", field=f"evaluation.{refusal.field}", value=refusal.value) from None

    def uris(self) -> dict[str, str]:
        """Field -> uri, of all that are given."""
        found = {"storage.uri": self.storage.uri}
        if self.dataset is not None:
            found["dataset.uri"] = self.dataset.uri
            if "://" in self.dataset.manifest:
                found["dataset.manifest"] = self.dataset.manifest
        if self.evaluation is not None and self.evaluation.dataset_uri:
            found["evaluation.dataset_uri"] = self.evaluation.dataset_uri
        return found

    @property
    def fabric(self) -> Fabric:
        """The gang's fabric with its parameters filled in; the empty one sets nothing."""
        return self.gang.fabric_of(self.name)

    @property
    def mounts_claim(self) -> bool:
        """Whether the pods mount ``storage.claim``."""
        shared = self.dataset is not None and self.dataset.staging == "shared" and self.dataset.cache is None
        return shared or any(self.storage.holds(uri) for uri in self.uris().values())

    def digest(self, code_digest: str = "") -> str:
        """SHA-256 of the description and the code: what makes two runs the same run, as hex."""
        described = json.dumps(self.model_dump(mode="json", exclude={"trigger"}), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(f"{described}\n{code_digest}".encode()).hexdigest()


def warnings(run: TrainingRun) -> list[str]:
    """What is allowed and probably not meant, a sentence each."""
    found = [
        f"{field} = {uri!r} is not below storage.mount_path = {run.storage.mount_path!r}: only pods of this one "
        "machine can read it"
        for field, uri in run.uris().items()
        if uri.startswith("file:") and not run.storage.holds(uri)
    ]
    if run.gang.resources.gpu > run.gang.nproc_per_node and run.gang.launcher != "ray":
        idle = run.gang.resources.gpu - run.gang.nproc_per_node
        found.append(f"gang.nproc_per_node = {run.gang.nproc_per_node}: {idle} GPUs of each node stay idle")
    if run.dataset is not None and run.dataset.cache is not None and run.dataset.cache.host_path:
        found.append(
            f"dataset.cache.host_path = {run.dataset.cache.host_path!r}: the namespace must admit hostPath volumes "
            "(Pod Security privileged)"
        )
    found.extend(variable_warnings(run))
    found += fabric_warnings(run)
    if run.evaluation is None:
        found.append("no [evaluation]: the checkpoint is kept, nothing is compared or promoted")
    return found
