"""mpirun as the agent: Open MPI starts the ranks of all nodes, and needs neither ssh nor an operator's host file.

On node 0 ``mpirun`` asks its remote shell to start a daemon of its own on each node; that shell is ours
(:mod:`argosy.steps.launch.mpi_shell`), and launch on each node starts the daemon. So a node's ranks are below that
node's launch, in its environment and working directory. Open MPI 4 (``orted``) and 5 (``prted``).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from argosy.steps.child_python import die_with_parent
from argosy.steps.contract import env as names
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.agent import PYTHON, Agent, pass_on, shim
from argosy.steps.launch.identity import restart_key
from argosy.steps.launch.mpi_daemon import Daemon
from argosy.steps.launch.mpi_rank import FOLDER, OUTPUT
from argosy.steps.launch.mpi_shell import HOSTS, KEY, host_name
from argosy.steps.launch.plain import variables
from argosy.steps.launch.wire import SHIM
from argosy.steps.pods import processes

_NEVER_SECONDS: Final = "86400"
_SETTINGS: Final = {
    # Host names are ours and resolve nowhere: each daemon, node 0's too, is started by our shell.
    "orte_do_not_resolve": "1",
    "prte_do_not_resolve": "1",
    "plm_rsh_no_tree_spawn": "1",
    "plm_ssh_no_tree_spawn": "1",
    # Ranks get the grace that launch gives, and not the second after which mpirun kills what it ends.
    "odls_base_sigkill_timeout": _NEVER_SECONDS,
    # Nothing is bound to a core, so the map of cores that daemons share with ranks serves nobody, and now and then
    # Debian's orted died of writing it.
    "rtc": "^hwloc",
}
"""For both versions: a parameter that one does not know it ignores in its environment."""


def parameters(values: Mapping[str, str]) -> dict[str, str]:
    """The variables that set Open MPI's parameters, in the spelling of version 4 and of PRRTE, which 5 is built on."""
    return {f"{prefix}{name}": value for name, value in values.items() for prefix in ("OMPI_MCA_", "PRTE_MCA_")}


class Mpirun(Agent):
    """On node 0 mpirun itself; on each node the daemon that mpirun asks for."""

    name = "mpirun"

    def __init__(self, nproc_per_node: int) -> None:
        super().__init__(nproc_per_node)
        self._mpirun: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._daemon: Daemon | None = None

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Wait for mpirun's word on every node; on node 0 start it.

        Raises:
            StepError: ``launcher_usage``: the image has no mpirun, or the gang has more nodes than are told addresses;
                ``address_in_use``: the port that was free at check-in is not any more.
        """
        program = _program(environ)
        if len(assignment.peers) != assignment.nnodes:
            text = f"launcher = mpirun is for gangs of at most 1024 nodes; this one has {assignment.nnodes}"
            raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
        key = restart_key(assignment)
        own = {
            **_apart(),
            **environ,
            **variables(assignment, self._nproc, 0),
            **parameters(_SETTINGS),
            **_as_root(),
            OUTPUT: f"/proc/{os.getpid()}/fd/1",
            FOLDER: str(folder),
        }
        # The port of node 0 that everybody knows is the script's own MASTER_PORT.
        host, _, port = assignment.peers[assignment.node_rank].rpartition(":")
        try:
            self._daemon = Daemon((host.strip("[]"), int(port) if assignment.node_rank else 0), key, own)
        except OSError as error:
            text = f"mpirun: port {port} of {host} was free at check-in and is not any more: {error.strerror}"
            raise StepError(Cause.ADDRESS_IN_USE, text, quote=text) from error
        if assignment.node_rank == 0:
            hosts = [f"{host}:{self._daemon.port}", *assignment.peers[1:]]
            self._start(program, hosts, key, command, own)

    def _start(
        self, program: str, hosts: Sequence[str], key: str, command: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        shell = " ".join([*PYTHON, "argosy.steps.launch.mpi_shell"])
        slots = ",".join(f"{host_name(rank)}:{self._nproc}" for rank in range(len(hosts)))
        rank = [*PYTHON, "argosy.steps.launch.mpi_rank", "--", *shim(command)[len(PYTHON) :]]
        self._mpirun = subprocess.Popen(
            [program, "--host", slots, "-np", str(len(hosts) * self._nproc), "--bind-to", "none", "--wdir", "/", *rank],
            env={
                **environ,
                **parameters({"plm_rsh_agent": shell, "plm_ssh_agent": shell}),
                HOSTS: json.dumps(hosts),
                KEY: key,
            },
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
        self._reader = threading.Thread(target=pass_on, args=(self._mpirun.stderr, self.name, self.tail), daemon=True)
        self._reader.start()

    def poll(self) -> int | None:
        """mpirun's return code where it runs, elsewhere its daemon's."""
        if self._mpirun is not None:
            return self._mpirun.poll()
        return None if self._daemon is None else self._daemon.poll()

    def terminate(self) -> None:
        """SIGTERM for this node's shims; mpirun ends the others when one of them has gone.

        Its own SIGTERM would end the ranks of all nodes, where perhaps only this one was told to stop.
        """
        if self._daemon is None:
            return
        self._daemon.refuse()
        ranks = processes.carrying("OMPI_COMM_WORLD_RANK", "") & processes.carrying(SHIM, "{")
        ranks &= processes.descendants(os.getpid())
        for pid in ranks:
            processes.send(pid, signal.SIGTERM)
        if not ranks:
            self._daemon.terminate()
            if self._mpirun is not None and self._mpirun.poll() is None:
                self._mpirun.terminate()

    def reap(self) -> None:
        """Both, and the end of what mpirun says."""
        if self._daemon is not None:
            self._daemon.close()
        if self._mpirun is not None and self._reader is not None:
            self._mpirun.wait()
            self._reader.join(1.0)


def _program(environ: Mapping[str, str]) -> str:
    places = [environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    found = shutil.which("mpirun", path=os.pathsep.join(places))
    if found is None:
        text = "launcher = mpirun: no mpirun on PATH nor beside Python; install Open MPI in the image"
        raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
    version = subprocess.run([found, "--version"], env=environ, capture_output=True, text=True, check=False).stdout
    if "Open MPI" not in version:
        text = f"launcher = mpirun: {found} is not Open MPI's ({version[:80]!r}); install Open MPI in the image"
        raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
    if any(letter.isspace() for letter in sys.executable):
        text = f"launcher = mpirun: it splits its remote shell at spaces, and this Python is {sys.executable!r}"
        raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
    return found


def _as_root() -> dict[str, str]:
    """mpirun refuses to run as root unless told twice; a pod does not, the process host of a root user does."""
    if os.geteuid():
        return {}
    return {f"{prefix}_ALLOW_RUN_AS_ROOT{end}": "1" for prefix in ("OMPI", "PRTE") for end in ("", "_CONFIRM")}


def _apart() -> dict[str, str]:
    """Nodes that are processes of one machine share its name, by which Open MPI decides who shares memory."""
    if os.environ.get(names.GANG_HOST) != "processes":
        return {}
    return {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_coll": "^acoll,han,sm"}
