"""What every part of the supervisor works with, in one place."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field

from argosy.steps.cluster.api import PATIENCE_SECONDS, ApiRevoked, ApiSilent
from argosy.steps.contract import env as names
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Report
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.host import GangHost, Identity
from argosy.steps.gang.manifest import GangManifest
from argosy.steps.gang.spot import on_demand
from argosy.steps.supervisor.awake import AwakeClock
from argosy.steps.supervisor.bundles import Bundles
from argosy.steps.supervisor.channel import Channel
from argosy.steps.supervisor.commits import RunCommits
from argosy.steps.supervisor.faults import Faults
from argosy.steps.supervisor.ledger import Ledger
from argosy.steps.supervisor.pace import Pace
from argosy.steps.supervisor.record import Record
from argosy.steps.supervisor.settings import Settings

QUOTA_SECONDS = 10.0
"""How often a namespace without room for one object more is asked again."""


class Stopped(Exception):
    """SIGTERM arrived."""


@dataclass(frozen=True, kw_only=True)
class SupervisedGang:
    """The gang that is supervised now."""

    name: str
    attempt: int
    nnodes: int
    excluded: tuple[str, ...] = ()
    on_demand: bool = False
    """It stays off spot nodes, which the manifest asks for."""


@dataclass(frozen=True, kw_only=True)
class Context:
    """The parts of a supervisor; ``stop`` is set by SIGTERM."""

    settings: Settings
    manifest: GangManifest
    host: GangHost
    channel: Channel
    ledger: Ledger
    commits: RunCommits
    record: Record
    bundles: Bundles
    faults: Faults
    pace: Pace
    clock: AwakeClock
    identity_env: dict[str, str] = field(repr=False)
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def nproc(self) -> int:
        """Ranks per node."""
        return self.manifest.nproc_per_node

    def pause(self, seconds: float) -> None:
        """Wait until something arrives on the channel, at most ``seconds``.

        Raises:
            Stopped: SIGTERM arrived.
        """
        if self.stop.is_set():
            raise Stopped
        self.channel.wait(seconds)
        if self.stop.is_set():
            raise Stopped

    def hear(self, attempt: int) -> list[Report]:
        """What pods of gang ``attempt`` reported since the last call, written down; also when nobody acts on it."""
        reports = self.channel.drain()
        for report in reports:
            self.record.report(report, attempt)
            for event in report.events:
                if event.get("kind") == "injected":
                    self.faults.said(event, self.record.log)
        return reports

    def create(self, gang: SupervisedGang) -> None:
        """Have the host make the gang, or what is missing of it; a quota that others use up is waited for, and for a
        while a webhook, or a server, that does not answer, or that refuses what it allowed.

        Raises:
            Stopped: SIGTERM arrived meanwhile.
            StepError: it is refused for good.
        """
        told, began = False, time.monotonic()
        while True:
            try:
                return self.host.create(*self.described(gang))
            except StepError as error:
                quota = (error.cause, error.code) == (Cause.UNSCHEDULABLE, ExitCode.TRANSIENT)
                passes = isinstance(error, (ApiSilent, ApiRevoked)) and time.monotonic() - began < PATIENCE_SECONDS
                if not quota and not passes:
                    raise
                if not told:
                    print(f"argosy: gang {gang.name} waits: {error}", file=sys.stderr, flush=True)
                    waits = {"gang": gang.name, "phase": "queued", "placed": 0, "nnodes": gang.nnodes}
                    self.record.log.append("gang_waits", attempt=gang.attempt, **waits, why=error.quote)
                told = True
            self.pause(QUOTA_SECONDS)

    def replenish(self, gang: SupervisedGang) -> None:
        """Have the host make pods in place of those of the gang that ended."""
        self.host.replenish(*self.described(gang))

    def described(self, gang: SupervisedGang) -> tuple[GangManifest, Identity]:
        """What the host is told of the gang."""
        spot = self.settings.spot if gang.on_demand else None
        manifest = self.manifest if spot is None else on_demand(self.manifest, spot)
        env = {**self.identity_env, names.GANG_NAME: gang.name}
        identity = Identity(name=gang.name, attempt=gang.attempt, nnodes=gang.nnodes, excluded=gang.excluded, env=env)
        return manifest, identity
