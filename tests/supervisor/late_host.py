"""The train step on a host whose gangs come late, as a cluster's do: ``late_host.py SCRIPT ARGUMENTS...``.

SCRIPT is JSON: for each gang in turn a list of [seconds since its creation, or a file that is there from then on,
phase, pods that are to be seen, perhaps why]. The pods are real processes from the start, so that they also ask before
the supervisor knows them; a gang without a line in the script comes at once. In the phase "starting" there is a pod
more, whose image is missing; in "full" a quota has no room for the gang, in "forbidden" the run's account has lost its
rights, in "unwritten" the store takes nothing of what is done; in "evicted" the supervisor's own pod is taken from its
node. A refusal is believed after a second.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, ClassVar

from argosy.steps import train
from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang import processes
from argosy.steps.gang.host import GangRecord, Identity, PodState, Standing
from argosy.steps.gang.manifest import GangManifest
from argosy.steps.outputs import step_main
from argosy.steps.supervisor import context, placing

SCRIPT: list[list[list[Any]]] = json.loads(sys.argv.pop(1))


class LateHost(processes.ProcessHost):
    created: ClassVar[dict[str, float]] = {}

    def create(self, manifest: GangManifest, identity: Identity) -> None:
        self.created.setdefault(identity.name, time.monotonic())
        if self._line(identity.name)[1] == "full":
            said = 'jobsets "g" is forbidden: exceeded quota: objects'
            raise StepError(Cause.UNSCHEDULABLE, said, quote=said, code=ExitCode.TRANSIENT)
        self._may()
        super().create(manifest, identity)

    def gangs(self) -> list[GangRecord]:
        self._may()
        return super().gangs()

    def _may(self) -> None:
        for phase, cause in (("forbidden", Cause.CONFIG_OR_RBAC), ("unwritten", Cause.STORE_UNAVAILABLE)):
            if any(self._line(name)[1] == phase for name in self.created):
                raise StepError(cause, said := f"jobsets is {phase}: cannot list", quote=said)

    def _line(self, name: str) -> list[Any]:
        number = list(self.created).index(name) if name in self.created else len(SCRIPT)
        lines = SCRIPT[number] if number < len(SCRIPT) else []
        since = time.monotonic() - self.created.get(name, 0.0)
        come = (
            line for line in reversed(lines) if (os.path.exists(at) if isinstance(at := line[0], str) else at <= since)
        )
        return next(come, [0, "placed", 99])

    def standing(self, name: str) -> Standing:
        _, phase, _, *why = self._line(name)
        # The supervisor itself finds out that one is starting; and the other word is of its own pod.
        phase = "placed" if phase in ("starting", "evicted") else phase
        return Standing(phase=phase, why=why[0] if why else f"as the script says: {phase}")

    def evicted(self) -> bool:
        return any(self._line(name)[1] == "evicted" for name in self.created)

    def room(self, excluded: tuple[str, ...]) -> int | None:
        return None  # as on a cluster, where only the scheduler knows

    def pods(self, name: str) -> list[PodState]:
        _, phase, number, *_ = self._line(name)
        stuck = PodState(name="no-image", index=9, node="node-9", reason="ErrImagePull", message="not found")
        return [*super().pods(name)[:number], *([stuck] if phase == "starting" else [])]


placing.STUCK_SECONDS = 1.0
context.QUOTA_SECONDS = 0.2
processes.ProcessHost = LateHost  # type: ignore[misc]
sys.exit(step_main(TrainArgs, train.train))
