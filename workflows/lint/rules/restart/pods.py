"""A pod of a gang that is started again alone: the others wait for it in a collective until NCCL gives up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.steps.contract.objects import SPARES_ANNOTATION
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.ranks import alone, meets_anew, rejoins, together, torch_launch
from argosy.workflows.manifests.workload import Workload

# kubeflow.org/v1 defaults: https://github.com/kubeflow/training-operator pkg/apis/kubeflow.org/v1/*_defaults.go
_DEFAULTS: Final = {"PyTorchJob": "OnFailure", "PaddleJob": "OnFailure", "TFJob": "Never", "XGBoostJob": "Never"}
_OPERATOR: Final = ("pytorch", "xgboost")


def _rejoins(role: Role, bundle: Bundle) -> bool:
    found = torch_launch(role.pod, bundle)
    return found is not None and rejoins(found[1], found[0], bundle)


def _meets_anew(role: Role, bundle: Bundle) -> bool:
    found = torch_launch(role.pod, bundle)
    return found is not None and meets_anew(found[1], found[0], bundle)


def _without_nccl(workload: Workload, role: Role) -> bool:
    """Whether the ranks talk by gloo or MPI: connections break, so that all fail, are started again and meet anew."""
    words = " ".join(node.text for each in role.pod.containers for node in each.argv)
    told = " ".join(node.text for each in role.pod.containers for node in each.node["env"].walk())
    other = re.search(r"gloo|backend[= ]mpi", words) is not None
    return "nccl" not in words and (other or (workload.gpus == 0 and "nccl" not in told.lower()))


def _in_place(workload: Workload) -> bool:
    """Whether all ranks begin anew though one pod does: JobSet restarts their containers, which asks for a backoffLimit
    that is never reached; or argosy restarts the ranks, and the new pod stands by.
    """
    spec = workload.spec.at("template.spec") or workload.spec
    spares = workload.document.root.at("metadata.annotations")[SPARES_ANNOTATION]
    return bool(spares) or spec.at("failurePolicy.restartStrategy").text == "InPlaceRestart"


@rule("RESTART001", Level.WARNING, on=Workload)
def backoff(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Job replaces its failed pods one by one."""
    if workload.family not in ("job", "jobset", "trainer") or not together(workload, bundle) or _in_place(workload):
        return
    for role in workload.roles:
        limit = role.job["backoffLimit"]
        if not role.job or role.job["backoffLimitPerIndex"] or role.launcher or _rejoins(role, bundle):
            continue
        if alone(workload, role):
            continue
        if limit.open or (limit and not 0 < (limit.number or 0) < 1000):  # thousands are meant
            continue
        what = f"backoffLimit: {limit.text}" if limit else "backoffLimit is not written, which means 6"
        yield Problem(
            limit,
            f"{what}: a pod of the gang that fails is started again alone, and the ranks of the others wait for it "
            "until NCCL's timeout",
            "write backoffLimit: 0 and restart the whole gang: failurePolicy.maxRestarts of a JobSet, or a retry "
            "around the Job",
        )


@rule("RESTART002", Level.WARNING, on=Workload)
def replica_policy(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The Training Operator restarts the pod that failed and no other."""
    if workload.family not in _OPERATOR or not workload.gang or workload.spec["elasticPolicy"]:
        return
    for role in workload.roles:
        policy = role.node["restartPolicy"]  # the template's own is overwritten: RESTART039
        word = policy.text or _DEFAULTS.get(workload.document.kind, "")
        if word not in ("OnFailure", "Always") or policy.open or _rejoins(role, bundle):
            continue
        written = f"restartPolicy: {word}" if policy else f"no restartPolicy, which means {word}"
        yield Problem(
            policy,
            f"{role.name}: {written}: the operator starts the failed pod again and no other, and the ranks that were "
            "left wait for it until NCCL's timeout",
            "write restartPolicy: Never and start the whole job again, or use elasticPolicy, or a JobSet",
            level=Level.NOTE if _without_nccl(workload, role) else None,
        )


@rule("RESTART003", Level.WARNING, on=Workload)
def exit_code_policy(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """ExitCode restarts from 128 on, and torchrun exits with 1."""
    for role in workload.roles:
        if role.restart_policy.text == "ExitCode":
            found = torch_launch(role.pod, bundle)
            if found is not None:
                yield Problem(
                    role.restart_policy,
                    f"{role.name}: ExitCode restarts a pod that exits with 128 or more; {found[1].program} exits "
                    "with 1 whatever became of its ranks, so every failure is for good",
                    "write restartPolicy: Never and restart the whole job, or start the ranks by something that keeps "
                    "their exit code",
                )


@rule("RESTART004", Level.WARNING, on=Workload)
def in_place(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """OnFailure is the kubelet's: it starts the container again in its pod, alone."""
    default, whose = ("OnFailure", "JobSet makes") if workload.family in ("jobset", "trainer") else ("", "")
    if workload.family == "volcano":
        default, whose = "Always", "Kubernetes makes"
    if workload.family not in ("job", "jobset", "trainer", "volcano") or not together(workload, bundle):
        return
    if _in_place(workload):
        return

    def again(role: Role) -> bool:
        return (role.restart_policy.text or default) in ("OnFailure", "Always")

    # The other agents of a dynamic rendezvous fail with their ranks, are started again too, and meet there.
    met = all(again(each) and _meets_anew(each, bundle) for each in workload.roles)
    for role in workload.roles:
        policy = role.restart_policy
        if workload.document.kind == "TrainJob" or policy.open or _rejoins(role, bundle) or alone(workload, role):
            continue
        if any(each.node["restartPolicy"] for each in role.pod.containers):  # a container has rules of its own
            continue
        if not again(role) or (policy.text == "Always" and role.job):
            continue
        written = f"restartPolicy: {policy.text}" if policy else f"no restartPolicy, which {whose} {default}"
        yield Problem(
            policy,
            f"{written}: the kubelet starts the failed container again alone, and the rest of the gang waits for it",
            "write restartPolicy: Never, so that the failure of one pod is the failure of the gang",
            # A Job counts the restarts of containers, so that its backoffLimit ends them: of that RESTART001 speaks.
            level=Level.NOTE if role.job or met else None,
        )


def _default(workload: Workload, role: Role) -> str:
    """What the operator writes; https://github.com/kubeflow/mpi-operator pkg/apis/kubeflow/v2beta1/constants.go."""
    if workload.family == "mpi":
        return "OnFailure" if role.name == "Launcher" else "Never"
    return _DEFAULTS.get(workload.document.kind, "the operator's default")


@rule("RESTART039", Level.NOTE, on=Workload)
def overwritten(workload: Workload) -> Iterator[Problem]:
    """The operator writes the replica's policy over the template's."""
    if workload.document.group != "kubeflow.org":
        return
    for role in workload.roles:
        own, replicas = role.template.at("spec.restartPolicy"), role.node["restartPolicy"]
        means = replicas.text or _default(workload, role)
        if own and own.text != means:
            yield Problem(
                own,
                f"{role.name}: restartPolicy: {own.text} in the pod template is overwritten by the replica's, {means}",
                "write restartPolicy beside replicas and template",
            )
