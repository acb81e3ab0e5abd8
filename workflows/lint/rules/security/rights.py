"""Rights in the cluster of the accounts that pods run under."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.document import Document
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule


@rule("SEC022", Level.WARNING, on=Document)
def everything(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A role that may do anything."""
    del bundle
    if document.group != "rbac.authorization.k8s.io" or document.kind not in ("Role", "ClusterRole"):
        return
    for item in document.root["rules"]:
        wild = [part for part in ("verbs", "resources") if "*" in [each.text for each in item[part]]]
        if wild:
            yield Problem(
                item[wild[0]],
                f"the role {document.name!r} allows every {' on every '.join(each.rstrip('s') for each in wild)}",
                "list what is used: a launcher needs create, get, list, watch and delete on its own kind and on pods",
            )
            return


@rule("SEC023", Level.WARNING, on=Document)
def cluster_admin(document: Document, bundle: Bundle) -> Iterator[Problem]:
    """A pod's account that owns the cluster."""
    del bundle
    if document.group != "rbac.authorization.k8s.io" or not document.kind.endswith("RoleBinding"):
        return
    role = document.root.at("roleRef.name")
    accounts = [each["name"].text for each in document.root["subjects"] if each["kind"].text == "ServiceAccount"]
    if role.text in ("cluster-admin", "admin") and accounts:
        yield Problem(
            role,
            f"the service account {accounts[0]!r} is {role.text}: code in its pods may read every Secret and start "
            "pods with any right",
            "bind it to a Role with the verbs that it uses",
        )
