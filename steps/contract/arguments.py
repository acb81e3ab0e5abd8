"""The arguments of every step. Field docs are the ``--help`` texts; the compiler writes these, nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from argosy.steps.contract.argv import StepArgs, option
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.layout import RUN_ID_RULE, is_run_id, run_prefix

BOOK_SECONDS, LONGEST_BOOK_SECONDS = 3600.0, 24 * 3600.0
"""How long data that were staged for a gang are kept for it: unless said, and at most."""


@dataclass(frozen=True, kw_only=True)
class RunArgs(StepArgs):
    """What every step knows of the run."""

    store_uri: str = option("root of the store: s3://bucket/prefix, gs://, az:// or file:///path")
    name: str = option("the run's name (TrainingRun.name)")
    run_id: str = option("stable id of the run; empty: the workflow's name", default="")
    workflow: str = option("name of the Workflow object")
    workflow_uid: str = option("uid of the Workflow object")

    @property
    def effective_run_id(self) -> str:
        """``run_id``, or the workflow's name when none was given.

        Raises:
            InputError: ``run_id`` is no part of a key; Argo takes any text for a parameter.
        """
        if self.run_id and not is_run_id(self.run_id):
            raise InputError(f"run-id = {self.run_id!r}: {RUN_ID_RULE}")
        return self.run_id or self.workflow

    @property
    def prefix(self) -> str:
        """Key prefix of the run in the store."""
        return run_prefix(self.name, self.effective_run_id)


@dataclass(frozen=True, kw_only=True)
class SnapshotArgs(RunArgs):
    """Freeze a dataset: one listing, written as an immutable manifest whose digest names the version.

    Outputs: ``dataset-digest``, ``dataset-manifest-uri``, ``objects``, ``bytes``.
    """

    MODULE: ClassVar[str] = "argosy.steps.snapshot"
    dataset_uri: str = option("prefix that holds the dataset's objects")
    dataset_manifest: str = option("listing to read instead of listing the store; empty: none", default="")
    version: str = option("expected manifest digest; another one is an error", default="")


@dataclass(frozen=True, kw_only=True)
class AdmitArgs(RunArgs):
    """Decide whether this workflow runs: an event for a dataset that was already claimed does not.

    Outputs: ``decision`` (``start`` or ``duplicate``), ``reason``, ``key``.
    """

    MODULE: ClassVar[str] = "argosy.steps.admit"
    run_digest: str = option("digest of the run's description")
    dataset_digest: str = option("digest from snapshot; empty for a run without a dataset", default="")
    event: str = option("id of the event that started the workflow; empty: a manual start", default="")
    once: bool = option("dedupe manual starts too", default=False)
    force: bool = option("start whatever was claimed", default=False)
    lease_seconds: int = option("after this silence a claim may be taken over, seconds", default=900)


@dataclass(frozen=True, kw_only=True)
class StageArgs(RunArgs):
    """Bring the dataset where training reads it, verified and atomically published.

    Mode ``shared`` fills ``path``; ``node`` verifies the manifest and writes the per-node plan, the pods of the
    gang fetch; ``stream`` reads every object once and keeps checksums of its blocks. Outputs: ``plan-uri``, ``bytes``.
    """

    MODULE: ClassVar[str] = "argosy.steps.stage"
    dataset_digest: str = option("digest from snapshot")
    mode: str = option("shared, node or stream")
    layout: str = option("replicated (every node all objects) or sharded (each node its part)")
    path: str = option("mode shared: folder of the cache on the shared volume", default="")
    cache_gib: float | None = option(
        "mode shared: limit of all datasets in the cache, GiB; none: the volume's", default=None
    )
    cache_verify: str = option("mode shared: none, stat or full before data are used again; empty: stat", default="")
    cache_access: str = option("mode shared: read-only when the volume is not to be written", default="")
    book_seconds: float = option(
        "mode shared: how long the data are kept for the gang, which has to come for them, seconds",
        default=BOOK_SECONDS,
    )
    nnodes: int = option("number of nodes that the plan is for", default=1)
    verify: str = option(
        "mode stream: blocks (take their checksums, once per version) or etag; empty: blocks", default=""
    )


@dataclass(frozen=True, kw_only=True)
class TrainArgs(RunArgs):
    """Supervise the gang: create or adopt it, fence, restart, exclude, judge; delete it on SIGTERM.

    Outputs: ``checkpoint-uri``, ``checkpoint-digest``, ``verdict``.
    """

    MODULE: ClassVar[str] = "argosy.steps.train"
    gang: str = option("path of the gang manifest (a raw artifact)")
    min_nnodes: int = option("fewest nodes to go on with (equal to the manifest's for a fixed gang)")
    dataset_digest: str = option("digest from snapshot; empty for a run without a dataset", default="")
    args: str = option("JSON list of further arguments of the training script", default="[]")
    resume_from: str = option("latest, none, or a manifest digest", default="latest")
    end_step: int = option("step that the last verified commit must reach; 0: the commit marked final", default=0)
    placement_timeout_seconds: int = option(
        "every pod of an admitted gang must have its node within, seconds", default=900
    )
    check_in_timeout_seconds: int = option("all nodes must check in within, seconds", default=600)
    heartbeat_timeout_seconds: int = option("silence of a node after which it counts as lost, seconds", default=60)
    hang_timeout_seconds: int = option("no step within this time is a hang, seconds; 0: never", default=1800)
    act_on_stall: bool = option("a pause ten times as long as any before is a hang", default=False)
    stall_seconds: int = option("shortest such pause, seconds", default=120)
    act_on_slow_rank: bool = option("a rank that the others wait for in every step is moved away", default=False)
    grow_seconds: int = option("how often a smaller gang looks for its other nodes, seconds; 0: never", default=0)
    grace_seconds: int = option("time for a clean save after SIGTERM, seconds", default=60)
    spot: str = option("JSON: the spot nodes that are asked for, and when gangs leave them; empty: none", default="")
    max_same_failure: int = option("same root without a new verified commit, at most", default=3)
    nan_losses: int = option("so many NaN or infinite losses in a row end a restart; 0: never", default=3)
    nan_skip_steps: int = option(
        "so many steps' data are passed over where the loss was NaN twice; 0: none, the run stops there", default=0
    )
    max_restarts: int = option("restarts without a new verified commit in between, at most", default=5)
    max_preemptions: int = option("preemptions and lost nodes within 6 hours, at most", default=20)
    backoff_seconds: float = option("pause before the second restart, doubled each time, seconds", default=1.0)
    backoff_cap_seconds: float = option("longest pause, seconds", default=300.0)
    exit_code_map: str = option('JSON {"code of the script": exit code 70..78}', default="{}")


@dataclass(frozen=True, kw_only=True)
class SuperviseArgs(StepArgs):
    """Supervise a gang of the user's own, without a store and without code of ours in its pods.

    Example: ``python -m argosy.steps.supervise --gang=/gang/gang.yaml --workflow={{workflow.name}}
    --workflow-uid={{workflow.uid}}``
    """

    MODULE: ClassVar[str] = "argosy.steps.supervise"
    gang: str = option("path of a JobSet or an Indexed Job, with a Service and a PodGroup if it has them")
    workflow: str = option("{{workflow.name}}: it owns the gang; empty outside of a workflow", default="")
    workflow_uid: str = option("{{workflow.uid}}", default="")
    placement_timeout_seconds: int = option(
        "every pod of an admitted gang must have its node within, seconds", default=900
    )
    max_same_failure: int = option("the same root, at most", default=3)
    max_restarts: int = option("restarts, at most; preemptions are not counted", default=5)
    max_preemptions: int = option("preemptions and lost nodes within 6 hours, at most", default=20)
    backoff_seconds: float = option("pause before the second restart, doubled each time, seconds", default=1.0)
    backoff_cap_seconds: float = option("longest pause, seconds", default=300.0)


@dataclass(frozen=True, kw_only=True)
class LaunchArgs(StepArgs):
    """Run one node of a gang: check in, fetch data and code, run the ranks, report, save and restore.

    Everything here is known at compile time and can be read in the gang manifest; identity (run id, attempt,
    rank, generation, dataset digest, extra arguments) comes from the supervisor at check-in.
    """

    MODULE: ClassVar[str] = "argosy.steps.launch"
    store_uri: str = option("root of the store")
    name: str = option("the run's name")
    script: str = option("training script, relative to the code folder", default="")
    module: str = option("training module (python -m); instead of script", default="")
    arg: tuple[str, ...] = option("argument of the script; repeat", default=())
    code_digest: str = option("SHA-256 of the code archive; empty: the code is in the image", default="")
    workdir: str = option("folder the code is unpacked into and the script runs in", default="/argosy/workspace")
    nproc_per_node: int = option("ranks on this node", default=1)
    launcher: str = option("torchrun, plain, mpirun or ray", default="torchrun")
    preload: tuple[str, ...] = option("torchrun: module that ranks find imported; repeat", default=())
    staging: str = option("shared, node, stream or none", default="none")
    layout: str = option("replicated or sharded", default="replicated")
    data_path: str = option("folder of the staged data on the pod's own disk", default="/argosy/data")
    cache_path: str = option("folder of a cache of staged datasets; empty: none", default="")
    cache_gib: float | None = option("limit of all datasets in the cache, GiB; none: the volume's", default=None)
    cache_verify: str = option("none, stat or full before data are used again; empty: stat", default="")
    cache_access: str = option("read-only when the cache is not to be written", default="")
    checkpoint_mode: str = option("checkpointer (of argosy, in the script) or opaque", default="checkpointer")
    checkpoint_path: str = option("opaque: the script's folder; absolute: {run_id} in it", default="")
    checkpoint_include: tuple[str, ...] = option("opaque: glob of files that form the checkpoint; repeat", default=())
    checkpoint_unit: tuple[str, ...] = option(
        "opaque: glob of entries directly below the folder that are checkpoints of their own; repeat; none: folders "
        "named by a step",
        default=(),
    )
    checkpoint_units_stored: str = option(
        "opaque: all: each commit holds every complete unit; empty: the newest", default=""
    )
    checkpoint_writers: str = option(
        "opaque: every: each node commits the files on its own disk; empty: the first node all", default=""
    )
    checkpoint_expect: tuple[str, ...] = option(
        "opaque: glob in a unit with {rank} that must match a file of every rank; repeat", default=()
    )
    checkpoint_marker: str = option("opaque: glob of the file that is written last", default="")
    checkpoint_reshard: str = option(
        "opaque, writers every: all: each node restores all nodes' files; empty: its own", default=""
    )
    checkpoint_timeout_seconds: int = option(
        "opaque, writers every: time for the other nodes to complete a checkpoint, seconds", default=300
    )
    resume_arg: tuple[str, ...] = option(
        "opaque: added to the arguments when something was restored; repeat", default=()
    )
    checkpoint_every_steps: str = option(
        "steps between saves handed to the Checkpointer, or auto; 0: the script decides", default="0"
    )
    checkpoint_failure_hours: float | None = option(
        "expected time between failures of the gang for auto, hours; none: assumed", default=None
    )
    checkpoint_keep: int = option("verified checkpoints kept; 0: all", default=3)
    checkpoint_peer_copy: bool = option("each node keeps a copy of what the one before it saved", default=False)
    progress_pattern: str = option("regular expression with groups step and loss for plain scripts", default="")
    grace_seconds: int = option("time for a clean save after SIGTERM, seconds", default=60)
    micro_batch_size: int = option("samples per rank and micro step; 0: not declared", default=0)
    accumulation_steps: int = option("micro steps per optimizer step", default=1)
    effective_batch_size: int = option("samples per optimizer step over all ranks; 0: not declared", default=0)
    learning_rate: float | None = option("learning rate after the linear rule; none: not declared", default=None)
    expected_transport: str = option(
        "JSON of what the ranks must talk over, from the fabric profile; empty: not stated", default=""
    )
    filled_variables: str = option("names of variables whose values hold {data} and the like, with commas", default="")
    fabric_variables: str = option("names of the variables that the fabric profile sets, with commas", default="")
    transport: str = option("what another transport than expected does: warn (empty), enforce or off", default="")
    preflight: str = option("what a node that is slow or not reached does: off (empty), warn or enforce", default="")


@dataclass(frozen=True, kw_only=True)
class EvaluateArgs(RunArgs):
    """Run the evaluation script on one checkpoint, named by digest, verified before it is handed over.

    Outputs: ``metric`` (the number), ``report-uri``.
    """

    MODULE: ClassVar[str] = "argosy.steps.evaluate"
    checkpoint_digest: str = option("manifest digest from train")
    script: str = option("evaluation script, relative to the code folder", default="")
    module: str = option("evaluation module; instead of script", default="")
    arg: tuple[str, ...] = option("argument of the script; repeat", default=())
    metric: str = option("name of the number in the script's metrics")
    code_digest: str = option("SHA-256 of the code archive; empty: the code is in the image", default="")
    workdir: str = option("folder the code is unpacked into", default="/argosy/workspace")
    checkpoint_path: str = option("folder the verified checkpoint is fetched into", default="/argosy/checkpoint")
    dataset_uri: str = option("held-out data; empty: none is fetched", default="")
    data_path: str = option("folder the held-out data is fetched into", default="/argosy/data")
    cache_path: str = option("folder of a cache that the held-out data is kept in; empty: none", default="")
    cache_gib: float | None = option("limit of all datasets in the cache, GiB; none: the volume's", default=None)
    cache_verify: str = option("none, stat or full before data are used again; empty: stat", default="")
    filled_variables: str = option("names of variables whose values hold {data} and the like, with commas", default="")
    timeout_seconds: int = option("time limit of the script, seconds", default=3600)


@dataclass(frozen=True, kw_only=True)
class GateArgs(RunArgs):
    """Compare the metric with the floor and with what is promoted now.

    Outputs: ``decision`` (``promote`` or ``refuse``), ``reason``.
    """

    MODULE: ClassVar[str] = "argosy.steps.gate"
    checkpoint_digest: str = option("manifest digest that was evaluated")
    metric: str = option("name of the number")
    value: str = option("the number from evaluate")
    direction: str = option("min (less is better) or max")
    floor: float | None = option("worst value that passes; none: any", default=None)
    baseline: str = option("pointer (must not be worse than what is promoted) or none", default="pointer")
    pointer: str = option("name of the promotion pointer")


@dataclass(frozen=True, kw_only=True)
class PromoteArgs(RunArgs):
    """Move the pointer: append to its history by compare-and-swap, with the record of why.

    Outputs: ``promoted-digest``.
    """

    MODULE: ClassVar[str] = "argosy.steps.promote"
    pointer: str = option("name of the promotion pointer")
    checkpoint_digest: str = option("manifest digest to promote")
    metric: str = option("name of the number", default="")
    value: str = option("the number", default="")
    rollback: bool = option("append the entry before the current one again instead", default=False)


@dataclass(frozen=True, kw_only=True)
class FinalizeArgs(RunArgs):
    """On exit: release the claim, write the summary, the ledger and the report, notify."""

    MODULE: ClassVar[str] = "argosy.steps.finalize"
    status: str = option("the workflow's status")
    webhook: bool = option("POST the summary to the url in $ARGOSY_WEBHOOK_URL", default=False)
