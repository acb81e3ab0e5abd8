"""What a run names: secrets, volumes, queue, priority, images."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.kinds import (
    CLAIM,
    CLUSTER_QUEUE,
    KAI_QUEUE,
    LOCAL_QUEUE,
    NETWORK_POLICY,
    NODE,
    PRIORITY_CLASS,
    SECRET,
    STORAGE_CLASS,
    VOLCANO_QUEUE,
    WORKLOAD_PRIORITY_CLASS,
    Kind,
)
from argosy.steps.contract.errors import StepError
from argosy.workflows.cluster.doctor.capacity import beyond_capability, beyond_queue
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs

NEEDED = (
    "allow egress of the run's pods to DNS, the API server, the store and one another: docs/your-cluster.md, "
    "Network policies"
)
FOUND_OUT = "only a pod finds out whether its node can pull an image; a run that cannot says image_pull and why"


def secrets(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether they are there; what is in them is not asked for."""
    for name in needs.secrets:
        remedy = f"kubectl create secret generic {name} -n {api.namespace} --from-literal=NAME=VALUE"
        yield from _named(api, SECRET, name, f"secret {name}", remedy)
    for name in needs.pull_secrets:
        remedy = f"kubectl create secret docker-registry {name} -n {api.namespace} --docker-server=REGISTRY …"
        yield from _named(api, SECRET, name, f"pull secret {name}", remedy)


def priority_classes(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether they are there."""
    for name in needs.priority_classes:
        remedy = f"kubectl create priorityclass {name} --value=1000"
        yield from _named(api, PRIORITY_CLASS, name, f"priority class {name}", remedy)


def queue(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether the LocalQueue and the priority in it, KAI's Queue or Volcano's, are there."""
    if needs.queue:
        remedy = (
            "a LocalQueue of that name in the namespace, pointing to a ClusterQueue with quota for the gang: "
            "https://kueue.sigs.k8s.io/docs/concepts/local_queue/"
        )
        what, whole = f"queue {needs.queue}", partial(_cluster_queue, api, needs)
        yield from _named(api, LOCAL_QUEUE, needs.queue, what, remedy, whole)
    if needs.queue_priority:
        what = f"queue priority {needs.queue_priority}"
        remedy = "a WorkloadPriorityClass of that name: it has a value"
        yield from _named(api, WORKLOAD_PRIORITY_CLASS, needs.queue_priority, what, remedy)
    if needs.kai_queue:
        remedy = "a Queue of that name: https://github.com/kai-scheduler/KAI-Scheduler/tree/main/docs/queues"
        yield from _named(api, KAI_QUEUE, needs.kai_queue, f"KAI queue {needs.kai_queue}", remedy)
    if needs.volcano_queue:
        what, whole = f"Volcano queue {needs.volcano_queue}", partial(_volcano_queue, api, needs)
        remedy = "gang.queue names one that is there, or a Queue of that name: https://volcano.sh/en/docs/queue/"
        yield from _named(api, VOLCANO_QUEUE, needs.volcano_queue, what, remedy, whole)


def _volcano_queue(api: Api, needs: Needs) -> Check | None:
    """Pods of a queue that is closed or too small wait without a word of why."""
    what, found = f"Volcano queue {needs.volcano_queue}", api.get(VOLCANO_QUEUE, needs.volcano_queue) or {}
    state = (found.get("status") or {}).get("state", "")
    if state in ("Closed", "Closing"):
        remedy = f"vcctl queue operate --name {needs.volcano_queue} --action open"
        return Check("missing", what, f"{state}: it starts nothing", remedy)
    lacking = beyond_capability(found.get("spec") or {}, needs)
    if not lacking:
        return None
    return Check("missing", what, f"never enough: {'; '.join(lacking)}", "ask for less, or for more in spec.capability")


def _cluster_queue(api: Api, needs: Needs) -> Check | None:
    """Whether the queue's ClusterQueue starts anything, and has enough in all; what its cohort lends is not known."""
    what, found = f"queue {needs.queue}", api.get(LOCAL_QUEUE, needs.queue) or {}
    where = (found.get("spec") or {}).get("clusterQueue", "")
    for each in (found.get("status") or {}).get("conditions") or []:
        if each["type"] == "Active" and each["status"] == "False":
            said = f"{each.get('reason', '')}: {each.get('message', '')}"
            if (found.get("spec") or {}).get("stopPolicy", "None") != "None":
                remedy = f"its spec.stopPolicy: None, by whoever stopped it: kubectl edit localqueue {needs.queue}"
                return Check("missing", what, f"somebody stopped it: {said}", f"{remedy} -n {api.namespace}")
            remedy = f"a ClusterQueue {where} that is Active: kubectl get clusterqueue"
            return Check("missing", what, f"ClusterQueue {where} starts nothing: {said}", remedy)
    try:
        spec = (api.get(CLUSTER_QUEUE, where) or {}).get("spec") or {}
    except (StepError, ApiError):
        return None  # the whole cluster's: not everybody may read it
    lacking = [] if "cohortName" in spec else beyond_queue(spec, needs)
    if not lacking:
        return None
    remedy = f"ask for less, or more for one of its flavors: kubectl get clusterqueue {where} -o yaml"
    return Check("missing", what, f"ClusterQueue {where} never has enough: {'; '.join(lacking)}", remedy)


def network(api: Api, needs: Needs) -> Iterator[Check]:
    """Policies that take every pod's way out; whether others give the run back what it needs, no API says."""

    def look() -> Iterator[Check]:
        for each in api.list(NETWORK_POLICY)["items"]:
            spec = each.get("spec") or {}
            everybody = not any((spec.get("podSelector") or {}).values())
            everywhere = any(not rule.get("to") and not rule.get("ports") for rule in spec.get("egress") or [])
            if everybody and "Egress" in spec.get("policyTypes", ()) and not everywhere:
                detail = "no pod may reach what no policy allows; may a run's reach what they must?"
                yield Check("unknown", f"network policy {each['metadata']['name']}", detail, NEEDED)

    if needs.nnodes:
        yield from asked("network policies", f"kubectl get networkpolicies -n {api.namespace}", look)


def claims(api: Api, needs: Needs) -> Iterator[Check]:
    """Whether each volume is there and can be mounted by every node."""
    for name in needs.claims:
        ask = f"kubectl get pvc {name} -n {api.namespace}"
        yield from asked(f"claim {name}", ask, partial(_claim, api, name))


def _claim(api: Api, name: str) -> Iterator[Check]:
    found = api.get(CLAIM, name)
    what = f"claim {name}"
    if found is None:
        remedy = f"argosy install -n {api.namespace} --claim 100Gi --storage-class CLASS --apply"
        yield Check("missing", what, f"not in namespace {api.namespace}; {_classes(api)}", remedy)
        return
    modes, phase = found["spec"].get("accessModes") or [], (found.get("status") or {}).get("phase", "")
    if "ReadWriteMany" not in modes and "ReadOnlyMany" not in modes:
        remedy = "a claim with accessModes: [ReadWriteMany]; argosy install --claim renders one"
        yield Check("missing", what, f"{', '.join(modes)}: the pods of a gang on several nodes cannot share it", remedy)
    elif phase == "Bound":
        yield Check("ok", what, f"{phase}, {', '.join(modes)}")
    elif not (wanted := found["spec"].get("storageClassName")) or _has_class(api, wanted) is False:
        lacks = f"there is no storage class {wanted}" if wanted else "it names no storage class, and no volume fits it"
        made = f"argosy install -n {api.namespace} --claim SIZE --storage-class CLASS --apply"
        remedy = f"a PersistentVolume for it; or kubectl delete pvc {name} -n {api.namespace} && {made}"
        yield Check("missing", what, f"{phase}: {lacks}; {_classes(api)}", remedy)
    else:
        remedy = f"kubectl describe pvc {name} -n {api.namespace}"
        yield Check("unknown", what, f"{phase}: it may be bound when the first pod wants it", remedy)


def _classes(api: Api) -> str:
    listed = _class_names(api)
    if listed is None:
        return "storage classes cannot be listed"
    return f"storage classes: {', '.join(listed)}" if listed else "the cluster has no storage class"


def _has_class(api: Api, name: str) -> bool | None:
    listed = _class_names(api)
    return None if listed is None else name in listed


def _class_names(api: Api) -> list[str] | None:
    try:
        return [each["metadata"]["name"] for each in api.list(STORAGE_CLASS)["items"]]
    except (StepError, ApiError):
        return None


def images(api: Api, needs: Needs) -> Iterator[Check]:
    """Which nodes have them already; whether a node can pull one, only a pod on it finds out."""

    def look() -> Iterator[Check]:
        held: list[set[str]] = []
        for node in api.list(NODE)["items"]:
            listed = (node.get("status") or {}).get("images") or []
            held.append({_plain(name) for each in listed for name in each.get("names") or []})
        for image in needs.images:
            here = sum(_plain(image) in names for names in held)
            what = f"image {image}"
            if here == len(held) and held:
                yield Check("ok", what, f"on all {len(held)} nodes")
            else:
                detail = f"on {here} of {len(held)} nodes (a node names 50 images at most); can the others pull it?"
                yield Check("unknown", what, detail, FOUND_OUT)

    yield from asked("images", FOUND_OUT, look)


def _plain(image: str) -> str:
    return image.removeprefix("docker.io/").removeprefix("library/")


def _named(
    api: Api, kind: Kind, name: str, what: str, remedy: str, whole: Callable[[], Check | None] | None = None
) -> Iterator[Check]:
    """``whole``: what is wrong with one that is there; without it nothing but its metadata is asked for."""

    def look() -> Iterator[Check]:
        try:
            found = api.metadata(kind, name)
        except ApiError as error:
            if error.status != 404:
                raise
            yield Check("missing", what, "not there", remedy)
            return
        wrong = whole() if whole else None
        yield wrong or Check("ok", what, f"there since {found['metadata']['creationTimestamp']}")

    yield from asked(what, f"kubectl get {kind.plural} {name} -n {api.namespace}", look)
