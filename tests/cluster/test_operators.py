"""JobSet, Kueue and native PodGroups are there and do their work; what argosy renders for them is tested elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.cluster import Cluster
from tests.cluster.contention import KUEUE, local_queue
from tests.cluster.progress import wait_for
from tests.cluster.test_switches import phase, pod

JOBSET = "jobset.x-k8s.io/v1alpha2"
WAITS = "import pathlib, time\nwhile not pathlib.Path('/tmp/go').exists(): time.sleep(0.2)"


@pytest.fixture
def queue(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A LocalQueue with room for two pods of one processor."""
    with local_queue(cluster, namespace, {"cpu": "2"}) as name:
        yield name


def jobset(name: str, queue: str) -> dict[str, Any]:
    """Two pods of one processor each, that wait for a file."""
    spec = pod(name, WAITS)["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    job = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", "backoffLimit": 0,
           "template": {"spec": spec}}  # fmt: skip
    jobs = [{"name": "node", "replicas": 1, "template": {"spec": job}}]
    metadata = {"name": name, "labels": {"kueue.x-k8s.io/queue-name": queue}}
    return {"apiVersion": JOBSET, "kind": "JobSet", "metadata": metadata, "spec": {"replicatedJobs": jobs}}


def test_kueue_lets_the_second_gang_wait_whole(cluster: Cluster, namespace: str, queue: str) -> None:
    def running(name: str) -> list[str]:
        pods = cluster.api.list("v1", "Pod", namespace, f"jobset.sigs.k8s.io/jobset-name={name}")
        return [found["metadata"]["name"] for found in pods if found["status"]["phase"] == "Running"]

    cluster.api.create(jobset("first", queue), namespace)
    wait_for("the first gang to run", lambda: len(running("first")) == 2, 120, every=0.5)
    cluster.api.create(jobset("second", queue), namespace)
    known = partial(cluster.api.list, KUEUE, "Workload", namespace)
    wait_for("Kueue to know the second", lambda: len(known()) == 2, 60, every=0.5)
    second = cluster.api.get(JOBSET, "JobSet", "second", namespace)
    assert second["spec"]["suspend"] is True
    assert running("second") == []
    for name in running("first"):
        cluster.kubectl("exec", "-n", namespace, name, "--", "touch", "/tmp/go")
    wait_for("the second gang to run", lambda: len(running("second")) == 2, 120, every=0.5)


def test_a_pod_group_starts_together_or_not_at_all(cluster: Cluster, namespace: str) -> None:
    policy = {"gang": {"minCount": 2}}
    group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "gang"},
             "spec": {"schedulingPolicy": policy}}  # fmt: skip
    cluster.api.create(group, namespace)

    def member(name: str) -> dict[str, Any]:
        return pod(name, "", schedulingGroup={"podGroupName": "gang"})

    def ended(name: str) -> None:
        wait_for(f"{name} to end", lambda: phase(cluster, namespace, name) == "Succeeded", 60, every=0.5)

    cluster.api.create(member("one"), namespace)
    cluster.api.create(pod("alone", ""), namespace)
    ended("alone")  # the scheduler is awake, and has passed the first of the gang by
    assert phase(cluster, namespace, "one") == "Pending"
    assert "nodeName" not in cluster.api.get("v1", "Pod", "one", namespace)["spec"]
    cluster.api.create(member("two"), namespace)
    ended("one")
    ended("two")
