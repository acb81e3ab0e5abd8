"""One restart on this node: prepare, run the ranks, tell how it ended, wait for orders."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import ROOT_WAIT_SECONDS, Assignment, Ending, Orders
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.contract.placeholders import filled
from argosy.steps.contract.trouble import Trouble
from argosy.steps.launch.agent import END_SECONDS, Agent
from argosy.steps.launch.arithmetic import check_arithmetic
from argosy.steps.launch.channel_client import ChannelClient
from argosy.steps.launch.environment import rank_environment
from argosy.steps.launch.evidence import NodeEvidence
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.kept import KeptMemory
from argosy.steps.launch.prepare import preflight_command, prepare_code, prepared_data, rank_command
from argosy.steps.launch.rank_hub import RankHub
from argosy.steps.launch.records import RankRecords
from argosy.steps.launch.reporter import Reporter
from argosy.steps.launch.saves import Saves
from argosy.steps.launch.variables import tell_variables
from argosy.steps.launch.wire import SHIM, ShimSettings
from argosy.steps.nccl.effective import effective_environment
from argosy.steps.paths import resolve
from argosy.steps.store import open_store
from argosy.steps.store.leaving import LeavableStore
from argosy.steps.verdict.evidence import read_lines

if TYPE_CHECKING:
    from argosy.steps.launch.transport_watch import TransportWatch

LOOK_SECONDS = 0.05
STOP_GRACE_SECONDS = 5.0
"""For ranks of a restart that has failed already: their collectives are broken, there is nothing to save."""
LAST_SAVE_SECONDS = 10.0
"""After a SIGTERM: how long this node waits for the others, when every node gives its part of a checkpoint."""
_OWN_END_SECONDS = 0.3
"""An agent without ranks ends by itself and says why; after a SIGTERM its last word would be that."""
_HANG_UP_SECONDS = 5.0
_CLEAN = (0, int(ExitCode.PREEMPTED))
RANKS_FOLDER = "/argosy/tmp/ranks"


class GivenUp(Exception):
    """Orders or a SIGTERM came while something else was being done."""


class NodeRestart:
    """Runs once; ``terminated`` is set from outside when this pod got SIGTERM."""

    def __init__(
        self,
        args: LaunchArgs,
        identity: Identity,
        assignment: Assignment,
        agent: Agent,
        terminated: threading.Event,
        kept: KeptMemory,
    ) -> None:
        """``agent`` is on standby; it is ended with the restart. ``kept`` outlives it."""
        self._args = args
        self._identity = identity
        self._assignment = assignment
        self._agent = agent
        self._terminated = terminated
        self._kept = kept
        client = ChannelClient(identity.channel_url, identity.channel_token)
        self._reporter = Reporter(client, identity, assignment)
        self._store = LeavableStore(open_store(args.store_uri), threading.Event())
        self.evidence = NodeEvidence(args, identity, assignment, self._store)
        self._saves: Saves | None = None
        self._network: TransportWatch | None = None
        self._begun = self._finished = False
        self._hangs = False
        """The supervisor says so; our ranks print their stacks and end."""
        self._clean = True
        """Nothing is lost by ending a pod whose ranks do not run."""

    def run(self) -> Orders:
        """Run to the end; what the pod does next: ``stop`` (check in again) or ``exit``."""
        self._reporter.start()
        try:
            self._train()
        except GivenUp:
            pass
        except (StepError, InputError, OSError) as error:
            told = _step_error(error)
            corrupt = told.cause == Cause.CHECKPOINT_CORRUPT
            if self._begun or not self._terminated.is_set():
                self._reporter.fail(told, self._assignment.resume_digest if corrupt else "")
        self._agent.end(0.0)
        if not self._finished:
            if self._agent.stuck is not None:
                self._reporter.fail(self._agent.stuck)
            self.evidence.gather(self._reporter.endings())
        orders = self._reporter.orders()
        while orders is None and not self._terminated.is_set():
            self._commit_end()
            orders = self._reporter.wait(LOOK_SECONDS)
        if orders is None:
            orders = Orders(command="exit", exit_code=self._code_of_termination())
        self._reporter.close()
        if (stuck := self._agent.stuck) is not None and orders.command != "exit" and self._agent.is_held():
            print(f"argosy: {stuck}", flush=True)
            return Orders(command="exit", exit_code=int(stuck.code))
        return orders

    def leave(self) -> None:
        """SIGTERM came: before ranks run there is nothing for which a store that is away would be waited for."""
        if not self._begun:
            self._store.leaving.set()

    def _go_on(self) -> None:
        if self._terminated.is_set() or self._reporter.orders() is not None:
            raise GivenUp

    def _train(self) -> None:
        check_arithmetic(self._args, self._assignment)
        workdir = prepare_code(self._args, self._store)
        tell = self._reporter.event
        with prepared_data(self._args, self._assignment, self._store, self._identity, tell, self._go_on) as (path, uri):
            self._train_on(workdir, path, uri)

    def _train_on(self, workdir: Path, data_path: str, data_uri: str) -> None:
        args, assignment = self._args, self._assignment
        self._reporter.enter("restoring")
        self._saves = Saves(args, assignment, self._store, workdir, self._reporter, self._kept)
        environ = rank_environment(args, assignment, data_path=data_path, data_uri=data_uri)
        folder = resolve(RANKS_FOLDER) / f"{assignment.attempt}-{assignment.restart}"
        environ.update(self._saves.environment(folder))
        filled(environ, args.filled_variables.split(","))
        command = rank_command(args, assignment.args, self._saves.restore(environ), environ)
        command = preflight_command(args, assignment) + command
        self._go_on()
        environ[SHIM] = ShimSettings(
            folder=str(folder),
            pod=self._identity.pod,
            node=self._identity.node,
            progress_pattern=args.progress_pattern,
            resume_step=assignment.resume_step,
            root_wait_seconds=ROOT_WAIT_SECONDS,
            ranks_from=self._agent.ranks_from,
            fault=assignment.fault and {**assignment.fault, "include": args.checkpoint_include},
        ).to_json()
        self._network = self._transport(folder, workdir, environ)
        self.evidence.environment(environ, folder, workdir)
        records = RankRecords(self._reporter, self._saves, self.evidence, self._identity.node)
        hub = RankHub(folder, records)
        self._reporter.on_root = lambda root: self._on_root(root, hub)
        if assignment.fault is not None:
            self._reporter.on_step = hub.gang_step
        try:
            self._begun = True
            self._agent.begin(assignment, command, environ, workdir)
            self._reporter.enter("running")
            self._saves.start(self._reporter.endings)
            if self._network is not None:
                self._network.start()
            try:
                self._watch(self._agent, hub)
            finally:
                self._agent.end(0.0)
                self._saves.stop()
                self._end_network()
        finally:
            self._reporter.on_step = None
            hub.close()

    def _transport(self, folder: Path, workdir: Path, environ: dict[str, str]) -> TransportWatch | None:
        """What the ranks will find about the network is told; what NCCL makes of it will be read from its log."""
        effective = effective_environment(os.environ)
        watch = None
        if self._args.expected_transport:
            # Imported here: a run without a fabric starts without NCCL's tables.
            from argosy.steps.launch.transport_watch import transport_watch

            watch = transport_watch(self._args, self._assignment, effective, (folder, workdir), environ, self._reporter)
        profile = "" if watch is None else watch.profile
        tell_variables(effective, self._args, self._assignment, self._reporter, profile)
        return watch

    def _end_network(self) -> None:
        if self._network is not None:
            self._network.close()

    def _on_root(self, root: Trouble, hub: RankHub) -> None:
        if root.cause == Cause.HANG:
            self._hangs = True
            self.evidence.look_at_stacks()
            hub.stacks()
        else:
            hub.release()

    def _watch(self, agent: Agent, hub: RankHub) -> None:
        while (code := agent.poll()) is None:
            orders = self._reporter.wait(END_SECONDS if self._reporter.endings() else LOOK_SECONDS)
            self._kept.look()
            if self._terminated.is_set():
                return self._terminate(agent, hub)
            if orders is not None:
                return self._end_ranks(agent, hub)
        hub.drain(_HANG_UP_SECONDS)
        self._end_network()  # before the supervisor hears of the end, and listens no more
        endings = self._reporter.endings()
        if self._hangs:
            return  # they ended because they were asked for their stacks
        if code == 0 and self._all_ended() and all(ending.exit_code == 0 for ending in endings):
            assert self._saves is not None
            self._saves.finish(final=True, go_on=lambda: not (self._terminated.is_set() or self._reporter.orders()))
            self._reporter.enter("finished")
            self._finished = not self._reporter.failed()
        elif any(not ending.stopped and ending.exit_code != 0 for ending in endings):
            self._reporter.enter("failed")
        else:
            self._reporter.fail(_agent_failure(agent, code))

    def _commit_end(self) -> None:
        if not (self._finished and self._saves is not None and self._reporter.commits()):
            return
        saves, self._saves = self._saves, None
        try:
            saves.commit_end()
        except (StepError, InputError, OSError) as error:
            self._reporter.fail(_step_error(error))

    def _end_ranks(self, agent: Agent, hub: RankHub) -> None:
        hub.release()
        until = time.monotonic() + _OWN_END_SECONDS
        while self._all_ended() and agent.poll() is None and time.monotonic() < until:
            time.sleep(END_SECONDS)
        agent.end(min(STOP_GRACE_SECONDS, float(self._args.grace_seconds)))
        hub.drain(_HANG_UP_SECONDS)

    def _all_ended(self) -> bool:
        return len(self._reporter.endings()) == self._args.nproc_per_node

    def _terminate(self, agent: Agent, hub: RankHub) -> None:
        """SIGTERM of the pod: the ranks get it too, and their time to save."""
        assert self._saves is not None
        self._saves.expect_last()
        agent.end(float(self._args.grace_seconds))
        hub.drain(_HANG_UP_SECONDS)
        endings = self._reporter.endings()
        self._clean = len(endings) == self._args.nproc_per_node and all(_ended_clean(ending) for ending in endings)
        if self._store.is_away(LAST_SAVE_SECONDS):  # a throttle is over sooner
            # Nothing could be committed before the pod is killed, and whoever stopped it would wait for that.
            print("argosy: the store does not answer: what the ranks saved last is not committed", flush=True)
            self._store.leaving.set()
            self._clean = False
        if self._clean:
            until = time.monotonic() + LAST_SAVE_SECONDS
            self._saves.finish(final=False, go_on=lambda: time.monotonic() < until and not self._reporter.orders())
        self._clean = self._clean or self._saves.saved_last()
        how = "after a clean save" if self._clean else "without a clean save"
        text = f"{self._identity.pod} on {self._identity.node} was told to stop and its ranks ended {how}"
        self._reporter.fail(StepError(Cause.SIGTERM, text, code=ExitCode(self._code_of_termination())))

    def _code_of_termination(self) -> int:
        if self._finished:
            return int(ExitCode.OK)
        return int(ExitCode.PREEMPTED if self._clean else ExitCode.TRANSIENT)


def _ended_clean(ending: Ending) -> bool:
    return ending.signal is None and ending.exit_code in _CLEAN


def _step_error(error: StepError | InputError | OSError) -> StepError:
    """What a report can say: of what has no cause of its own that the description or the rights are wrong."""
    return error if isinstance(error, StepError) else StepError(Cause.CONFIG_OR_RBAC, str(error), quote=str(error))


def _agent_failure(agent: Agent, code: int) -> StepError:
    """The error when the agent failed and no rank did: its own words say why."""
    said = read_lines(list(agent.tail))
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    text = f"{agent.name} ended with {how} and no rank failed by itself"
    if said is None:
        return StepError(Cause.UNKNOWN, text, quote=text)
    return StepError(said.cause, text, quote=said.quote, code=said.code)


def describe(assignment: Assignment) -> dict[str, Any]:
    """The assignment in one line of the pod's log."""
    return {
        "attempt": assignment.attempt,
        "restart": assignment.restart,
        "node_rank": assignment.node_rank,
        "nnodes": assignment.nnodes,
        "resume_step": assignment.resume_step,
    }
