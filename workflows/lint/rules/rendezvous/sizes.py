"""How many nodes a launcher waits for, and how many pods there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.arguments import arguments
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launch import Given, Launch
from argosy.workflows.manifests.ranks import holds_only
from argosy.workflows.manifests.workload import Workload
from argosy.workflows.manifests.world import pods_of


@rule("REND040", Level.ERROR, on=Workload)
def nodes(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """The number of nodes is not the number of pods."""
    for each in bundle.launches(workload):
        told = each.nodes
        pods = pods_of(each, workload, bundle)
        if told is None or pods is None or pods < 1:
            continue
        given, least, most = told
        name = "--num-machines" if each.program == "accelerate" else "--nnodes"
        idle = [role for role in workload.roles if role.replicas and holds_only(role, bundle)]
        if least > pods:
            yield Problem(
                given.node,
                f"{name} {given.value} waits for {least} pods, and there {'is' if pods == 1 else 'are'} {pods}: "
                + _why(each, least),
                f"write {pods}, or make {least} pods",
                level=Level.WARNING
                if pods == 1 and workload.family in ("job", "other")
                else None,  # each pod its own Job
                inside=given.inside,
            )
        elif idle and least > pods - sum(role.replicas or 0 for role in idle):
            message = f"{name} {given.value} waits for {least} pods, and {idle[0].name or 'one of them'} starts no rank"
            remedy = "start the launcher there too"
            yield Problem(given.node, message, remedy, level=Level.WARNING, inside=given.inside)
        elif pods > most > 1 and not _gang_per_job(each, most):
            yield Problem(
                given.node,
                f"{name} {given.value} takes {most} of the {pods} pods: the others fail or wait for ever",
                f"write {pods}, or make {most} pods",
                inside=given.inside,
            )


def _gang_per_job(launch: Launch, most: int) -> bool:
    """Whether each Job of a JobSet's replicated job may be a gang of its own."""
    jobs = launch.role.node["replicas"].number or 1
    return launch.workload.family == "jobset" and jobs > 1 and most == launch.role.completions


def _why(launch: Launch, least: int) -> str:
    parallel = launch.role.job["parallelism"].number
    if launch.role.completions == least and parallel is not None and parallel < least:
        return f"parallelism {parallel} starts the others only when these have ended"
    return "the rendezvous never completes"


@rule("REND041", Level.ERROR, on=Workload)
def elastic(workload: Workload) -> Iterator[Problem]:
    """An elastic policy that the replicas do not fit."""
    policy = workload.document.spec["elasticPolicy"] if workload.document.kind == "PyTorchJob" else None
    if not policy:
        return
    least, most = policy["minReplicas"].number, policy["maxReplicas"].number
    workers = workload.total
    # With metrics an autoscaler sets the number; who is too many waits, and the others train.
    level = Level.WARNING if policy["metrics"] else None
    if least is not None and most is not None and least > most:
        yield Problem(policy["minReplicas"], f"minReplicas {least} is more than maxReplicas {most}", "swap them")
    elif least is not None and workers is not None and least > workers:
        yield Problem(
            policy["minReplicas"],
            f"minReplicas {least} is more than the {workers} replicas: the rendezvous never completes",
            f"write {workers} or less, or make {least} replicas",
            level=level,
        )
    elif most is not None and workers is not None and workers > most:
        yield Problem(
            policy["maxReplicas"],
            f"there are {workers} replicas and maxReplicas lets {most} of them in",
            f"write {workers}, or make {most} replicas",
            level=Level.WARNING,
        )


@rule("REND042", Level.ERROR, on=Workload)
def tf_config(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``TF_CONFIG`` written by hand."""
    for each in bundle.launches(workload):
        given = each.variable("TF_CONFIG")
        if given is None or given.how != "env" or not given.written or workload.document.kind == "TFJob":
            continue
        message = _wrong_config(each, given)
        if message:
            yield Problem(
                given.node,
                message,
                "give each pod its own task.index, and the cluster all of its workers",
                inside=given.inside,
            )


def _wrong_config(launch: Launch, given: Given) -> str:
    if any(mark in given.written for mark in ("$(", "{{", "${", "<", "...")):
        return ""
    try:
        config = json.loads(given.written)
    except (ValueError, RecursionError):
        return "TF_CONFIG is not JSON, and TensorFlow refuses it"
    task, cluster = (config.get(key) if isinstance(config, dict) else None for key in ("task", "cluster"))
    replicas = launch.role.replicas
    workers = _workers(cluster)
    if isinstance(task, dict) and isinstance(task.get("index"), int) and replicas is not None and replicas > 1:
        return f"all {replicas} pods say that they are task {task['index']}"
    if workers is not None and replicas is not None and replicas > 1 and replicas > workers:
        return f"the cluster of TF_CONFIG has {workers} workers, and there are {replicas} pods"
    return ""


def _workers(cluster: Any) -> int | None:
    if not isinstance(cluster, dict):
        return None
    return sum(len(cluster[key]) for key in ("chief", "master", "worker") if isinstance(cluster.get(key), list))


@rule("REND043", Level.ERROR, on=Workload)
def world_size(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``WORLD_SIZE`` written by hand that no count of pods or GPUs makes."""
    if workload.family not in ("job", "jobset", "volcano", "other"):
        return
    for each in bundle.launches(workload):
        given, pods = each.variable("WORLD_SIZE"), pods_of(each, workload, bundle)
        if given is None or given.number is None or pods is None or each.program != "python":
            continue
        if any(name in ("rank", "global-rank") and value.isdecimal() for name, value in arguments(each.process)):
            continue  # a script that gives out ranks by hand starts as many in a pod as it likes
        asked, done = each.role.job["parallelism"].number, each.role.completions
        if asked is not None and done is not None and asked > done and each.role.job["completions"]:
            yield Problem(
                each.role.job["completions"],
                f"completions: {done} with parallelism: {asked}: a Job runs no more pods than it has completions left, "
                f"so {done} of WORLD_SIZE {given.number} ranks run and wait for the others",
                f"write completions: {asked} and completionMode: Indexed",
            )
            continue
        if pods < 2:
            continue
        if given.number in (pods, pods * (each.container.gpus or 1)):
            continue
        yield Problem(
            given.node,
            f"WORLD_SIZE {given.number} and {pods} pods"
            + (f" of {each.container.gpus} GPUs" if each.container.gpus else "")
            + ": the ranks wait for others that do not come, or are turned away",
            f"write {pods * (each.container.gpus or 1)}, the ranks of all pods",
            level=Level.WARNING,  # other objects may hold the others, and a program start several in a pod
            inside=given.inside,
        )
