"""The control channel between launch (one per pod) and the supervisor: JSON over HTTP, bearer token.

    POST /v1/check-in   CheckIn    -> Assignment, or {"wait": true} after LONG_POLL_SECONDS (ask again)
    POST /v1/report     Report     -> Orders

launch checks in, runs the ranks of the assigned restart, and reports each REPORT_SECONDS and at once when a
rank ends. The orders end a restart (``stop``: end your ranks, check in again) or the pod (``exit``). When the
channel is away training goes on; the answer to silence is the supervisor's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

CHECK_IN = "/v1/check-in"
REPORT = "/v1/report"
LONG_POLL_SECONDS = 20.0
REPORT_SECONDS = 0.5
ROOT_WAIT_SECONDS = 10.0
"""How long a rank that died of a lost peer stays, so that the culprit's evidence is gathered first."""


class Message:
    """JSON both ways; unknown keys are ignored so that old and new pods can talk."""

    def to_json(self) -> bytes:
        """UTF-8 JSON object."""
        return json.dumps(asdict(self)).encode()  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, raw: bytes | dict[str, Any]) -> Self:
        """Parse.

        Raises:
            ValueError: not JSON, or a required key is missing.
        """
        record = raw if isinstance(raw, dict) else json.loads(raw)
        names = {spec.name for spec in fields(cls)}  # type: ignore[arg-type]
        try:
            return cls(**{key: value for key, value in record.items() if key in names})
        except TypeError as error:
            raise ValueError(str(error)) from error


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
    tells_steps: bool = False
    """The script told steps in an earlier restart of the run."""
    fault: dict[str, Any] | None = None
    """An injected fault for a rank of this pod: {"fault", "rank", "step", "code"}."""


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


@dataclass(frozen=True, kw_only=True)
class Report(Message):
    """Heartbeat and news of one pod."""

    pod: str
    node: str
    node_rank: int
    restart: int
    phase: Literal["staging", "restoring", "running", "finished", "failed"]
    """finished: all ranks of this pod exited 0 and its last checkpoint is committed. failed: see endings, error."""
    steps: list[dict[str, Any]] = field(default_factory=list)
    """Progress lines since the last report: argosy.steps.progress records with "rank" added."""
    furthest: dict[str, int] = field(default_factory=dict)
    """Rank -> the last step that it told in this restart: a supervisor that was just started has heard none."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """Event-log records of this pod since the last report: {"kind", ...fields of runlog.KINDS}."""
    endings: list[dict[str, Any]] = field(default_factory=list)
    """Ending.to_json objects of ranks that ended in this restart (sent until answered)."""
    error: dict[str, Any] | None = None
    """launch itself failed: {"cause", "message", "quote", "pod", "node", "time"}, plus "digest" for a corrupt
    checkpoint."""
    save: dict[str, Any] | None = None
    """Node 0, while it gathers a checkpoint of several nodes' files: {"name", "unit", "last"}; in every report."""
    part: dict[str, Any] | None = None
    """The newest answer to a save, in every report: {"name", "node", "node_rank"} and "storing" (this node's files are
    complete), "ref" (a PartRef: they are stored; null: node 0 stores them) or "flaw" (why they are not)."""


@dataclass(frozen=True, kw_only=True)
class Orders(Message):
    """What the pod does now."""

    command: Literal["continue", "stop", "exit"]
    exit_code: int = 0
    """For exit."""
    root: dict[str, Any] | None = None
    """The root cause once it is known: {"cause", "rank", "node", "quote"}."""
    step: int = 0
    """Furthest step that any rank of this restart has told: the clock of a rank that tells none."""
    save: dict[str, Any] | None = None
    """The save that node 0 gathers now; see Report."""
    parts: list[dict[str, Any]] = field(default_factory=list)
    """For node 0: what the other nodes answered to its save."""
