"""From arguments to an exit code, in a pod or at a terminal."""

from __future__ import annotations

import signal
import uuid
from types import FrameType

from argosy.steps.cluster.api import PATIENCE_SECONDS, Api
from argosy.steps.cluster.connecting import in_pod
from argosy.steps.contract.arguments import SuperviseArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.channel_objects import Owner
from argosy.steps.gang.kubernetes import KubernetesHost
from argosy.steps.outputs import write_termination
from argosy.steps.paths import resolve
from argosy.steps.supervise.loop import Loop, Stopped, say
from argosy.steps.supervise.manifest import read_gang
from argosy.steps.verdict import Verdict, termination_line

INTERRUPTED = 130


def run(args: SuperviseArgs, api: Api) -> int:
    """Supervise; 0, or the exit code of the verdict (130 after Ctrl-C, 76 after SIGTERM).

    Raises:
        InputError: an argument or the gang is wrong; nothing was created.
        StepError: the cluster refuses something, or stays away.
    """
    _check(args)
    manifest, name, changes = read_gang(resolve(args.gang), api.namespace)
    for change in changes:
        say(change)
    owner = Owner(name=args.workflow, uid=args.workflow_uid or str(uuid.uuid4()))
    host = KubernetesHost(api, manifest, owner)
    api.patience = PATIENCE_SECONDS  # it answered: from now on its absence is waited out
    loop = Loop(api, host, owner, manifest, name, args)
    got: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        got.append(number)
        loop.stop(number)
        if len(got) == 1:
            say(f"{signal.Signals(number).name}: the gang is deleted, then this ends")

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        code, verdict = loop.run()
    except Stopped:
        code = INTERRUPTED if got[0] == signal.SIGINT else int(ExitCode.PREEMPTED)
        verdict = Verdict(cause=Cause.SIGTERM, exit_code=code, quote=f"{signal.Signals(got[0]).name} to the supervisor")
    finally:
        host.close()
    if verdict is not None and in_pod():
        write_termination(termination_line(verdict))
    return code


def _check(args: SuperviseArgs) -> None:
    if bool(args.workflow) != bool(args.workflow_uid):
        raise InputError("workflow and workflow-uid: give both or neither")
    for name in ("max_same_failure", "max_restarts", "max_preemptions", "placement_timeout_seconds"):
        if getattr(args, name) < 0:
            raise InputError(f"{name.replace('_', '-')} = {getattr(args, name)}: write 0 or more")
