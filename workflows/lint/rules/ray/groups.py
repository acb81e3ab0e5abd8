"""Groups of Ray's workers: how many there are, and what they tell Ray of themselves."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.pod import GPU_RESOURCES, Container
from argosy.workflows.manifests.workload import Workload


@rule("RAY001", Level.WARNING, on=Workload)
def bounds(workload: Workload) -> Iterator[Problem]:
    """``replicas`` outside of ``minReplicas`` and ``maxReplicas``."""
    for role in workload.roles if workload.family == "ray" else ():
        least, most, given = (role.node[key] for key in ("minReplicas", "maxReplicas", "replicas"))
        low, high, number = least.number, most.number, given.number
        if low is not None and high is not None and low > high:
            message = f"minReplicas {low} is above maxReplicas {high}, which KubeRay refuses"
            yield Problem(least, message, f"write maxReplicas: {low} or more", level=Level.ERROR)
        elif number is not None and low is not None and number < low:
            yield Problem(given, f"{number} replicas and minReplicas {low}: KubeRay makes {low}", f"write {low}")
        elif number is not None and high is not None and number > high:
            yield Problem(given, f"{number} replicas and maxReplicas {high}: KubeRay makes {high}", f"write {high}")


@rule("RAY002", Level.WARNING, on=Workload)
def gpus(workload: Workload) -> Iterator[Problem]:
    """``num-gpus`` against the GPUs of Ray's container, which is the first one."""
    for role in workload.roles if workload.family == "ray" else ():
        node = role.node.at("rayStartParams")["num-gpus"]
        containers = role.pod.containers
        held = containers[0].gpus if containers else None
        told = node.number if node.number is not None else int(node.text) if node.text.isdigit() else None
        if told is None or held is None or told == held or _other_devices(containers[0]):
            continue
        more = told > held
        yield Problem(
            node,
            f"num-gpus {told} and {held} GPUs in the limits of {containers[0].name}: "
            + ("Ray starts tasks on GPUs that are not there" if more else "Ray leaves the rest idle"),
            "leave num-gpus out: KubeRay takes it from the limits",
            # Beside numbers of the author's own it may be one, too.
            level=Level.NOTE if not held and role.node.at("rayStartParams")["resources"] else None,
        )


def _other_devices(container: Container) -> bool:
    """Whether it gets devices of a kind that is not counted here: a claim, another vendor's resource."""
    names = {**container.requests.entries, **container.limits.entries}
    strange = [name for name in names if "/" in name and not name.startswith(GPU_RESOURCES)]
    return bool(container.node.at("resources.claims").items) or bool(set(strange) - set(container.rdma_resources))


@rule("RAY005", Level.ERROR, on=Workload)
def ports(workload: Workload) -> Iterator[Problem]:
    """The head's servers each have a port of their own; the client server's is 10001 unless it is told another."""
    params = workload.roles[0].node["rayStartParams"] if workload.family == "ray" and workload.roles else None
    if params is None:
        return
    client = params["ray-client-server-port"].text or "10001"
    for key in ("port", "dashboard-port", "metrics-export-port"):
        if params[key].text == client:
            yield Problem(
                params[key],
                f"{key}: {client} is the port of the Ray client server too: ray start refuses it",
                "write port: '6379', or leave it out" if key == "port" else "leave it out",
            )


@rule("RAY003", Level.ERROR, on=Workload)
def cluster(workload: Workload) -> Iterator[Problem]:
    """A RayJob that names no cluster and brings none, or says nothing to run."""
    spec = workload.spec
    if workload.document.kind != "RayJob":
        return
    submitter = spec.at("submitterPodTemplate.spec")["containers"]
    told = spec["entrypoint"] or any(each["command"] or each["args"] for each in submitter)
    if spec and not told and spec["submissionMode"].text != "InteractiveMode":
        message = "a RayJob without an entrypoint: ray job submit gets no command and fails"
        yield Problem(spec["entrypoint"], message, "write entrypoint, or submissionMode: InteractiveMode")
    if spec["rayClusterSpec"] or spec["rayClusterSpec"].open:
        return
    selector = spec["clusterSelector"]
    if not selector.entries and not selector.open:
        yield Problem(
            selector,
            "a RayJob without rayClusterSpec and without a label in clusterSelector has no cluster, and is refused",
            "write rayClusterSpec, or clusterSelector: {ray.io/cluster: NAME}",
        )
