"""TrainJob, with the runtime it names where that is among the files."""

from __future__ import annotations

from dataclasses import replace

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.kinds.reasons import JOB, JOBSET, changed_all
from argosy.workflows.imports.source import MISSING, Source, count
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.made import made_list, made_mapping
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload

_INITIALIZER = "data is staged by argosy: write [dataset] uri; a model's weights are data like others"
_PATCH = "write what it changes into [gang], [gang.resources], [gang.pod] or [env]"


def trainer(workload: Workload, bundle: Bundle, account: Account) -> Source:
    """The trainer is the node; what it leaves out stands in the runtime."""
    spec = workload.spec
    role = workload.roles[0]
    nodes = count(role, account)
    ranks = spec["trainer"]["numProcPerNode"]
    account.number(ranks, "gang.nproc_per_node")
    reference = spec["runtimeRef"]
    kind = reference["kind"].text or "ClusterTrainingRuntime"
    named = f"{kind} {reference['name'].text!r}"
    runtime = bundle.find(kind, reference["name"].text, workload.document)
    if runtime is not None:
        account.changed(reference, f"{named} is among the files: what it says is taken")
        held = _trainer_role(bundle.workload(runtime))
        if held is not None:
            role = replace(role, template=_merged(role, held))
            if not spec["trainer"]["numNodes"]:
                nodes = count(held, account)
        ranks = ranks or _runtime(runtime, spec["trainer"], held, account)
    elif reference:
        account.by_hand(reference, f"{named} is not among the files: what it adds is not known")
    account.by_hand(spec["initializer"], _INITIALIZER, "dataset")
    for key in ("runtimePatches", "podTemplateOverrides", "podSpecOverrides"):
        account.by_hand(spec[key], _PATCH)
    for key in ("labels", "annotations"):
        account.lost(spec[key], f"a run has no {key} of its own")
    changed_all(account, spec, JOBSET)
    placing = runtime.spec["podGroupPolicy"] if runtime is not None else MISSING
    return Source(workload, [role], (nodes, nodes), ranks.text, placing=placing)


def _trainer_role(runtime: Workload | None) -> Role | None:
    roles = runtime.roles if runtime is not None else []
    named = [each for each in roles if each.name in ("node", "trainer-node")]
    marked = [each for each in roles if "trainer" in str(each.node.at("template.metadata.labels").data)]
    return next(iter([*named, *marked, *roles]), None)


def _merged(role: Role, runtime: Role) -> Node:
    """The runtime's pod with what the TrainJob says of its trainer in place of the runtime's."""
    trainer, spec = role.template.at("spec").at("containers").items[0], runtime.template["spec"]
    containers = spec["containers"].items
    named = [each for each in containers if each["name"].text in ("node", "trainer")]
    base = next(iter([*named, *containers]), trainer)
    own = {key: value for key, value in trainer.entries.items() if value}
    fields = {**base.entries, **own}
    fields["env"] = made_list(trainer, [*base["env"], *trainer["env"]])
    if not fields["env"].items:
        del fields["env"]
    others = [each for each in containers if each is not base and each.yaml is not base.yaml]
    pod = {**spec.entries, "containers": made_list(trainer, [made_mapping(trainer, fields), *others])}
    return made_mapping(trainer, {"spec": made_mapping(trainer, pod), "metadata": runtime.template["metadata"]})


def _runtime(document: Document, trainer: Node, role: Role | None, account: Account) -> Node:
    """What the runtime says besides its pod; the number of processes per node."""
    spec = document.spec
    policy = spec["mlPolicy"]
    for kind in ("torch", "mpi"):
        account.number(policy[kind]["numProcPerNode"], "gang.nproc_per_node")
    account.changed(policy, "torchrun starts the ranks on each node")
    account.kept(policy["numNodes"], "gang.nnodes")
    jobset = spec.at("template.spec")
    changed_all(account, jobset, JOBSET)
    for each in jobset["replicatedJobs"]:
        if role is None or each.yaml is not role.node.yaml:
            account.by_hand(each, _INITIALIZER if "initializer" in each["name"].text else "a gang has one kind of node")
            continue
        account.changed(each["name"], "a gang is one Job with a pod per node")
        account.changed(each["replicas"], "a gang is one Job with a pod per node")
        account.changed(each["dependsOn"], "a gang starts all at once")
        account.changed(each.at("template.metadata"), "a gang's Job has argosy's own labels")
        for key in ("completions", "parallelism"):
            account.changed(each.at("template.spec")[key], "the trainer's numNodes is gang.nnodes", "gang.nnodes")
        changed_all(account, each.at("template.spec"), JOB)
        for container in each.at("template.spec.template.spec.containers"):
            for key in ("image", "command", "args", "resources"):
                if trainer["resourcesPerNode" if key == "resources" else key]:
                    account.changed(container[key], "the TrainJob's own is taken")
    return policy["torch"]["numProcPerNode"] or policy["mpi"]["numProcPerNode"]
