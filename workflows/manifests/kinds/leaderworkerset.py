"""``LeaderWorkerSet``: groups of one leader and its workers."""

from __future__ import annotations

from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.kinds.core import number
from argosy.workflows.manifests.pod import Role
from argosy.workflows.manifests.workload import Workload


def leader_worker_set(document: Document) -> Workload:
    """``leaderworkerset.x-k8s.io`` LeaderWorkerSet: the pods of one group, for each of ``replicas`` groups is one run.

    Without a leaderTemplate the leader is made from the workerTemplate.
    https://lws.sigs.k8s.io/docs/reference/leaderworkerset.v1/
    """
    held = document.spec["leaderWorkerTemplate"]
    size, leader, worker = number(held["size"], 1), held["leaderTemplate"], held["workerTemplate"]
    counts = [("leader", leader, 1)] if leader else []
    rest = size if size is None or not leader else max(size - 1, 0)
    roles = [
        Role(name, template, count, held["size"], template, template.at("spec.restartPolicy"), document)
        for name, template, count in [*counts, ("worker", worker, rest)]
    ]
    return Workload(document, "other", roles, document.spec)
