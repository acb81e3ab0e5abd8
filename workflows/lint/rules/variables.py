"""NCCL, TORCH: the environment of whatever trains, judged by :mod:`argosy.steps.nccl.checks`.

The same checks look at the effective environment inside the pod; here they are told what the manifest says of the pod.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from argosy.steps.nccl.checks import RULES as CHECKED
from argosy.steps.nccl.checks import check_environment
from argosy.steps.nccl.facts import Facts, Process
from argosy.steps.nccl.finding import EnvironmentFinding, Remove, Rename, Set
from argosy.steps.nccl.hardware import gpu_model
from argosy.workflows.lint import finding as mend
from argosy.workflows.lint.finding import Edit, Level, Problem
from argosy.workflows.lint.rule import declare, rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.environment import Variable
from argosy.workflows.manifests.launchers import MPI
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.node_labels import selected_labels
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.process import Process as Command
from argosy.workflows.manifests.training import trains

_FIRST: Final = "NCCL001"
_DIAGNOSIS: Final = re.compile(r"nccl[-_]?tests?\b|preflight|all_reduce_perf|diagnos")
_PREFIXES: Final = (
    *("NCCL_", "TORCH_", "GLOO_", "FI_", "OFI_", "RDMAV_", "UCX_", "CUDA_", "PET_", "PYTORCH_", "MELLANOX_"),
)
# In a pod these are read by whoever looks for lost speed; in a manifest they are vendors' advice nine times in ten.
# A site's fabric, its plugins and an image's NCCL are known to who wrote the variable, and not to a manifest's reader.
_OF_THE_SITE: Final = (
    *("NCCL002", "NCCL004", "NCCL005", "NCCL006", "NCCL007", "NCCL011", "NCCL012", "NCCL017", "NCCL018", "NCCL024"),
    *("NCCL027", "NCCL029", "NCCL030", "NCCL031", "NCCL036", "NCCL038", "NCCL043", "NCCL045"),
    *("NCCL051", "TORCH005", "TORCH009"),
)
_WORST: Final = dict.fromkeys(_OF_THE_SITE, Level.NOTE)
# With these nothing starts. A name that NCCL ignores fails nothing, and a program of the image may read it.
_WORST.update({"NCCL035": Level.ERROR, "TORCH008": Level.ERROR})


def _level(name: str, word: str) -> Level:
    return min(Level.of(word), _WORST.get(name, Level.WARNING))


for _name, _word in CHECKED.items():
    if _name != _FIRST:
        declare(_name, _level(_name, _word))


@rule(_FIRST, _level(_FIRST, CHECKED[_FIRST]), on=Container)
def environment(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Every rule on variables, for each process that the container starts."""
    seen = set()
    for process, variables in _environments(container, bundle):
        if not any(name.startswith(_PREFIXES) for name in variables):
            continue
        facts = _facts(container, process, bundle)
        values = {name: variable.value for name, variable in variables.items()}
        for found in check_environment(values, facts):
            if (found.rule, found.variables) not in seen:
                seen.add((found.rule, found.variables))
                yield _problem(found, variables, container)


def _environments(container: Container, bundle: Bundle) -> Iterator[tuple[Process, Mapping[str, Variable]]]:
    kind: Process = "init" if container.init and not container.sidecar else "ranks"
    main = container.pod.main
    if not container.init and main is not None and main.node.yaml is not container.node.yaml:
        kind = "sidecar"
    commands = [each for each in bundle.processes(container) if each.assignments]
    launchers = [each for each in bundle.processes(container) if each.program in MPI]
    if launchers and kind == "ranks":
        passed = {set_.name for each in launchers for set_ in each.assignments if set_.how == "-x"}
        rest = {name: each for name, each in bundle.environment(container).items() if name not in passed}
        yield "mpi-launcher", rest
        for each in launchers:
            yield "ranks", _forwarded(each, bundle.environment(container))
        return
    if not commands:
        yield kind, bundle.environment(container)
    for each in commands:
        yield kind, bundle.environment_of(each, container)


def _forwarded(command: Command, base: Mapping[str, Variable]) -> dict[str, Variable]:
    """What ``mpirun -x`` gives to the ranks."""
    found: dict[str, Variable] = {}
    for each in command.assignments:
        if each.how == "-x" and each.value is None and each.name in base:
            found[each.name] = base[each.name]
        elif each.how == "-x" and each.value is None and any(other.name == each.name for other in command.assignments):
            known = next(other for other in command.assignments if other.name == each.name)
            found[each.name] = Variable(each.name, known.value, known.node, known.how, known.text)
        elif each.how == "-x":
            found[each.name] = Variable(each.name, each.value, each.node, each.how, each.text)
    return found


def _where_ranks_run(container: Container, bundle: Bundle) -> Container:
    """The worker's container for what MPI's launcher passes on, else the container itself."""
    workload, role = bundle.workload(container.pod.document), container.pod.role
    if workload is None or role is None or not role.launcher:
        return container
    return next((each.pod.main for each in workload.roles if not each.launcher and each.pod.main), container)


def _nodes(container: Container, bundle: Bundle) -> int | None:
    """Pods that hold ranks; None for a lone pod, which may be one of several that somebody wrote out."""
    workload = bundle.workload(container.pod.document)
    if workload is None or workload.family in ("pod", "argo", "other"):
        return None
    numbers = [each.replicas for each in workload.roles if not each.launcher]
    return None if None in numbers else sum(number or 0 for number in numbers)


def _facts(container: Container, process: Process, bundle: Bundle) -> Facts:
    commands = [each.words for each in bundle.processes(container) if trains(each.words, each.program)]
    tests = any(map(_DIAGNOSIS.search, (container.pod.document.name, container.name)))
    tests = tests or (bool(commands) and all(any(map(_DIAGNOSIS.search, words)) for words in commands))
    container = _where_ranks_run(container, bundle) if process == "ranks" else container
    pod = container.pod
    labels = dict(selected_labels(pod))
    return Facts(
        nccl=bundle.nccl,
        gpu=gpu_model(selected_labels(pod)),
        gpus_per_pod=container.gpus or None,
        nodes=_nodes(container, bundle),
        host_network=pod.host_network,
        non_root=container.non_root,
        privileged=container.privileged,
        capabilities=container.capabilities,
        resources=_resources(container),
        annotations=frozenset(pod.annotations.entries),
        labels=frozenset({*pod.labels.entries, *labels, *(f"{key}={value}" for key, value in labels.items())}),
        mounts=frozenset(container.mounts),
        image=container.image.text or None,
        fabric=pod.annotations["argosy.dev/fabric"].text or None,
        process=process,
        diagnosis=tests,
    )


def _resources(container: Container) -> frozenset[str] | None:
    """What is asked for, claims as ``claim/NAME``; None where nothing is said."""
    claims = {f"claim/{claim['name'].text}" for claim in container.node.at("resources.claims")}
    return frozenset({*container.requests.entries, *container.limits.entries, *claims}) or None


def _problem(found: EnvironmentFinding, variables: Mapping[str, Variable], container: Container) -> Problem:
    variable = next((variables[name] for name in found.variables if name in variables), None)
    node, inside = (_place(found, variable), variable.text) if variable is not None else (container.node["env"], "")
    level = _level(found.rule, found.level)
    return Problem(node, found.message, found.remedy, _edits(found, variables), level, inside, found.rule)


def _place(found: EnvironmentFinding, variable: Variable) -> Node:
    """The name where the name is wrong, else the value."""
    by_name = isinstance(found.fix, Remove | Rename) and variable.how == "env"
    return variable.node["name"] if by_name else variable.place


def _edits(found: EnvironmentFinding, variables: Mapping[str, Variable]) -> list[Edit]:
    variable = variables.get(found.fix.variable) if found.fix is not None else None
    if found.fix is None or variable is None or variable.how not in ("env", "envFrom"):
        return []
    node, item = variable.node, variable.how == "env"
    match found.fix:
        case Remove():
            return [mend.Remove(node)]
        case Rename(_, new):
            return [mend.SetValue(node["name"], new)] if item else [mend.RenameKey(node, new)]
        case Set(_, value):
            return [mend.SetValue(_value(node) if item else node, value)]


def _value(item: Node) -> Node:
    return item["value"]
