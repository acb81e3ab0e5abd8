"""TrainJob, with the runtime it names where that is among the files."""

from __future__ import annotations

from dataclasses import replace

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.source import Source, count
from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.node import Node
from argosy.workflows.lint.view.made import made_list, made_mapping
from argosy.workflows.lint.view.workload import Role, Workload

# https://github.com/kubeflow/trainer/tree/master/manifests/base/runtimes: what they are made for.
_FRAMEWORKS = ("torch-distributed", "torchtune", "deepspeed-distributed", "mlx-distributed")


def trainer(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The trainer is the node; what it leaves out stands in the runtime."""
    spec = workload.spec
    role = workload.roles[0]
    nodes = count(role, account)
    ranks = spec["trainer"]["numProcPerNode"]
    account.kept(ranks, "gang.nproc_per_node")
    reference = spec["runtimeRef"]
    kind = reference["kind"].text or "ClusterTrainingRuntime"
    runtime = bundle.find(kind, reference["name"].text, workload.document)
    if runtime is not None:
        found = bundle.workload(runtime)
        held = [each for each in found.roles if each.name == "node"] if found is not None else []
        role = replace(role, template=_merged(role, held[0])) if held else role
        account.changed(reference, f"{kind} {reference['name'].text!r} is among the files: what it says is taken")
        if not spec["trainer"]["numNodes"] and held:
            nodes = held[0].replicas or 1
        ranks = (
            ranks or runtime.spec.at("mlPolicy.torch.numProcPerNode") or runtime.spec.at("mlPolicy.mpi.numProcPerNode")
        )
        _runtime(held[0] if held else role, account)
    elif reference:
        account.by_hand(
            reference, f"{kind} {reference['name'].text!r} is not among the files: what it adds is not known"
        )
    for key in ("initializer", "runtimePatches", "podTemplateOverrides"):
        if spec[key]:
            account.by_hand(spec[key], _INITIALIZER if key == "initializer" else "write it into [gang.pod] or [gang]")
    for key in ("suspend", "managedBy", "labels", "annotations"):
        if spec[key].exists:
            account.changed(spec[key], "the supervisor owns the gang")
    return Source(workload, [role], (nodes, nodes), ranks.number)


_INITIALIZER = "data is staged by argosy: write [dataset] uri; a model's weights are data like others"


def _merged(role: Role, runtime: Role) -> Node:
    """The runtime's pod with what the TrainJob says of its trainer in place of the runtime's."""
    trainer, spec = role.template.at("spec").at("containers").items[0], runtime.template["spec"]
    containers = spec["containers"].items
    base = next((each for each in containers if each["name"].text == "node"), containers[0] if containers else trainer)
    fields = {**base.entries, **trainer.entries}
    fields["env"] = made_list(trainer, [*base["env"], *trainer["env"]])
    if not fields["env"].items:
        del fields["env"]
    pod = {**spec.entries, "containers": made_list(trainer, [made_mapping(trainer, fields)])}
    return made_mapping(trainer, {"spec": made_mapping(trainer, pod), "metadata": runtime.template["metadata"]})


def _runtime(role: Role, account: Account) -> None:
    account.changed(role.node, "the runtime's pod template is taken; its policies are argosy's own")
