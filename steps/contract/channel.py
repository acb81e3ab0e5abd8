"""The control channel between launch (one per pod) and the supervisor: JSON over HTTP, bearer token.

    POST /v1/check-in   CheckIn    -> Assignment, or {"wait": true} after LONG_POLL_SECONDS (ask again); in a gang with
                                      spares with "stand_by": StandBy for a pod that has no rank
    POST /v1/report     Report     -> Orders

and between launch and launch, while a restart restores, GET of what a node keeps (KEPT, KEPT_FOLDER).

launch checks in, runs the ranks of the assigned restart, and reports each REPORT_SECONDS and at once when a
rank ends. The orders end a restart (``stop``: end your ranks, check in again) or the pod (``exit``). When the
channel is away training goes on; the answer to silence is the supervisor's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from argosy.steps.contract.message import Message
from argosy.steps.contract.trouble import Trouble

Phase = Literal["staging", "restoring", "running", "finished", "failed"]
End = Literal["", "unchanged", "committed"]

CHECK_IN = "/v1/check-in"
REPORT = "/v1/report"
KEPT = "/v1/kept"
"""Of a node that keeps something: a JSON object, SHA-256 of each file in its memory -> size; below it these files."""
KEPT_FOLDER = "/v1/folder"
"""Of such a node: below it the files of its script's folder, by path, if ``size`` and ``modified`` (ns) are theirs."""
LONG_POLL_SECONDS = 20.0
REPORT_SECONDS = 0.5
ORPHAN_SECONDS = 1800.0
"""A pod that has nothing to train waits so long for a supervisor that does not answer; then it gives its node back.

Longer than Argo takes to replace a supervisor whose node is lost (5 minutes until its pod is given up, then a backoff).
"""
TOLD_PEERS = ("plain", "mpirun", "ray")
"""Launchers whose nodes are told each other's addresses; torchrun's ranks meet at node 0."""
COMMIT_SECONDS = 30
"""After the script's grace: time for launch to commit what was saved."""
ROOT_WAIT_SECONDS = 10.0
"""How long a rank that died of a lost peer stays, so that the culprit's evidence is gathered first."""


@dataclass(frozen=True, kw_only=True)
class CheckIn(Message):
    """A pod is ready for its next restart."""

    pod: str
    node: str
    pod_index: int
    """Completion index of the pod in its gang, from 0."""
    address: str
    """Where rank 0's endpoint would be reached on this pod."""
    free_port: int
    """A port that is free on this pod now."""
    nproc: int
    last_restart: int
    """Number of the restart this pod ran last; -1: none."""
    stands_by: Literal["", "preparing", "ready"] = ""
    """How far a pod without a rank has come with what StandBy asks of it."""
    keeps: str = ""
    """ADDRESS:PORT at which other nodes may ask for what it still has of the last checkpoint; empty: nothing."""


@dataclass(frozen=True, kw_only=True)
class StandBy(Message):
    """What a pod without a rank makes ready, so that it can take any rank's place at once."""

    nnodes: int
    workflow: str
    dataset_digest: str
    node_rank: int = 0
    """Any: what every node stages alike is staged."""


@dataclass(frozen=True, kw_only=True)
class Assignment(Message):
    """What a pod runs next."""

    restart: int
    attempt: int
    node_rank: int
    nnodes: int
    master_addr: str
    master_port: int
    run_id: str
    workflow: str
    generation: int
    log_seq: int
    resume_digest: str
    """Manifest digest to restore; empty: from scratch."""
    resume_step: int
    dataset_digest: str
    args: list[str]
    peers: list[str] = field(default_factory=list)
    """ADDRESS:PORT of every node, by its rank, the port free on it at check-in; for TOLD_PEERS, else empty."""
    keepers: list[str] = field(default_factory=list)
    """``keeps`` of every node, by its rank; empty: nobody has anything, or they are too many."""
    from_store: bool = False
    """Whether all is asked of the store, though a node may have it: an injected fault has damaged it there."""
    skip: str = ""
    """For env.SKIP_STEPS."""
    fault: dict[str, Any] | None = None
    """An injected fault for a rank of this pod: {"fault", "rank", "step", "seconds", "phase", "code"}."""


@dataclass(frozen=True, kw_only=True)
class Ending(Message):
    """How one rank's process ended, and what it said last."""

    rank: int
    time: float
    exit_code: int | None
    """None when a signal ended it."""
    signal: int | None
    stopped: bool
    """True when launch or torchrun ended it on purpose: never a root cause."""
    tail: list[str] = field(default_factory=list)
    """Last lines of the rank's own output, oldest first, at most 60."""
    last_step: int = 0
    pod: str = ""
    node: str = ""
    state: str = ""
    """Of a rank that had to print its stacks: the state of its process before that, a letter of /proc/PID/stat."""
    sleeps_in: str = ""
    """And the kernel's function in which it slept, of /proc/PID/wchan."""


@dataclass(frozen=True, kw_only=True)
class Save(Message):
    """A checkpoint of several nodes' files that node 0 gathers now."""

    name: str
    """Never used twice; empty: node 0's ranks ended and nothing is left to save."""
    unit: str
    """The file or folder that is saved, or empty."""
    last: bool
    """The ranks ended well, so no other save follows."""
    again: list[str] = field(default_factory=list)
    """Writers = every: restored units that node 0's ranks wrote again."""
    touched: bool | None = None
    """Whether they wrote to any of these; None: not told, as where a supervisor of another version passes it on."""


@dataclass(frozen=True, kw_only=True)
class Part(Message):
    """What became of one node's part of a save."""

    save: str
    """Its name."""
    node: str
    node_rank: int
    state: Literal["storing", "given", "flawed"]
    """storing: this node's files are complete. given: they are stored, or node 0 stores them."""
    ref: dict[str, Any] | None = None
    """Of a part that this node stored: the fields of a PartRef."""
    flaw: str = ""
    """Why there is none."""


@dataclass(frozen=True, kw_only=True)
class Report(Message):
    """Heartbeat and news of one pod."""

    pod: str
    node: str
    node_rank: int
    restart: int
    phase: Phase
    """finished: all ranks of this pod exited 0 and its last checkpoint is committed. failed: see endings, error."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """Progress lines since the last report: argosy.steps.progress records with "rank" added."""
    worked: list[dict[str, Any]] = field(default_factory=list)
    """{"rank", "steps": [(step, seconds of the rank's own work in it, seconds that it lasted)]} since the last one."""
    furthest: dict[str, int] = field(default_factory=dict)
    """Rank -> the last step that it told in this restart: a supervisor that was just started has heard none."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """Event-log records of this pod since the last report: {"kind", ...fields of runlog.KINDS}."""
    endings: list[Ending] = field(default_factory=list)
    """How ranks ended in this restart (sent until answered)."""
    error: Trouble | None = None
    """launch itself failed."""
    save: Save | None = None
    """Node 0, while it gathers one; in every report."""
    uncommitted: str = ""
    """With ``finished``: what this node's ranks wrote to the checkpoint folder, where only the first node commits."""
    end: End = ""
    """With ``finished``. unchanged: this is the first node, its ranks wrote nothing, and it has not committed what lies
    there as the end. committed: it was named in the orders, and has.
    """
    part: Part | None = None
    """The newest answer to a save, in every report."""
    answered: int = -1
    """How many before it were answered: one whose answer was not heard comes again, with what has happened since. -1:
    not told, as by a launch of another version.
    """

    def saved_steps(self, *, counted: bool = False) -> list[int]:
        """Steps that its saves are of; 0 where a save's number merely counts them, unless ``counted``."""
        saves = (event for event in self.events if event.get("kind") == "checkpoint_committed")
        known = (None, "name", "file")
        return [int(save["step"]) if counted or save.get("step_from") in known else 0 for save in saves]


@dataclass(frozen=True, kw_only=True)
class Orders(Message):
    """What the pod does now."""

    command: Literal["continue", "stop", "exit"]
    exit_code: int = 0
    """For exit."""
    root: Trouble | None = None
    """The root cause once it is known. A hang with ``continue``: your ranks print
    their stacks and end, then it is judged who held the others up."""
    step: int = 0
    """Furthest step that any rank of this restart has told, or where none tells any its newest save's: the clock of a
    rank that tells none.
    """
    save: Save | None = None
    """The save that node 0 gathers now."""
    commits: int = -1
    """With ``continue``, when all ranks ended well: the node rank that commits its folder as the end; -1: none."""
    parts: list[Part] = field(default_factory=list)
    """For node 0: what the other nodes answered to its save."""
