"""The verbs that the supervisor needs from whoever creates pods, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from argosy.steps.gang.manifest import GangManifest

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
LOST_REASONS = ("NodeLost", "HostLost")
"""Reasons of a pod whose node is gone: nothing more will ever be heard of it."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What the supervisor adds to the manifest, and the only things it changes.

    ``name`` is never used twice; ``env`` goes to every container but the init ones; no pod runs on a node of
    ``excluded``; ``nnodes`` pods are made, one per node, and the spares of the manifest.
    """

    name: str
    attempt: int
    nnodes: int
    env: Mapping[str, str]
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GangRecord:
    """A gang that this run made: ``deleted`` once none of its pods can run any more."""

    name: str
    attempt: int
    deleted: bool


@dataclass(frozen=True, kw_only=True)
class PodState:
    """One pod as its host sees it.

    ``node`` is empty while it is not placed; ``reason`` has Kubernetes' words (``DisruptionTarget``, ``OOMKilled``,
    ``NodeLost``; ``HostLost``: the whole machine's engine went); ``time`` is when it ended, ``deleted``
    when somebody asked for its deletion, seconds since 1970, 0: not. ``log`` is what it wrote last, of one that failed
    and left no word.
    """

    name: str
    index: int
    node: str = ""
    phase: Phase = "Pending"
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    time: float = 0.0
    deleted: float = 0.0
    log: str = ""

    @property
    def has_ended(self) -> bool:
        """Whether it will never run again."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a gang has come: ``queued`` holds no node, ``placing`` may hold some, ``placed`` has one for each pod;
    ``lost``: somebody took it away, it will never be whole again; ``refused``: the API server makes none of its pods,
    for a reason that does not pass by itself; ``starting``: it has its nodes, and a pod cannot begin, for want of its
    image perhaps. ``why``: what it waits for, in Kubernetes' words.
    """

    phase: Literal["queued", "placing", "placed", "lost", "refused", "starting"]
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Probed:
    """Further nodes that were asked for: ``bound`` have taken a pod, ``running`` of them run it; ``over``: it has
    ended, and says nothing any more.
    """

    bound: int
    running: int
    over: bool = False


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where the channel listens (``host``, ``port``) and what pods are told (``url``, ``token``); outlives us.
    ``metrics_port`` is where Prometheus may ask, 0: nobody does.
    """

    host: str
    port: int
    url: str
    token: str = field(repr=False)
    metrics_port: int = 0


class GangHost(Protocol):
    """Who runs the pods: processes of this machine, or Kubernetes."""

    def endpoint(self) -> Endpoint:
        """Address of the control channel: the same for every supervisor of this workflow."""

    def create(self, manifest: GangManifest, identity: Identity) -> None:
        """Make the gang, or what is missing of it; may be repeated with the same arguments.

        Its pods may come later, and be placed later still: see :meth:`standing`.

        Raises:
            StepError: it can never be placed (unschedulable) or the manifest cannot be run here.
        """

    def replenish(self, manifest: GangManifest, identity: Identity) -> None:
        """In a gang with spares: see that another pod, of another name, comes in place of each that failed."""

    def gangs(self) -> list[GangRecord]:
        """Every gang this workflow ever made, by attempt."""

    def pods(self, name: str) -> list[PodState]:
        """The gang's pods by index, those that are there so far; none for an unknown or deleted gang."""

    def standing(self, name: str) -> Standing:
        """How far the placement of a gang has come."""

    def delete(self, name: str, grace_seconds: float) -> tuple[str, ...]:
        """SIGTERM, SIGKILL after the grace, and return when nothing of it runs; a missing gang is no error.

        The pods that are returned may run on, on nodes that do not answer: nobody waits for them, the generation of
        the next restart fences them.
        """

    def room(self, excluded: tuple[str, ...]) -> int | None:
        """Nodes that could take a pod when ``excluded`` are left out; None when nobody can know."""

    def probe(self, manifest: GangManifest, identity: Identity, nodes: int) -> Probed:
        """Ask for ``nodes`` nodes besides those of the gang ``identity``; asked again, how far that has come."""

    def evicted(self) -> bool:
        """Whether our own pod is taken from its node, and the run is to go on; False when nobody can know."""

    def end_probe(self, name: str) -> None:
        """Ask for no more; what was found is let go. Without a probe of gang ``name``: nothing."""
