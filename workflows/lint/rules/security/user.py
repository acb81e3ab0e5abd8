"""What a container may become."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.pod import Container


@rule("SEC008", Level.ERROR, on=Container)
def no_escalation_and_yet(container: Container) -> Iterator[Problem]:
    """The API refuses to forbid what it has just been asked to grant."""
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
