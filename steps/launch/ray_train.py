"""Ray as the agent, for scripts of Ray Train: each node's rank is its part of one Ray, node 0's the script as well.

The script is Ray's driver, and the workers that it asks for are Ray's: they are started where Ray finds room, in the
environment of that node's pod. See :mod:`argosy.steps.launch.ray_node`.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import StepError
from argosy.steps.launch.agent import PYTHON
from argosy.steps.launch.identity import restart_key
from argosy.steps.launch.plain import Plain
from argosy.steps.launch.ray_node import KEY

_FIRST_LOOPBACK: Final = ipaddress.IPv4Address("127.0.0.2")
"""Ray takes 127.0.0.1 for the machine's other address, and nodes of one address for one."""


class RayTrain(Plain):
    """One process on each node, which starts Ray there and ends it."""

    name = "ray"

    def begin(self, assignment: Assignment, command: Sequence[str], environ: Mapping[str, str], folder: Path) -> None:
        """Start it.

        Raises:
            StepError: ``launcher_usage``: the image has no Ray.
        """
        places = [environ.get("PATH", os.defpath), str(Path(sys.executable).parent)]
        program = shutil.which("ray", path=os.pathsep.join(places))
        if program is None:
            text = "launcher = ray: no ray on PATH nor beside Python; install ray[train] in the image"
            raise StepError(Cause.LAUNCHER_USAGE, text, quote=text)
        node = [*PYTHON, "argosy.steps.launch.ray_node", program, _host(assignment), "--", *command]
        super().begin(assignment, node, {**environ, KEY: restart_key(assignment)}, folder)


def _host(assignment: Assignment) -> str:
    """The address of this node's Ray; empty in a gang too large to be told of each other: Ray finds it."""
    if not assignment.peers:
        return "" if assignment.node_rank else assignment.master_addr
    host = assignment.peers[assignment.node_rank].rpartition(":")[0].strip("[]")
    return str(_FIRST_LOOPBACK + assignment.node_rank) if host.startswith("127.") else host
