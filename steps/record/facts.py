"""The nouns of a run record. Times are seconds since 1970; a fact that is not known yet is None or empty."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from argosy.steps.record.bundle import Evidence
from argosy.steps.record.committed import CommittedCheckpoint
from argosy.steps.record.injected import Injected
from argosy.steps.record.preflight import Preflight
from argosy.steps.record.restart import Restart
from argosy.steps.record.slow_ranks import SlowRank
from argosy.steps.record.spares import Spares
from argosy.steps.record.transport import Transport


@dataclass(frozen=True)
class GangFacts:
    """One set of pods, made and deleted together."""

    attempt: int
    name: str
    created: float
    deleted: float | None
    nnodes: int
    nproc_per_node: int
    excluded: tuple[str, ...]
    capacity: str = ""
    """``spot`` or ``on-demand`` where the run asked for spot nodes."""
    preemptions: int = 0
    """How many there had been when it was made."""


@dataclass(frozen=True)
class NodeStaging:
    """The dataset's way onto one node, or onto the shared volume (``node`` is then the step's own name)."""

    node: str
    began: float
    ended: float | None
    bytes: int
    fetched_bytes: int
    seconds: float


@dataclass(frozen=True)
class Streaming:
    """What all ranks read from the store while they trained, over all restarts."""

    ranks: int
    bytes: int
    """What samples asked for."""
    fetched_bytes: int
    requests: int
    refetched: int
    """Requests made again because their bytes were wrong."""
    waited_seconds: float
    """By the rank that waited longest."""
    rank: int
    """That rank."""
    node: str
    waits: tuple[float, ...]
    """Seconds by restart: what the rank that waited longest in it waited after the first step."""


@dataclass(frozen=True)
class Waiting:
    """What gangs waited for before all their nodes were there."""

    queued_seconds: float
    """Holding nothing."""
    held_node_seconds: float
    """Nodes that a gang held while it was not whole, times seconds: nobody could use them."""
    why: str
    """In Kubernetes' words, the last that were said."""
    now: str = ""
    """Which gang waits at this moment, and how many pods of it have a node; "" when none does."""


@dataclass(frozen=True)
class Admission:
    """Whether the workflow was let in: ``start`` or ``duplicate``."""

    decision: str
    reason: str
    local: bool = False  # by the engine of one machine


@dataclass(frozen=True)
class Evaluation:
    """The number that the gate compares, and the checkpoint it belongs to."""

    metric: str
    value: float
    checkpoint_digest: str


@dataclass(frozen=True)
class GateDecision:
    """``promote`` or ``refuse``, and what was compared."""

    decision: str
    reason: str
    floor: float | None
    baseline: float | None


@dataclass(frozen=True)
class Promotion:
    """One move of a promotion pointer."""

    time: float
    pointer: str
    digest: str
    previous: str
    rollback: bool


@dataclass(frozen=True)
class StepNode:
    """One pod of the workflow as the engine saw it."""

    name: str
    template: str
    phase: str
    message: str
    began: float | None
    ended: float | None
    exit_code: int | None
    log: str
    """Path of the pod's log on this machine."""
    quote: str = ""
    """The line its failure rests on."""
    cause: str = ""
    """As its termination message names it."""


@dataclass(frozen=True)
class Goodput:
    """Where the training time went, in seconds; the parts add up to ``wall``."""

    wall: float
    useful: float
    """Steps whose result the run kept, less the waiting in them."""
    lost: float
    """Steps that were done again after a restart, less the waiting in them."""
    starting: float
    """From the start of the agents to the first step: imports, rendezvous, restore, staging on the node."""
    recovering: float
    """From a failure to the next start of the agents, waiting included."""
    ending: float
    """From the last step to the end of training, or until now: the final save, the exit."""
    waiting: float
    """Within steps: for data that were streamed."""
    lost_steps: int

    @property
    def ratio(self) -> float:
        """Useful part of the wall time, 0..1."""
        return self.useful / self.wall if self.wall > 0 else 0.0


@dataclass(frozen=True)
class RunRecord:
    """Everything that status, explain, the report and ``--json`` say of a run."""

    name: str
    run_id: str
    workflow: str
    store_uri: str
    yaml_sha256: str
    phase: str
    message: str
    interrupted: str
    """How the engine was stopped before the run had ended ("SIGINT"); a rerun goes on."""
    started: float | None
    ended: float | None
    idle: tuple[tuple[float, float], ...]
    """From when to when nobody ran it: it was stopped, or with its engine killed, and then went on."""
    parameters: dict[str, str]
    nodes: tuple[StepNode, ...]
    dataset_digest: str
    dataset_objects: int
    dataset_bytes: int
    admission: Admission | None
    staging: tuple[NodeStaging, ...]
    streaming: Streaming | None
    gangs: tuple[GangFacts, ...]
    restarts: tuple[Restart, ...]
    stillborn: tuple[Restart, ...]
    """Failed before the agents were started: a gang that never became whole."""
    checkpoints: tuple[CommittedCheckpoint, ...]
    injected: tuple[Injected, ...]
    excluded_nodes: tuple[tuple[str, str], ...]
    """(node, cause)"""
    budgets: tuple[tuple[str, int, int], ...]
    """(cause, spent, limit), the latest of each cause"""
    train_cause: str
    train_exit_code: int | None
    train_ended: float | None
    checkpoint_digest: str
    end_step: int
    evaluation: Evaluation | None
    gate: GateDecision | None
    promotion: Promotion | None
    goodput: Goodput | None
    transports: tuple[Transport, ...] = ()
    """What each node said of the network in each restart; empty: no fabric is declared, or an older run."""
    waiting: Waiting | None = None
    stalled: str = ""
    """Why it may hang, while no step comes for longer than its own pauses explain."""
    evidence: tuple[Evidence, ...] = ()
    slow_ranks: tuple[SlowRank, ...] = ()
    skipped_steps: tuple[tuple[int, int], ...] = ()
    """First and last step whose data were passed over."""
    environment_findings: tuple[str, ...] = ()
    """What is wrong with the variables of NCCL and its neighbours, a sentence each."""
    preflight: Preflight | None = None
    spares: Spares = field(default_factory=Spares)
    command: str = ""
    """What a person typed on this machine to run its description; "" where nobody knows."""
    unwritten: str = ""
    """Why its store takes nothing at this moment, as the log of its supervisor says."""
    silent_since: float | None = None
    """When a run that only its store tells of was last heard of, after a silence that the lease of a claim allows."""
    namespace: str = ""
    outline: bool = False
    """Made without the event log, which could not be read; ``namespace``: of the cluster, where one was asked."""

    def spent(self, began: float, ended: float) -> float:
        """Seconds in which somebody ran it, of those from ``began`` to ``ended``."""
        idle = sum(upto - since for since, upto in self.idle if began <= since and upto <= ended)
        return max(0.0, ended - began - idle)

    @property
    def was_local(self) -> bool:
        """Whether one machine ran it last, as far as anybody told."""
        return self.admission is not None and self.admission.local

    @property
    def done(self) -> bool:
        """Whether the workflow has ended."""
        return self.phase in ("Succeeded", "Failed", "Error")

    @property
    def attempts(self) -> list[Restart]:
        """All that was tried, in order."""
        return sorted((*self.restarts, *self.stillborn), key=lambda each: each.began)

    @property
    def refused(self) -> bool:
        """Whether the gate refused the checkpoint."""
        return self.gate is not None and self.gate.decision == "refuse"

    @property
    def duplicate(self) -> bool:
        """Whether the workflow was not let in because its event had been claimed."""
        return self.admission is not None and self.admission.decision == "duplicate"

    @property
    def newest(self) -> CommittedCheckpoint | None:
        """The last checkpoint that was not set aside."""
        return next((each for each in reversed(self.checkpoints) if not each.set_aside), None)

    @property
    def last_step(self) -> int:
        """The furthest step of any restart, or as the last checkpoint's files count it; 0 where nothing tells."""
        last = self.newest
        furthest = max((each.last_step for each in self.restarts), default=0)
        if last is not None and furthest < last.step and not any(each.points for each in self.restarts):
            # The script tells no step: where the last restart began is not what it has reached.
            return last.step if last.step_from in ("", "name", "file") else 0
        if last is None or last.step_from not in ("name", "file"):
            return furthest
        if not last.final:  # the files of one that counts from 0 call that 6 which it had called 5
            return furthest + (last.told == last.step - 1 and any(each.from_zero for each in self.restarts))
        return last.step if last.told != last.step else max(furthest, last.step)

    @property
    def speed(self) -> float | None:
        """Tokens per second, the median of all steps that told it."""
        told = (point.tokens_per_second for each in self.restarts for point in each.points)
        return median(known) if (known := [each for each in told if each is not None]) else None

    @property
    def unsaved(self) -> int:
        """By how much the step told last is greater than that of the last checkpoint of a run that ended well. How many
        steps that were nobody can tell: a script may count the one from 0 and the other from 1.
        """
        last = self.newest
        done = last is not None and last.final and last.told == last.step
        return max(0, self.last_step - last.step) if last is not None and done else 0
