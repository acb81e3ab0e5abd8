"""The host of a gang on one machine: each pod a tree of processes on a virtual node of its own.

Everything is recorded before it happens, so that a supervisor started later finds and goes on with it:

    gangs/GANG/gang.json        placement, written before the first pod starts
    gangs/GANG/deleted.json     nothing of the gang runs any more
    gangs/channel.json          port and token of the control channel
    nodes/NODE/pods/POD/        a pod: root/, volumes/, log, process.json, ending.json, reason.json
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.steps.contract import env as names
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.exit_codes import ExitCode
from argosy.steps.gang.container import PodPlace, command_of, environment_of, mounts_of, workdir_of
from argosy.steps.gang.host import Endpoint, GangRecord, Identity, PodState, Probed, Standing
from argosy.steps.gang.manifest import GangManifest, excluded_nodes, pod_spec, with_identity
from argosy.steps.gang.nodes import VirtualNodes, read_record, write_record
from argosy.steps.gang.replacing import replaced
from argosy.steps.pods.leftovers import sweep
from argosy.steps.pods.pod import Pod, PodSpec, adopt, start

LOOPBACK = "127.0.0.1"
_POLL_SECONDS = 0.02


class ProcessHost:
    """See :class:`argosy.steps.gang.host.GangHost`; ``evict`` and ``lose`` are for injected faults."""

    def __init__(self, local: Path, nodes: int, environ: Mapping[str, str], shared: Mapping[str, str]) -> None:
        """Host of the run whose state lies in ``local`` (``<state>/runs/<workflow>``) with ``nodes`` virtual nodes.

        ``environ`` is this machine's environment, ``shared`` the volumes the supervisor itself has
        {mount path: folder}.
        """
        self._gangs = local / "gangs"
        self._volumes = local.parent.parent / "volumes"
        self.nodes = VirtualNodes(local / "nodes", nodes)
        self._environ = dict(environ)
        self._shared = dict(shared)
        self._token = environ.get(names.POD_TOKEN) or f"argosy-{secrets.token_hex(8)}"
        self._known: dict[Path, Pod] = {}

    def endpoint(self) -> Endpoint:
        """The recorded address, or a free port of the loopback interface and a new token, recorded.

        A port that somebody else has taken since is given up when no pod is left that was told of it.
        """
        record = read_record(self._gangs / "channel.json")
        if record is None or not (_is_free(int(record["port"])) or self._is_running()):
            with socket.socket() as probe:
                probe.bind((LOOPBACK, 0))
                record = {"port": probe.getsockname()[1], "token": secrets.token_urlsafe(32)}
            write_record(self._gangs / "channel.json", record, private=True)
        port = int(record["port"])
        return Endpoint(host=LOOPBACK, port=port, url=f"http://{LOOPBACK}:{port}", token=str(record["token"]))

    def _is_running(self) -> bool:
        return any(not pod.has_ended for gang in self.gangs() for pod in self.pods(gang.name))

    def create(self, manifest: GangManifest, identity: Identity) -> None:
        """Place the pods, record the placement, start those that never started."""
        workload = self._workload(manifest, identity)
        record = read_record(self._file(identity.name))
        if record is None:
            record = self._place(manifest, workload, identity)
            for row in record["pods"]:  # refuse the whole gang before any of it is there
                self._spec(workload, row)
            write_record(self._file(identity.name), record)
        for row in record["pods"]:
            self._start(workload, row)

    def replenish(self, manifest: GangManifest, identity: Identity) -> None:
        """Pods in place of failed ones, on nodes that are free; recorded before they are started."""
        record = read_record(self._file(identity.name))
        if record is None:
            return
        workload = self._workload(manifest, identity)
        failed = {row["name"] for row in record["pods"] if self._state(row).phase == "Failed"}
        rows = replaced(record["pods"], failed, self._free(workload, identity))
        write_record(self._file(identity.name), {**record, "pods": rows})
        for row in rows:
            self._start(workload, row)

    @staticmethod
    def _workload(manifest: GangManifest, identity: Identity) -> Any:
        # PodGroup and Service mean nothing here: placement is all-or-nothing anyway, and nobody looks up a name.
        documents = with_identity(
            manifest,
            name=identity.name,
            attempt=identity.attempt,
            nnodes=identity.nnodes,
            env=identity.env,
            excluded=identity.excluded,
        )
        return manifest.runtime.pods_in(documents)

    def _place(self, manifest: GangManifest, workload: Mapping[str, Any], identity: Identity) -> dict[str, Any]:
        free = self._free(workload, identity)
        if len(free) < identity.nnodes:
            text = f"{identity.nnodes} nodes wanted, {len(free)} of {len(self.nodes.names)} can take a pod"
            excluded = sorted({*identity.excluded, *excluded_nodes(workload)})
            left_out = f" (excluded: {', '.join(excluded)})" if excluded else ""
            raise StepError(Cause.UNSCHEDULABLE, text + left_out, quote=text, code=ExitCode.CONFIGURATION)
        pods = [
            {"name": name, "index": index, "node": free[index], "token": f"{self._token}/{name}/"}
            for index in range(min(len(free), identity.nnodes + manifest.spares))
            for name in [manifest.runtime.hostname(workload, identity.name, index)]
        ]
        return {"name": identity.name, "attempt": identity.attempt, "created": time.time(), "pods": pods}

    def _free(self, workload: Mapping[str, Any], identity: Identity) -> list[str]:
        return self.nodes.free(tuple({*identity.excluded, *excluded_nodes(workload)}))

    def _start(self, workload: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        folder = self._folder(row)
        if self._pod(folder) is not None:
            return
        spec = self._spec(workload, row)
        # A supervisor killed in the middle of this very call may have left the pod without its record.
        sweep(spec.token)
        (self._place_of(row).root / "tmp").mkdir(parents=True, exist_ok=True)
        self._known[folder] = start(spec)

    def _place_of(self, row: Mapping[str, Any]) -> PodPlace:
        return PodPlace(
            pod=row["name"], index=row["index"], node=row["node"], folder=self._folder(row), volumes=self._volumes
        )

    def _spec(self, workload: Mapping[str, Any], row: Mapping[str, Any]) -> PodSpec:
        folder, place, pod = self._folder(row), self._place_of(row), pod_spec(workload, row["index"])
        mounts = mounts_of(pod, place, self._shared)
        environ = environment_of(pod, place, mounts, self._environ)
        return PodSpec(
            name=place.pod,
            command=command_of(pod, environ),
            env=environ,
            root=place.root,
            token=row["token"],
            log=folder / "log",
            folder=folder,
            mounts=mounts,
            workdir=workdir_of(pod, place, mounts),
        )

    def gangs(self) -> list[GangRecord]:
        """Every recorded gang."""
        records = (read_record(path) for path in self._gangs.glob("*/gang.json"))
        found = [
            GangRecord(
                name=record["name"],
                attempt=record["attempt"],
                deleted=(self._gangs / record["name"] / "deleted.json").exists(),
            )
            for record in records
            if record is not None
        ]
        return sorted(found, key=lambda gang: gang.attempt)

    def pods(self, name: str) -> list[PodState]:
        """States from the pods' own records."""
        if (self._gangs / name / "deleted.json").exists():
            return []
        record = read_record(self._file(name))
        return [self._state(row) for row in record["pods"]] if record else []

    def _state(self, row: Mapping[str, Any]) -> PodState:
        folder = self._folder(row)
        base: dict[str, Any] = {"name": row["name"], "index": row["index"], "node": row["node"]}
        base["log"] = str(folder / "log")
        reason = read_record(folder / "reason.json") or {}
        pod = self._pod(folder)
        if pod is None:
            return PodState(**base)
        ending = pod.poll()
        if ending is None and time.time() > reason.get("kill_at", float("inf")):
            ending = pod.kill()
        if ending is None:
            return PodState(**base, phase="Running", reason=reason.get("reason", ""))
        return PodState(
            **base,
            phase="Succeeded" if ending.exit_code == 0 else "Failed",
            exit_code=ending.exit_code,
            signal=ending.signal,
            reason=reason.get("reason", "HostLost" if ending.lost else ""),
            time=ending.time,
        )

    def standing(self, name: str) -> Standing:
        """Always placed: processes are placed before they are there."""
        return Standing(phase="placed")

    def delete(self, name: str, grace_seconds: float) -> tuple[str, ...]:
        """End all pods together and remember that they are gone."""
        record = read_record(self._file(name))
        if record is None or (self._gangs / name / "deleted.json").exists():
            return ()
        pods = [pod for row in record["pods"] if (pod := self._pod(self._folder(row))) is not None]
        for pod in pods:
            if pod.poll() is None:
                pod.signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while any(pod.poll() is None for pod in pods) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        for pod in pods:
            pod.kill()
        for row in record["pods"]:
            sweep(row["token"])
        write_record(self._gangs / name / "deleted.json", {"time": time.time()})
        return ()

    def room(self, excluded: tuple[str, ...]) -> int:
        """Nodes that are neither excluded nor lost."""
        return len(self.nodes.free(excluded))

    def probe(self, manifest: GangManifest, identity: Identity, nodes: int) -> Probed:
        """Nodes are free or not; nothing needs to be held."""
        taken = {state.node for state in self.pods(identity.name)}
        found = min(nodes, len(set(self.nodes.free(identity.excluded)) - taken))
        return Probed(bound=found, running=found)

    def end_probe(self, name: str) -> None:
        """Nothing was held."""

    def evicted(self) -> bool:
        """Only a cluster does that."""
        return False

    def evict(self, node: str, grace_seconds: float) -> None:
        """Reclaim the node's pods: SIGTERM now, SIGKILL after the grace; the node may take pods later."""
        for folder, pod in self._running_on(node):
            write_record(folder / "reason.json", {"reason": "DisruptionTarget", "kill_at": time.time() + grace_seconds})
            pod.signal(signal.SIGTERM)

    def lose(self, node: str) -> None:
        """Cut the node's power: everything on it ends at once and it never comes back."""
        self.nodes.lose(node)
        for folder, pod in self._running_on(node):
            write_record(folder / "reason.json", {"reason": "NodeLost"})
            pod.kill()

    def _running_on(self, node: str) -> list[tuple[Path, Pod]]:
        ours = {
            row["name"]
            for path in self._gangs.glob("*/gang.json")
            for row in (read_record(path) or {"pods": []})["pods"]
        }
        found = ((folder, self._pod(folder)) for folder in self.nodes.pods(node).glob("*") if folder.name in ours)
        return [(folder, pod) for folder, pod in found if pod is not None and pod.poll() is None]

    def _file(self, name: str) -> Path:
        return self._gangs / name / "gang.json"

    def _folder(self, row: Mapping[str, Any]) -> Path:
        return self.nodes.pods(str(row["node"])) / str(row["name"])

    def _pod(self, folder: Path) -> Pod | None:
        if folder not in self._known:
            pod = adopt(folder)
            if pod is None:
                return None
            self._known[folder] = pod
        return self._known[folder]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def process_host(manifest: GangManifest) -> ProcessHost:
    """The host that this environment describes ($ARGOSY_LOCAL_DIR, $ARGOSY_NODES, $ARGOSY_MOUNTS).

    Raises:
        StepError: $ARGOSY_LOCAL_DIR is not set.
    """
    from argosy.steps.paths import mounts

    given = dict(os.environ)
    if not given.get(names.LOCAL_DIR):
        raise StepError(Cause.CONFIG_OR_RBAC, f"{names.LOCAL_DIR} is not set: who started this step is no engine")
    count = int(given.get(names.NODES) or manifest.nnodes + manifest.spares + 1)
    return ProcessHost(Path(given[names.LOCAL_DIR]), count, given, mounts())
