"""Who a container runs as."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.workload import Workload


@rule("SEC005", Level.WARNING, on=Pod)
def root(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """Root by the manifest's own word."""
    workload = bundle.workload(pod.document)
    contexts = [pod.security, *(each.security for each in pod.all_containers)]
    for context in contexts:
        node = context["runAsUser"] if context["runAsUser"].number == 0 else context["runAsNonRoot"]
        if node.number == 0 or node.flag is False:
            yield Problem(
                node,
                f"{node.key}: {node.text}, so the container is root, and root of the node if it gets out",
                "set runAsUser to the image's own user and runAsNonRoot: true; volumes follow with fsGroup",
                level=Level.NOTE if workload is not None and workload.family == "mpi" else Level.WARNING,
            )


@rule("SEC006", Level.ERROR, on=Container)
def root_and_not(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``runAsNonRoot`` with user 0 never starts."""
    del bundle
    user = container.security["runAsUser"] or container.pod.security["runAsUser"]
    flag = container.security["runAsNonRoot"] or container.pod.security["runAsNonRoot"]
    if user.number == 0 and flag.flag is True:
        yield Problem(
            user,
            "runAsUser: 0 with runAsNonRoot: true: the kubelet refuses to start the container",
            "set runAsUser to a user that is not root, or drop runAsNonRoot",
        )


@rule("SEC007", Level.WARNING, on=Container)
def escalation(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Programs that become root when they are started."""
    del bundle
    node = container.security["allowPrivilegeEscalation"]
    if node.flag is True and not container.privileged:
        yield Problem(
            node,
            "allowPrivilegeEscalation: true lets a set-user-ID program in the image become root",
            "set it to false; nothing that trains needs it",
        )


@rule("SEC008", Level.ERROR, on=Container)
def no_escalation_and_yet(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """The API refuses to forbid what it has just been asked to grant."""
    del bundle
    node = container.security["allowPrivilegeEscalation"]
    granted = "privileged: true" if container.privileged else ""
    if not granted and "SYS_ADMIN" in container.capabilities:
        granted = "the capability SYS_ADMIN"
    if node.flag is False and granted:
        yield Problem(
            node,
            f"allowPrivilegeEscalation: false beside {granted}, which the API refuses",
            f"drop {granted}, which says the opposite",
        )


@rule("SEC009", Level.NOTE, on=Workload)
def token(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Every pod gets a token for the API unless it says that it wants none."""
    del bundle
    if workload.family in ("argo", "ray", "other"):  # these speak to the API, or often do
        return
    for role in workload.roles:
        spec = role.pod.spec
        if spec["containers"] and not spec["serviceAccountName"] and spec["automountServiceAccountToken"].flag is None:
            if workload.document.kind == "TrainJob":
                return
            yield Problem(
                spec["containers"],
                "the pods mount a token of the default service account, which code in them can use",
                "set automountServiceAccountToken: false; a training asks the API for nothing",
            )
            return
