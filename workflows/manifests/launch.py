"""How a command starts its ranks: how many nodes, which of them this one is, whom it dials.

torchrun takes each of its options from ``PET_NAME`` too (torch/distributed/argparse_util.py); ``$(VAR)``, and ``$VAR``
in a script, are filled in from the container's variables where their values are written down.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.workflows.manifests.address import Address, address
from argosy.workflows.manifests.environment import Variable
from argosy.workflows.manifests.launchers import TORCH
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container, Role
from argosy.workflows.manifests.process import Process
from argosy.workflows.manifests.training import trains
from argosy.workflows.manifests.workload import Workload

# What an operator, a Job, a runtime or a cloud may set in the pod: a shell's default is not its value.
_FROM_ELSEWHERE: Final = re.compile(
    r"(PET|TORCH\w*|JOB|JOBSET|VC|VK|LWS|OMPI|PMI|PMIX|SLURM|RAY|TPU|MEGASCALE|DMLC|PADDLE|COORDINATOR|POD|HOST|K8S|"
    r"KUBERNETES|MASTER|NODE|GROUP|LOCAL|GLOBAL|WORLD|MACHINE|WORKER|TRAINER|REPLICA|TASK|PROCESS|NUM|N)_\w*|"
    r"RANK|NNODES|NPROC\w*|HOSTNAME|HOSTS?|WORLD_SIZE|TF_CONFIG|\w*_(SERVICE_HOST|SERVICE_PORT|INDEX|ADDR|RANK|HOSTS)"
)
_KUBELET: Final = re.compile(r"\$\(([A-Za-z_]\w*)\)")
_SHELL: Final = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}$]*))?\})")


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as it was given.

    Args:
        value: with variables filled in; None when one of them is not known here.
        written: as it is written.
        node: where; ``inside``: the piece of a script that says it.
        how: ``option`` or ``env``.
    """

    value: str | None
    written: str
    node: Node
    inside: str
    how: str

    @property
    def number(self) -> int | None:
        """A whole number; None for anything else."""
        return int(self.value) if self.value is not None and re.fullmatch(r"\d{1,9}", self.value) else None


@dataclass(frozen=True, slots=True)
class Launch:
    """One command that starts ranks, in one container of one role."""

    process: Process
    container: Container
    role: Role
    workload: Workload
    environment: Mapping[str, Variable]

    @property
    def program(self) -> str:
        """``torchrun``, ``accelerate``, ``deepspeed``, ``mpirun``, ``python``."""
        return self.process.program

    @property
    def torch(self) -> bool:
        """Whether it is torchrun, under any of its names."""
        return self.program in TORCH

    def option(self, *names: str) -> Given | None:
        """An option of the launcher, dashes for underscores; None when it is not given."""
        for name in names:
            if name in self.process.options:
                written = self.process.options[name]
                node, inside = self._place(name)
                return Given(self.filled_in(written), written, node, inside, "option")
        return None

    def variable(self, name: str) -> Given | None:
        """A variable of the command; None when nothing here sets it."""
        found = self.environment.get(name)
        if found is None:
            return None
        written = found.place.text if found.how == "env" else found.text.partition("=")[2]
        value = found.value if found.value is not None else self.filled_in(written) if written else None
        return Given(value, written, found.place, found.text, "env")

    def setting(self, *names: str) -> Given | None:
        """torchrun's option, else its ``PET_`` variable."""
        given = self.option(*names)
        if given is None and self.torch:
            given = self.variable(f"PET_{names[0].upper().replace('-', '_')}")
        return given

    def filled_in(self, text: str, depth: int = 0) -> str | None:
        """The text with its variables' values; None when one is not known."""
        if not self.process.node.origin.editable and "xxxxx" in text:  # an unquoted {{…}} (reading.py)
            return None
        if "$" not in text and "`" not in text and "{{" not in text:
            return text
        unknown = False

        def value(match: re.Match[str]) -> str:
            nonlocal unknown
            name = next(each for each in match.groups()[:2] if each)
            found = self.environment.get(name)
            known = found.value if found is not None else None
            if known is None and found is not None and found.how == "env" and depth < 4:
                known = self.filled_in(found.place.text, depth + 1)
            default = match[3] if len(match.groups()) > 2 else None
            if known is None and found is None and default is not None and self._alone_decides(name):
                known = default
            unknown = unknown or known is None
            return known or ""

        filled = _KUBELET.sub(lambda match: value(match), text)
        if self.process.in_shell or depth:
            filled = _SHELL.sub(value, filled)
        return None if unknown or re.search(r"\$|`|\{\{", filled) else filled

    def _alone_decides(self, name: str) -> bool:
        """Whether nothing but the script itself can set a variable."""
        return _FROM_ELSEWHERE.fullmatch(name) is None and not self.container.node["envFrom"]

    def _place(self, name: str) -> tuple[Node, str]:
        pattern = re.compile(rf"--?{'[-_]'.join(map(re.escape, name.split('-')))}(?![\w-])(?:[= ]+[^\s\\;&|)]+)?")
        if self.process.in_shell:
            match = pattern.search(self.process.text) or pattern.search(self.process.node.text)
            return self.process.node, match[0] if match is not None else ""
        words = (node for node in self.container.argv if pattern.match(node.text))
        return next(words, self.process.node), ""

    # ---- what torchrun makes of it

    @property
    def backend(self) -> str | None:
        """``static``, ``c10d``, ``etcd``, …; None when it is filled in later or an operator sets it."""
        given = self.setting("rdzv-backend")
        if given is not None:
            return given.value
        if self.workload.document.kind == "PyTorchJob" and self.workload.spec["elasticPolicy"]:
            return self.workload.spec.at("elasticPolicy.rdzvBackend").text or "c10d"
        return "static"

    @property
    def nodes(self) -> tuple[Given, int, int] | None:
        """(where, least, most) nodes it is told; None when it is not told, or not here."""
        given = self._count_of_nodes()
        if given is None or given.value is None:
            return None
        match = re.fullmatch(r"(\d{1,6})(?::(\d{1,6}))?", given.value)
        return (given, int(match[1]), int(match[2] or match[1])) if match is not None else None

    def _count_of_nodes(self) -> Given | None:
        if self.torch:
            return self.setting("nnodes")
        if self.program == "accelerate":
            return self.option("num-machines")
        return self.option("num-nodes", "nnodes") if self.program == "deepspeed" else None

    @property
    def node_rank(self) -> Given | None:
        """Which of the nodes it is told to be."""
        if self.torch:
            return self.setting("node-rank")
        return self.option("machine-rank") if self.program == "accelerate" else self.option("node-rank")

    @property
    def master(self) -> tuple[Given, Address] | None:
        """(where, address) that it dials; None when it is not told here, or filled in later."""
        given = self.master_given
        found = address(given.value) if given is not None and given.value is not None else None
        return (given, found) if given is not None and found is not None else None

    @property
    def master_given(self) -> Given | None:
        """Where it is told whom to dial."""
        if self.torch:
            return self.setting("rdzv-endpoint") or self.setting("master-addr")
        if self.program == "accelerate":
            return self.option("main-process-ip") or self.variable("MASTER_ADDR")
        if self.program == "deepspeed":
            return self.option("master-addr")
        return self.variable("MASTER_ADDR")

    @property
    def several_nodes(self) -> bool:
        """Whether it is told to be one of several nodes."""
        nodes = self.nodes
        if nodes is not None:
            return nodes[2] > 1
        given = self._count_of_nodes()
        return given is not None and given.value is None


def launches(
    workload: Workload,
    processes: Callable[[Container], Sequence[Process]],
    environment_of: Callable[[Process, Container], Mapping[str, Variable]],
) -> list[Launch]:
    """The commands of a workload's containers that train."""
    found = []
    for role in workload.roles:
        for container in role.pod.containers if role.template else ():
            for process in processes(container):
                if trains(process.words, process.program):
                    environment = environment_of(process, container)
                    found.append(Launch(process, container, role, workload, environment))
    return found
