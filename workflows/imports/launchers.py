"""The options of the programs that start ranks, and what becomes of each.

torchrun: https://docs.pytorch.org/docs/stable/elastic/run.html; accelerate:
https://huggingface.co/docs/accelerate/package_reference/cli; deepspeed:
https://www.deepspeed.ai/getting-started/#resource-configuration-multi-node; mpirun:
https://docs.open-mpi.org/en/main/man-openmpi/man1/mpirun.1.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from argosy.workflows.manifests.word import Values, Word, fill


class Does(Enum):
    """What an option is for."""

    RANKS = "ranks"
    NODES = "nodes"
    MEET = "meet"
    RESTARTS = "restarts"
    MODULE = "module"
    PROGRAM = "program"
    LOGS = "logs"
    BIND = "bind"
    PYTHON = "python"
    ASSIGN = "assign"
    VARIABLE = "variable"
    TOTAL = "total"
    UNKNOWN = "unknown"


MEETING: Final = "ranks meet at MASTER_ADDR and MASTER_PORT (torch: env://)"
WHY: Final[Mapping[Does, str]] = {
    Does.MEET: "ranks meet over argosy's channel",
    Does.NODES: "the number of nodes is gang.nnodes",
    Does.TOTAL: "the number of ranks is gang.nnodes times gang.nproc_per_node",
    Does.RESTARTS: "argosy's supervisor owns restarts: see [retry]",
    Does.LOGS: "every rank's output is kept: argosy logs",
    Does.BIND: "argosy starts the ranks, without ssh",
    Does.PYTHON: "argosy's launch starts Python, with every line of output at once",
    Does.PROGRAM: "argosy starts Python; a program that is none has no place",
}


@dataclass(frozen=True, slots=True)
class Option:
    """An option as it was given.

    Args:
        words: itself and its value.
        value: as the program gets it; None when it is not known here.
        variable: for :attr:`Does.VARIABLE`, which one says the same.
    """

    name: str
    does: Does
    words: tuple[Word, ...]
    value: str | None
    variable: str = ""


@dataclass(slots=True)
class Launch:
    """A command that starts ranks.

    Args:
        launcher: ``torchrun``, ``accelerate``, ``deepspeed``, ``mpirun``, ``python``.
        head: the words that name it.
        before: wrappers of what it starts (``mpirun … env X=1 python``).
        entry: the script or module and its arguments.
        module: whether the entry is a module.
    """

    launcher: str
    head: list[Word]
    before: list[Word] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    entry: list[Word] = field(default_factory=list)
    module: bool = False

    @property
    def runs_with(self) -> str:
        """The launcher of ours that such a script needs; ``""``: torchrun, which most can do with."""
        return "mpirun" if self.launcher == "mpirun" else ""

    def value(self, does: Does) -> str | None:
        """What the first option of this kind says."""
        return next((each.value for each in self.options if each.does is does), None)


_TORCHRUN: Final = {
    Does.RANKS: "nproc-per-node nproc-per-node",
    Does.NODES: "nnodes",
    Does.MEET: "node-rank master-addr master-port rdzv-backend rdzv-endpoint rdzv-id rdzv-conf local-addr "
    "standalone! start-method event-log-handler",
    Does.RESTARTS: "max-restarts monitor-interval signals-to-handle",
    Does.MODULE: "module! m!",
    Does.PROGRAM: "no-python! run-path!",
    Does.LOGS: "log-dir redirects r tee t local-ranks-filter role logs-specs duplicate-stdout-filters "
    "duplicate-stderr-filters",
    Does.BIND: "numa-binding use-env! virtual-local-rank!",
}
_ACCELERATE: Final = {
    Does.TOTAL: "num-processes",
    Does.NODES: "num-machines",
    Does.MEET: "machine-rank main-process-ip main-process-port rdzv-backend rdzv-conf same-network! monitor-interval "
    "multi-gpu! gpu-ids deepspeed-hostfile deepspeed-multinode-launcher deepspeed-exclusion-filter "
    "deepspeed-inclusion-filter",
    Does.RESTARTS: "max-restarts",
    Does.MODULE: "module! m!",
    Does.PROGRAM: "no-python!",
    Does.LOGS: "quiet! q! debug! role log-dir tee",
    Does.BIND: "enable-cpu-affinity! num-cpu-threads-per-process mpirun-hostfile mpirun-ccl",
}
# https://github.com/huggingface/accelerate/blob/main/src/accelerate/utils/launch.py: what its launcher sets for ranks.
_ACCELERATE_VARIABLES: Final = {
    "mixed-precision": "ACCELERATE_MIXED_PRECISION",
    "gradient-accumulation-steps": "ACCELERATE_GRADIENT_ACCUMULATION_STEPS",
    "dynamo-backend": "ACCELERATE_DYNAMO_BACKEND",
    "use-deepspeed!": "ACCELERATE_USE_DEEPSPEED",
    "zero-stage": "ACCELERATE_DEEPSPEED_ZERO_STAGE",
    "deepspeed-config-file": "ACCELERATE_DEEPSPEED_CONFIG_FILE",
    "use-fsdp!": "ACCELERATE_USE_FSDP",
    "cpu!": "ACCELERATE_USE_CPU",
    "fsdp-sharding-strategy": "FSDP_SHARDING_STRATEGY",
    "fsdp-auto-wrap-policy": "FSDP_AUTO_WRAP_POLICY",
    "fsdp-transformer-layer-cls-to-wrap": "FSDP_TRANSFORMER_CLS_TO_WRAP",
    "fsdp-state-dict-type": "FSDP_STATE_DICT_TYPE",
    "fsdp-offload-params": "FSDP_OFFLOAD_PARAMS",
    "fsdp-version": "FSDP_VERSION",
}
_DEEPSPEED: Final = {
    Does.RANKS: "num-gpus num-accelerators",
    Does.NODES: "num-nodes min-elastic-nodes max-elastic-nodes",
    Does.MEET: "hostfile H include i exclude e master-addr master-port launcher launcher-args force-multi! no-ssh! "
    "no-ssh-check! ssh-port node-rank elastic-training! venv-script",
    Does.MODULE: "module!",
    Does.PROGRAM: "no-python!",
    Does.LOGS: "save-pid! enable-each-rank-log log-level quiet! q!",
    Does.BIND: "bind-cores-to-rank! bind-core-list no-local-rank!",
}
_MPIRUN: Final = {
    Does.TOTAL: "np n c num-proc num-processes",
    Does.RANKS: "npernode N ppn perhost",
    Does.MEET: "H host hosts hostfile machinefile f hostlist start-timeout network-interface network-interfaces",
    Does.LOGS: "output-filename tag-output! timestamp-output! verbose! v! report-bindings! display-map! "
    "output prefix-timestamp! outfile-pattern prepend-rank! l!",
    Does.BIND: "allow-run-as-root! bind-to map-by rank-by mca* gmca* oversubscribe! merge-stderr-to-stdout! prefix "
    "wdir launcher iface rmk bootstrap disable-auto-cleanup! pernode! gloo! mpi! nics p ssh-port "
    "mpi-args enable-recovery! quiet! q!",
    Does.ASSIGN: "x env* genv* genvlist genvall!",
}
_PYTHON: Final = {Does.PYTHON: "u! O! OO! B! E! I! s! S! W X q! v! d! i! x! b! bb!", Does.MODULE: "m"}


def _table(of: Mapping[Does, str], variables: Mapping[str, str] | None = None) -> dict[str, tuple[Does, int, str]]:
    found: dict[str, tuple[Does, int, str]] = {}
    for does, names in of.items():
        for name in names.split():
            found[name.rstrip("!*")] = (does, 0 if name.endswith("!") else 2 if name.endswith("*") else 1, "")
    for name, variable in (variables or {}).items():
        found[name.rstrip("!")] = (Does.VARIABLE, 0 if name.endswith("!") else 1, variable)
    return found


_TABLES: Final = {
    "torchrun": _table(_TORCHRUN),
    "torch.distributed.launch": _table(_TORCHRUN),
    "accelerate": _table(_ACCELERATE, _ACCELERATE_VARIABLES),
    "deepspeed": _table(_DEEPSPEED),
    "mpirun": _table(_MPIRUN),
    "python": _table(_PYTHON),
}
_NAMES: Final = {"mpiexec": "mpirun", "orterun": "mpirun", "horovodrun": "mpirun", "mpiexec.hydra": "mpirun"}
_MODULES: Final = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torch.distributed.launch",
    "torch.distributed.elastic": "torchrun",
    "deepspeed.launcher.runner": "deepspeed",
    "deepspeed": "deepspeed",
    "accelerate.commands.launch": "accelerate",
}


def read_launch(words: Sequence[Word], values: Values) -> Launch | None:
    """A command that starts ranks or Python; None for any other.

    Args:
        words: the program and its words, without wrappers.
    """
    texts = [fill(word, values).words[:1] or [""] for word in words]
    name, head = _launcher([each[0] for each in texts])
    if name not in _TABLES:
        return None
    launch = Launch(name, list(words[:head]))
    rest = _read_options(launch, list(words[head:]), values)
    launch.entry = rest
    if name == "python" and launch.value(Does.MODULE) is not None:
        option = next(each for each in launch.options if each.does is Does.MODULE)
        launch.options.remove(option)
        launch.module, launch.entry = True, [option.words[-1], *rest]
    elif any(each.does is Does.MODULE for each in launch.options):
        launch.module = True
    return launch


def _launcher(texts: Sequence[str]) -> tuple[str, int]:
    """(name, how many words name it)."""
    program = texts[0].rsplit("/", 1)[-1] if texts else ""
    if re.fullmatch(r"(python|pypy)[\d.]*", program):
        for index in range(1, len(texts) - 1):
            if texts[index] == "-m":
                found = _MODULES.get(texts[index + 1])
                return (found, index + 2) if found else ("python", 1)
            if not texts[index].startswith("-"):
                break
        return "python", 1
    if program == "accelerate":
        return ("accelerate", 2) if texts[1:2] == ["launch"] else ("", 0)
    return _NAMES.get(program, program), 1


def _read_options(launch: Launch, words: list[Word], values: Values) -> list[Word]:
    """The words after the options."""
    table = _TABLES[launch.launcher]
    index = 0
    while index < len(words):
        text = words[index].source
        if not text.startswith("-") or text in ("-", "--"):
            break
        if launch.launcher == "python" and text == "-c":
            return []
        name, given, _ = text.lstrip("-").partition("=")
        name = name.replace("_", "-")
        does, count, variable = table.get(name, (Does.UNKNOWN, _guess(words, index), ""))
        if launch.launcher == "python" and name not in table and name[:1] in ("W", "X"):
            does, count = Does.PYTHON, 0
        taken = [] if given else words[index + 1 : index + 1 + count]
        launch.options.append(_option(name, does, words[index], taken, values, variable))
        index += 1 + len(taken)
        if launch.launcher == "python" and does is Does.MODULE:
            break
    return words[index + 1 :] if index < len(words) and words[index].source == "--" else words[index:]


def _option(name: str, does: Does, word: Word, taken: list[Word], values: Values, variable: str) -> Option:
    shown = fill(taken[0], values) if taken else fill(word, values)
    value: str | None = None
    if not shown.missing and shown.words:
        value = shown.words[0] if taken else shown.words[0].partition("=")[2]
    return Option(name, does, (word, *taken), value, variable)


def _guess(words: Sequence[Word], index: int) -> int:
    """Words that an unknown option takes: the next one, unless that is an option or the script."""
    following = words[index + 1].source if index + 1 < len(words) else "-"
    return 0 if following.startswith("-") or following.endswith(".py") else 1
