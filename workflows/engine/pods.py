"""Pods of the workflow's own steps: start them, see how they ended, take their outputs, end them in time."""

from __future__ import annotations

import shutil
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from argosy.steps.pods.pod import PodEnding, PodSpec, adopt, start
from argosy.workflows.engine import artifacts
from argosy.workflows.engine.config_maps import ConfigMaps
from argosy.workflows.engine.node import ERROR, FAILED, RUNNING, SUCCEEDED, NodeState
from argosy.workflows.engine.pod_environment import (
    PodIdentity,
    base_environment,
    command_line,
    container_environment,
)  # fmt: skip
from argosy.workflows.engine.pod_job import PodJob, is_ours
from argosy.workflows.engine.pod_patch import grace_seconds
from argosy.workflows.engine.repository import ArtifactRepository
from argosy.workflows.engine.volumes import mounts_of, place_configs, read_only, volumes_of

VIRTUAL_NODE = "node-0"
DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"
_GRACE_SECONDS = 30.0
_MESSAGE_BYTES = 4096
_SCRIPT_PATH = "/argo/staging/script"
_RESULT_PATH = "/.argosy-result"
_CAPTURE = Path(__file__).with_name("capture.py").resolve()


@dataclass
class PodRunner:
    """The pods of one run. ``lifeline`` is the read end of the pipe that tells every pod that the engine is gone."""

    workflow: str
    uid: str
    namespace: str
    service_account: str
    spec: Mapping[str, Any]
    run_dir: Path
    claims: Path
    lifeline: int
    configs: ConfigMaps
    repository: ArtifactRepository
    inject: tuple[str, ...] = ()
    nodes: int | None = None
    settled: list[tuple[NodeState, dict[str, Any]]] = field(default_factory=list)
    """Nodes that :meth:`collect` settled, with their templates; emptied by whoever reads it."""
    patient: bool = True
    """Whether what is ended has its grace period."""
    _queue: list[PodJob] = field(default_factory=list)
    _running: dict[str, PodJob] = field(default_factory=dict)

    # -- asked by the operation ------------------------------------------------------------------------------

    def submit(self, node: NodeState, template: dict[str, Any], *, keep_result: bool) -> None:
        """Take over a pending node; see :meth:`start_queued`."""
        if any(job.node is node for job in self._queue) or node.id in self._running:
            return
        folder = self.run_dir / "nodes" / VIRTUAL_NODE / "pods" / node.pod
        node.log = str(folder / "log")
        self._queue.append(PodJob(node, template, keep_result, folder))

    def end(self, node_id: str) -> None:
        """SIGTERM the node's pod now and SIGKILL it after the grace period."""
        job = self._running.get(node_id)
        if job is not None and job.kill_at is None and job.pod is not None:
            job.pod.signal(signal.SIGTERM)
            job.kill_at = time.time() + self._grace(job)
        self._queue = [each for each in self._queue if each.node.id != node_id]

    # -- asked by the scheduler ------------------------------------------------------------------------------

    def start_queued(self) -> list[NodeState]:
        """Start what was submitted; the nodes, some of which may have ended at once."""
        queue, self._queue = self._queue, []
        for job in queue:
            if not job.node.fulfilled:
                self._start(job)
        return [job.node for job in queue]

    def collect(self) -> bool:
        """Settle the nodes whose pods have ended and enforce deadlines; True if a node changed."""
        changed = False
        now = time.time()
        for node_id, job in list(self._running.items()):
            assert job.pod is not None
            ending = job.pod.poll()
            if ending is None:
                self._enforce(job, now)
                continue
            del self._running[node_id]
            if not job.node.fulfilled:
                self._settle(job, ending)
                self.settled.append((job.node, job.template))
                changed = True
        return changed

    def handles(self) -> Iterator[int]:
        """Descriptors that become readable when a pod ends."""
        for job in self._running.values():
            assert job.pod is not None
            try:
                yield job.pod.fileno()
            except ProcessLookupError:
                continue

    def next_moment(self) -> float | None:
        """When a deadline or a grace period ends, seconds since 1970."""
        moments = []
        for job in self._running.values():
            if job.kill_at is not None:
                moments.append(job.kill_at)
            elif job.node.deadline is not None:
                moments.append(job.node.deadline)
        return min(moments, default=None)

    def __len__(self) -> int:
        """How many pods run."""
        return len(self._running)

    def end_all(self) -> None:
        """SIGTERM every pod, wait for their grace periods while ``patient``, SIGKILL what is left; until none is."""
        for node_id in list(self._running):
            self.end(node_id)
        while self._running:
            for node_id, job in list(self._running.items()):
                assert job.pod is not None
                if job.pod.poll() is not None:
                    # It was stopped, whatever it says: a rerun must not take this for its own ending.
                    (job.folder / "ending.json").unlink(missing_ok=True)
                    del self._running[node_id]
                elif self.patient:
                    self._enforce(job, time.time())
                else:
                    job.pod.kill()
            if self._running:
                time.sleep(0.01)

    # -- one pod ---------------------------------------------------------------------------------------------

    def longest_grace(self) -> float:
        """Seconds that :meth:`end_all` takes at most."""
        return max((self._grace(job) for job in self._running.values()), default=0.0)

    def _grace(self, job: PodJob) -> float:
        seconds = grace_seconds(self.spec, job.template)
        return _GRACE_SECONDS if seconds is None else seconds

    def _enforce(self, job: PodJob, now: float) -> None:
        assert job.pod is not None
        if job.kill_at is not None and now >= job.kill_at:
            job.pod.kill()
        elif job.kill_at is None and job.node.deadline is not None and now >= job.node.deadline:
            job.timed_out = True
            self.end(job.node.id)

    def _start(self, job: PodJob) -> None:
        node = job.node
        if self._succeeded_before(job):
            return
        for leftover in (job.folder / "root", job.folder / "volumes"):
            shutil.rmtree(leftover, ignore_errors=True)
        try:
            spec = self._spec(job)
            assert job.files is not None
            artifacts.place_inputs(job.template, job.files, self.repository)
        except artifacts.InputMissing as error:
            self._end_node(node, ERROR, f"init: Error (exit code 64): {error}")
            return
        except LookupError as error:
            self._end_node(node, ERROR, f"{error}; Argo would keep this pod Pending for ever")
            return
        except OSError as error:
            self._end_node(node, ERROR, f"the pod's files could not be written: {error}")
            return
        if shutil.which(spec.command[0], path=spec.env["PATH"]) is None and "/" not in spec.command[0]:
            # What the emissary says when the image has no such program.
            node.exit_code = 64
            text = f'failed to find name in PATH: exec: "{spec.command[0]}": executable file not found in $PATH'
            self._end_node(node, FAILED, f"main: Error (exit code 64): {text}")
            return
        try:
            job.pod = start(spec, lifeline=self.lifeline)
        except OSError as error:
            self._end_node(node, ERROR, f"the pod could not be started: {error}")
            return
        self._running[node.id] = job
        node.phase, node.message = RUNNING, ""

    def _succeeded_before(self, job: PodJob) -> bool:
        """Settle a pod that succeeded while no engine looked: the last one was killed before it could note it.

        A failure is not taken over: it may be a consequence of the engine's end. The pod's first process may
        still be leaving when its ending is written already, so it is ended, not asked.
        """
        before = adopt(job.folder)
        if before is None:
            return False
        ending = before.kill()
        if ending.lost or ending.exit_code != 0:
            return False
        self._spec(job)
        self._settle(job, ending)
        self.settled.append((job.node, job.template))
        return True

    def _spec(self, job: PodJob) -> PodSpec:
        container, node = job.container, job.node
        isolated = not is_ours(container.get("command"))
        root = job.folder / "root"
        volumes = volumes_of(self.spec, job.template, self.workflow)
        place_configs(volumes, self.configs, job.folder)
        mounts = mounts_of(container, volumes, job.folder, self.claims)
        job.files = artifacts.PodFiles(root, mounts)
        (root / "tmp").mkdir(parents=True, exist_ok=True)
        identity = PodIdentity(
            workflow=self.workflow, uid=self.uid, namespace=self.namespace, service_account=self.service_account,
            node_id=node.id, pod=node.pod, virtual_node=VIRTUAL_NODE, run_dir=self.run_dir, root=root,
            inject=self.inject, nodes=self.nodes,
        )  # fmt: skip
        own = container_environment(container, identity, self.configs)
        command = command_line(container, own)
        if "script" in job.template:
            script = job.files.at(_SCRIPT_PATH)
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(str(job.template["script"].get("source") or ""), encoding="utf-8")
            script.chmod(0o755)  # "sh -c" runs it as a program
            command = (*command, _SCRIPT_PATH)
        if job.keep_result:
            kept = _RESULT_PATH if isolated else f"{root}{_RESULT_PATH}"
            command = (sys.executable, "-I", "-S", str(_CAPTURE), kept, *command)
        job.termination_log = root / "dev" / "termination-log"
        if isolated:
            job.termination_log = job.folder / "termination-log"
            job.termination_log.write_bytes(b"")
            mounts = {
                **mounts,
                str(container.get("terminationMessagePath") or "/dev/termination-log"): job.termination_log,
            }
        workdir = container.get("workingDir")
        if not isolated:
            workdir = str(job.files.at(str(workdir or "/workspace")))
        return PodSpec(
            name=node.pod, command=command, env={**base_environment(identity, mounts, isolated=isolated), **own},
            root=root, mounts=mounts, token=f"{self.uid}/{node.pod}", log=job.folder / "log", folder=job.folder,
            workdir=workdir, isolate=isolated, read_only=read_only(container, volumes),
        )  # fmt: skip

    def _end_node(self, node: NodeState, phase: str, message: str) -> None:
        node.phase, node.message, node.finished = phase, message, time.time()

    def _settle(self, job: PodJob, ending: PodEnding) -> None:
        node = job.node
        node.finished = max(ending.time, node.started or 0.0)
        if ending.lost and not job.timed_out:
            # The first process was killed from outside: on a cluster the pod is gone with its node.
            node.phase, node.message = ERROR, "pod deleted"
            return
        code = ending.exit_code if ending.exit_code is not None else 128 + (ending.signal or 0)
        node.exit_code = code
        if job.timed_out:
            node.phase, node.message = FAILED, DEADLINE_MESSAGE
        elif code != 0:
            text = self._termination(job)
            node.phase, node.message = FAILED, f"main: Error (exit code {code})" + (f": {text}" if text else "")
        else:
            node.phase, node.message = SUCCEEDED, ""
        self._outputs(job, strict=node.phase == SUCCEEDED)

    def _termination(self, job: PodJob) -> str:
        try:
            assert job.termination_log is not None
            return job.termination_log.read_bytes()[:_MESSAGE_BYTES].decode(errors="replace")
        except OSError:
            return ""

    def _outputs(self, job: PodJob, *, strict: bool) -> None:
        node, files = job.node, job.files
        assert files is not None
        outputs: dict[str, Any] = {}
        try:
            outputs["parameters"] = artifacts.collect_parameters(job.template, files, strict=strict)
            store = self.run_dir / "artifacts" / node.id
            outputs["artifacts"] = artifacts.collect_artifacts(
                job.template, files, store, self.repository, strict=strict
            )
            if job.keep_result:
                outputs["result"] = artifacts.read_result(files.at(_RESULT_PATH))
        except (artifacts.OutputMissing, OSError) as error:
            if strict:
                node.phase, node.message = ERROR, f"wait: Error (exit code 64): {error}"
        node.outputs = {key: value for key, value in outputs.items() if value or key == "result"}
