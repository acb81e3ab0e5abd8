"""Is the API there, in which version, and which kinds and controllers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.steps.cluster.api import Api, ApiAway, ApiError, ApiSilent
from argosy.steps.cluster.kinds import EVENT_BUS, EVENT_SOURCE, KAI_QUEUE, NAMESPACE, SENSOR, kind_of
from argosy.steps.contract.errors import StepError
from argosy.workflows.cluster.doctor.check import Check, asked
from argosy.workflows.cluster.doctor.needs import Needs
from argosy.workflows.cluster.installation import ENFORCE

OF_ARGO = ("workflows", "workflowtemplates", "workflowtaskresults")
_DEPLOYMENTS = "/apis/apps/v1/deployments?labelSelector="
_GROUPS: dict[str, tuple[str, str, str]] = {
    "Argo Workflows": ("argoproj.io", "app=workflow-controller", "https://argo-workflows.readthedocs.io/en/latest/"),
    "JobSet": ("jobset.x-k8s.io", "app.kubernetes.io/name=jobset", "https://jobset.sigs.k8s.io/docs/installation/"),
    "Training Operator": (
        "kubeflow.org/v1",
        "control-plane=kubeflow-training-operator",
        "https://www.kubeflow.org/docs/components/trainer/legacy-v1/installation/",
    ),
    "MPI Operator": (
        "kubeflow.org/v2beta1",
        "app.kubernetes.io/name=mpi-operator",
        "https://www.kubeflow.org/docs/components/trainer/legacy-v1/user-guides/mpi/",
    ),
    "Trainer": (
        "trainer.kubeflow.org",
        "app.kubernetes.io/name=trainer",
        "https://www.kubeflow.org/docs/components/trainer/operator-guides/installation/",
    ),
    "KubeRay": (
        "ray.io",
        "app.kubernetes.io/component=kuberay-operator",
        "https://docs.ray.io/en/latest/cluster/kubernetes/getting-started/kuberay-operator-installation.html",
    ),
    "Volcano": ("batch.volcano.sh", "app=volcano-controller", "https://volcano.sh/en/docs/installation/"),
    "Volcano's PodGroup": (
        "scheduling.volcano.sh",
        "app=volcano-scheduler",
        "https://volcano.sh/en/docs/installation/",
    ),
    "coscheduling": (
        "scheduling.x-k8s.io",
        "component=scheduler",
        "https://scheduler-plugins.sigs.k8s.io/docs/user-guide/installation/",
    ),
    "KAI": ("scheduling.run.ai", "app=kai-scheduler", "https://github.com/kai-scheduler/KAI-Scheduler"),
    "Kueue": ("kueue.x-k8s.io", "app.kubernetes.io/name=kueue", "https://kueue.sigs.k8s.io/docs/installation/"),
}
"""What: its API group (and version, where several share it), the label of its
controller's Deployment, where its installation is described."""

_OF_EVENTS = {kind.plural for kind in (EVENT_BUS, EVENT_SOURCE, SENSOR)}
_EVENTS = "https://argoproj.github.io/argo-events/installation/"
_NO_RUNTIMES = ("Argo Workflows", "Kueue", "Volcano's PodGroup", "coscheduling", "KAI")


def server(api: Api) -> Check:
    """Whether the API answers, and its version."""
    try:
        version = json.loads(api.text("/version"))["gitVersion"]
        api.read("/apis")  # the version is told to everybody
    except (ApiAway, ApiSilent, ValueError, KeyError) as error:
        remedy = "see that `kubectl version` answers; name another cluster with --context or --kubeconfig"
        return Check("missing", "API server", f"{api.server} does not answer: {error}", remedy)
    except (ApiError, StepError) as error:
        if " cannot get path " in str(error) and "system:anonymous" not in str(error):
            remedy = "kubectl create clusterrolebinding argosy-discovery --clusterrole=system:discovery --user=YOU"
            return Check("missing", "API server", f"{api.server} does not say what it serves: {error}", remedy)
        remedy = "log in again until `kubectl auth whoami` answers; name another user with --context or --kubeconfig"
        return Check("missing", "API server", f"{api.server} lets nobody in with these credentials: {error}", remedy)
    return Check("ok", "API server", f"Kubernetes {version} at {api.server}")


def namespace(api: Api) -> Iterator[Check]:
    """Whether it is there, and which pods it takes."""
    name = api.namespace

    def look() -> Iterator[Check]:
        found = api.get(NAMESPACE, name)
        if found is None:
            yield Check("missing", "namespace", name, f"argosy install -n {name} --create-namespace --apply")
            return
        level = (found["metadata"].get("labels") or {}).get(ENFORCE, "privileged")
        yield Check("ok", "namespace", f"{name}, Pod Security {level}")

    yield from asked("namespace", f"kubectl get namespace {name}", look)


def kinds(api: Api, needs: Needs) -> Iterator[Check]:
    """Argo's kinds, and those of the gang: who makes pods, PodGroup, Kueue's."""
    served = {
        group["name"]: [version["version"] for version in group["versions"]] for group in api.read("/apis")["groups"]
    }
    versions = {str(each["apiVersion"]) for each in needs.gang} | {"argoproj.io/v1alpha1"}
    versions |= {"kueue.x-k8s.io/v1beta2"} if needs.queue else set()
    versions |= {KAI_QUEUE.api_version} if needs.kai_queue else set()
    wanted = versions | {version.partition("/")[0] for version in versions}
    for what, (where, label, page) in _GROUPS.items():
        group, _, version = where.partition("/")
        if group in served and version in ("", *served[group]):
            yield _installed(api, what, group, served[group], label, page)
        elif where in wanted:
            other = "" if what in _NO_RUNTIMES else '; or write gang.runtime = "job", which needs none'
            yield Check("missing", what, f"the cluster does not serve {where}", f"install it: {page}{other}")
    if "scheduling.k8s.io" in wanted:
        if "v1beta1" in served.get("scheduling.k8s.io", []):
            yield Check("ok", "PodGroup", "scheduling.k8s.io/v1beta1")
        else:
            gate = "--feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true"
            remedy = f"Kubernetes 1.37, its API server and scheduler with {gate}; or another gang.placement"
            yield Check("missing", "PodGroup", "the cluster does not serve scheduling.k8s.io/v1beta1", remedy)


def trigger(api: Api, documents: Sequence[Mapping[str, Any]]) -> Iterator[Check]:
    """The kinds of what starts the run by itself, Argo's own and those of Argo Events."""

    def look() -> Iterator[Check]:
        served = {each["name"] for each in api.read("/apis/argoproj.io/v1alpha1")["resources"]}
        of_argo = [each for each in documents if each["apiVersion"].startswith("argoproj.io/")]
        lacking = {kind_of(each).plural for each in of_argo} - served
        for what, kinds in (("trigger", lacking - _OF_EVENTS), ("Argo Events", lacking & _OF_EVENTS)):
            if kinds:
                page = _EVENTS if what == "Argo Events" else _GROUPS["Argo Workflows"][2]
                detail = f"its CRDs {', '.join(sorted(kinds))} are not there"
                yield Check("missing", what, detail, f"install it whole: {page}")
        if not lacking:
            yield Check("ok", "trigger", "the cluster serves all kinds that start this run")

    if documents:
        yield from asked("trigger", "kubectl api-resources --api-group=argoproj.io", look)


def _installed(api: Api, what: str, group: str, versions: list[str], label: str, page: str) -> Check:
    if group == "argoproj.io":
        resources = {each["name"] for each in api.read(f"/apis/{group}/v1alpha1")["resources"]}
        if lacking := [name for name in OF_ARGO if name not in resources]:
            return Check("missing", what, f"its CRDs {', '.join(lacking)} are not there", f"install it whole: {page}")
    return Check("ok", what, f"{group} {', '.join(versions)}; {_controller(api, label)}")


def _controller(api: Api, label: str) -> str:
    try:
        found: list[dict[str, Any]] = api.read(_DEPLOYMENTS + label.replace("=", "%3D").replace("/", "%2F"))["items"]
    except Exception as error:
        return f"which controller runs cannot be seen ({' '.join(str(error).split())[:120]})"
    for each in found:
        images = [container["image"] for container in each["spec"]["template"]["spec"]["containers"]]
        ready = (each.get("status") or {}).get("readyReplicas", 0)
        where = f"{each['metadata']['namespace']}/{each['metadata']['name']}"
        return f"controller {images[0].split('@')[0].rsplit('/', 1)[-1]}, {ready} ready in {where}"
    return "no Deployment of its controller is seen: its version is not known"
