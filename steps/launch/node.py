"""The pod's life: check in, run a restart, check in again, until told to exit."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import ORPHAN_SECONDS, Assignment, CheckIn, Orders, StandBy
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.launch.agent import Agent, adopt_orphans
from argosy.steps.launch.channel_client import ChannelAway, ChannelClient, ChannelRefused
from argosy.steps.launch.evidence import STORE_SECONDS, NodeEvidence
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.kept import KeptMemory
from argosy.steps.launch.mpirun import Mpirun
from argosy.steps.launch.plain import Plain
from argosy.steps.launch.ports import free_port
from argosy.steps.launch.progress_lines import compile_pattern
from argosy.steps.launch.ray_head import AnsweringHead
from argosy.steps.launch.ray_train import RayTrain
from argosy.steps.launch.restart import NodeRestart, describe
from argosy.steps.launch.spare import Spare
from argosy.steps.launch.torchrun import Torchrun
from argosy.steps.paths import resolve
from argosy.steps.verdict.evidence import load_rules

if TYPE_CHECKING:
    from argosy.steps.launch.keeper import Keeper

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
REFUSED_SECONDS = 30.0
_COMPLAIN_SECONDS = 30.0


_AGENTS: Mapping[str, type[Agent]] = {each.name: each for each in (Torchrun, Plain, Mpirun, RayTrain)}


class _Terminated(Exception):
    pass


class Node:
    """One pod of a gang."""

    def __init__(self, args: LaunchArgs) -> None:
        """Check what can be checked before anybody waits for us.

        Raises:
            InputError: wrong arguments, or not started by a supervisor.
        """
        if bool(args.script) == bool(args.module):
            raise InputError("script, module: give exactly one of them")
        if args.launcher not in _AGENTS:
            raise InputError(f"launcher = {args.launcher!r}: this version knows {', '.join(_AGENTS)}")
        if args.checkpoint_mode == "opaque":
            _check_folder(args)
        compile_pattern(args.progress_pattern)
        self._args = args
        self._identity = Identity.from_environment()
        self._client = ChannelClient(self._identity.channel_url, self._identity.channel_token)
        self._terminated = threading.Event()
        self._evidence: list[NodeEvidence] = []
        self._interruptible = False
        self._spare: Spare | None = None
        self._restart: NodeRestart | None = None
        self._kept = KeptMemory(self._identity.channel_token)
        self._keeper: Keeper | None = None

    def run(self) -> int:
        """Check in and run restarts until orders end the pod; its exit code."""
        adopt_orphans()
        signal.signal(signal.SIGTERM, self._on_sigterm)
        try:
            return self._restarts()
        finally:
            until = time.monotonic() + STORE_SECONDS
            for kept in self._evidence:
                kept.wait(max(0.0, until - time.monotonic()))

    def _restarts(self) -> int:
        last_restart, agent = -1, self._first_agent()
        load_rules()  # the agent takes longer
        head = AnsweringHead.where_asked()
        while True:
            try:
                assignment = self._check_in(last_restart)
            except _Terminated:
                return int(ExitCode.PREEMPTED)
            if isinstance(assignment, Orders):
                return assignment.exit_code
            print(f"argosy: restart {describe(assignment)}", flush=True)
            if head is not None:
                head.end()
                head = None
            restart = NodeRestart(self._args, self._identity, assignment, agent, self._terminated, self._kept)
            self._restart = restart
            if self._terminated.is_set():  # it came before there was one to leave
                restart.leave()
            self._evidence = [*self._evidence[-1:], restart.evidence]
            orders = restart.run()
            if orders.command == "exit":
                return orders.exit_code
            self._kept.turn()
            last_restart, agent = assignment.restart, agent.next()

    def _first_agent(self) -> Agent:
        kind, nproc = _AGENTS[self._args.launcher], self._args.nproc_per_node
        return Torchrun(nproc, self._args.preload) if kind is Torchrun else kind(nproc)

    def _on_sigterm(self, _number: int, _frame: object) -> None:
        self._terminated.set()
        if self._restart is not None:
            self._restart.leave()
        if self._interruptible:
            raise _Terminated

    def _check_in(self, last_restart: int) -> Assignment | Orders:
        """Ask until the supervisor answers with something to do; its absence is waited out."""
        self._interruptible = True
        try:
            pause, refused, complained = FIRST_PAUSE_SECONDS, 0.0, time.monotonic()
            heard = time.monotonic()
            while True:
                if self._terminated.is_set():  # what is raised in a finalizer is lost
                    raise _Terminated
                try:
                    answer = self._client.check_in(self._message(last_restart))
                    if isinstance(answer, StandBy):
                        self._spare = self._spare or Spare(self._args, self._identity, answer)
                    elif answer is not None:
                        return answer
                    pause, refused, heard = FIRST_PAUSE_SECONDS, 0.0, time.monotonic()
                    continue
                except ChannelAway as error:
                    reason = str(error)
                except ChannelRefused as error:
                    reason = str(error)
                    refused = refused or time.monotonic()
                    if time.monotonic() - refused > REFUSED_SECONDS:
                        print(f"argosy: fenced: the supervisor does not know this pod: {error}", file=sys.stderr)
                        return Orders(command="exit", exit_code=int(ExitCode.FENCED))
                if time.monotonic() - heard > ORPHAN_SECONDS:
                    print(f"argosy: no supervisor for {ORPHAN_SECONDS:g} s: {reason}", file=sys.stderr)
                    return Orders(command="exit", exit_code=int(ExitCode.PREEMPTED))
                if time.monotonic() - complained > _COMPLAIN_SECONDS:
                    complained = time.monotonic()
                    print(f"argosy: waiting for the supervisor: {reason}", file=sys.stderr, flush=True)
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        finally:
            self._interruptible = False
            self._client.close()
            if self._spare is not None and not self._terminated.is_set():  # it may wait for a store that is away
                self._spare.end()
                self._spare = None

    def _message(self, last_restart: int) -> CheckIn:
        address = self._client.own_address()
        return CheckIn(
            pod=self._identity.pod,
            node=self._identity.node,
            pod_index=self._identity.index,
            address=address,
            free_port=free_port(address),
            nproc=self._args.nproc_per_node,
            last_restart=last_restart,
            keeps=self._keeps(address) if last_restart >= 0 or self._args.checkpoint_peer_copy else "",
            stands_by=self._spare.state if self._spare is not None else "",
        )

    def _keeps(self, address: str) -> str:
        if self._keeper is None:
            # Imported here: a run that never restarts does without.
            from argosy.steps.launch.keeper import Keeper

            args = self._args
            opaque = args.checkpoint_mode == "opaque"
            self._keeper = Keeper(self._kept, resolve(args.workdir) / args.checkpoint_path if opaque else None)
        return self._keeper.address(address, always=self._args.checkpoint_peer_copy)


def _check_folder(args: LaunchArgs) -> None:
    path = args.checkpoint_path
    if not path:
        raise InputError("checkpoint_path: opaque mode needs the folder that the script writes to")
    if (path.startswith("/") and "{run_id}" not in path) or ".." in path.split("/"):
        rule = "a folder below the working directory is expected, or an absolute one with {run_id}"
        raise InputError(f"checkpoint_path = {path!r}: {rule}")
    if os.path.normpath(path) == "." and not args.checkpoint_include:
        # What matches is removed before a restart; without globs that would be the code.
        raise InputError("checkpoint_include: the checkpoint folder is the working directory; say which files it is")


def launch(args: LaunchArgs) -> int:
    """Run this node of the gang; the pod's exit code.

    Raises:
        InputError: wrong arguments.
    """
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    return Node(args).run()
