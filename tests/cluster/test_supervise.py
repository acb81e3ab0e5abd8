"""``argosy supervise`` of JobSets and Jobs with nothing of ours in their pods, at a terminal and as a step of Argo."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.workflows.cluster.installation import RULES
from tests.cluster.cluster import Cluster
from tests.cluster.images import VERSION
from tests.cluster.progress import wait_for
from tests.cluster.training import ARGOSY

MEET = """
import os, socket, sys, time
sys.stdout = sys.stderr  # of two streams containerd may take the later line first
index, attempt, address = int(os.environ["JOB_COMPLETION_INDEX"]), os.environ["ATTEMPT"], os.environ["MASTER_ADDR"]
if index == 0:
    server = socket.create_server(("", 29500))
    server.accept()[0].sendall(b"hello")
else:
    for _ in range(300):
        try:
            print(socket.create_connection((address, 29500), 2).recv(5).decode(), "from", address, flush=True)
            break
        except OSError:
            time.sleep(0.2)
    else:
        sys.exit(f"never reached {address}")
print(f"index {index} attempt {attempt} on", os.environ["NODE"], flush=True)
"""
"""Two pods meet by a host name that the manifest's author wrote."""
BREAK = 'if index == 1: raise IndexError("shard 7 has no such row")\ntime.sleep(600)'
DEFECT = 'if index == 1 and attempt == "1": sys.exit("RuntimeError: CUDA error: uncorrectable ECC error encountered")'
CONTAINED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
    "automountServiceAccountToken": False,
}


def job(script: str, container: str, address: str, **pod: Any) -> dict[str, Any]:
    """An Indexed Job's spec of two pods that meet at ``address`` and run ``script``."""
    fields = {"NODE": "spec.nodeName", "ATTEMPT": "metadata.labels['argosy.dev/attempt']"}
    env: list[dict[str, Any]] = [{"name": k, "valueFrom": {"fieldRef": {"fieldPath": v}}} for k, v in fields.items()]
    main = {
        "name": container,
        "image": "docker.io/library/python:3.11-slim",
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", MEET + textwrap.dedent(script)],
        "env": [*env, {"name": "MASTER_ADDR", "value": address}],
        "securityContext": CONTAINED,
    }
    spec = {**RESTRICTED, "restartPolicy": "Never", "terminationGracePeriodSeconds": 2, "containers": [main], **pod}
    shape = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "backoffLimit": 4}
    return {**shape, "template": {"spec": spec}}


def job_set(script: str, container: str = "trainer") -> list[dict[str, Any]]:
    """Two pods of one replicated job."""
    jobs = [{"name": "node", "template": {"spec": job(script, container, "mine-node-0-0.mine")}}]
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "mine"}}
    return [{**kind, "spec": {"failurePolicy": {"maxRestarts": 3}, "replicatedJobs": jobs}}]


def indexed_job(script: str) -> list[dict[str, Any]]:
    """Two pods of a Job, and the headless Service that gives them names."""
    spec = {"clusterIP": "None", "selector": {"job-name": "theirs"}}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ranks"}, "spec": spec}
    pods = job(script, "trainer", "theirs-0.ranks", subdomain="ranks")
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "theirs"}, "spec": pods}, service]


class Supervised:
    """A running ``argosy supervise``."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, documents: list[dict[str, Any]]) -> None:
        (folder / "gang.yaml").write_text(yaml.safe_dump_all(documents))
        self._cluster, self._namespace, self._said = cluster, namespace, folder / "said"
        with self._said.open("w") as said:
            words = ["supervise", "gang.yaml", "-n", namespace, "--kubeconfig", str(cluster.kubeconfig)]
            environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self.process = subprocess.Popen([*ARGOSY, *words], cwd=folder, env=environment, stdout=said, stderr=said)

    def said(self) -> str:
        """Progress and logs, as they came."""
        return self._said.read_text()

    def until(self, text: str) -> None:
        """Wait for it to be said."""
        try:
            wait_for(f"{text!r}", lambda: text in self.said(), 120, every=0.2)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.said()}") from None

    def ended(self) -> int:
        """Its exit code; nothing of its gangs is left."""
        code = self.process.wait(180)
        kinds = "jobsets.jobset.x-k8s.io,jobs,services,pods"
        left = self._cluster.kubectl("get", kinds, "-n", self._namespace, "-o", "name").split()
        assert left == [], f"{left}\n{self.said()}"
        return code


@pytest.fixture
def started(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Any]:
    running: list[Supervised] = []

    def start(documents: list[dict[str, Any]]) -> Supervised:
        running.append(Supervised(cluster, namespace, tmp_path, documents))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.terminate()
            each.process.wait(60)


def test_an_exception_of_the_script_is_quoted_and_not_tried_again(started: Any) -> None:
    run = started(job_set(BREAK))
    assert run.ended() == 70, run.said()
    said = run.said()
    assert re.search(
        r"argosy: user_exception \(pod mine-\w+-a1-node-0-1-\w+ on node-.\): IndexError: shard 7 has", said
    )
    assert "failurePolicy.maxRestarts 3 -> 0" in said
    assert "node: backoffLimit 4 -> 0" in said
    assert re.search(r"\[node-0-1\] hello from mine-\w+-a1-node-0-0\.mine-\w+-a1\n", said), said
    assert "attempt 2" not in said


def test_a_deleted_pod_costs_a_new_gang_and_no_restart(cluster: Cluster, namespace: str, started: Any) -> None:
    run = started(indexed_job('time.sleep(600 if attempt == "1" else 0)'))
    run.until("index 1 attempt 1")
    pods = json.loads(cluster.kubectl("get", "pods", "-n", namespace, "-o", "json"))["items"]
    cluster.kubectl("delete", "pod", pods[0]["metadata"]["name"], "-n", namespace, "--wait=false")
    assert run.ended() == 0, run.said()
    said = run.said()
    assert "argosy: preempted_evicted" in said
    assert "argosy: restart: preempted: other pods" in said, said
    names = re.findall(r"attempt \d: Job (theirs-\w+-a\d), 2 pods", said)
    assert len({*names}) == 2
    assert f"[1] hello from {names[1]}-0.{names[1]}" in said, said


def test_a_node_with_a_defect_gets_no_pod_of_the_next_gang(started: Any) -> None:
    run = started(job_set(DEFECT))
    assert run.ended() == 0, run.said()
    said = run.said()
    (broken,) = re.findall(r"index 1 attempt 1 on (node-.)", said)
    assert "argosy: cuda_hardware" in said
    assert f"2 pods, not on {broken}" in said, said
    after = re.findall(r"attempt 2 on (node-.)", said)
    assert len(after) == 2, said
    assert broken not in after, said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 76), (signal.SIGHUP, 76)])
def test_a_signal_takes_the_gang_away(started: Any, number: signal.Signals, code: int) -> None:
    run = started(job_set("time.sleep(600)"))
    run.until("index 1 attempt 1")
    began = time.monotonic()
    run.process.send_signal(number)
    assert run.ended() == code, run.said()
    assert time.monotonic() - began < 30


def test_what_the_cluster_does_not_understand_is_wrong_input(started: Any) -> None:
    documents = job_set("pass")
    documents[0]["spec"]["replicatedJob"] = []
    run = started(documents)
    assert run.ended() == 2, run.said()
    assert 'unknown field "spec.replicatedJob"' in run.said()


def test_as_a_step_the_workflow_owns_the_gang_and_argo_logs_shows_it(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    rules = [{"apiGroups": [group], "resources": [*kinds], "verbs": [*verbs]} for group, kinds, verbs, _ in RULES]
    rbac = "rbac.authorization.k8s.io/v1"
    cluster.api.apply([{"apiVersion": rbac, "kind": "Role", "metadata": {"name": "argosy"}, "rules": rules}], namespace)
    good, bad = job_set(DEFECT + "\ntime.sleep(5)", "main"), indexed_job(BREAK)
    (tmp_path / "workflow.yaml").write_text(yaml.safe_dump(workflow({"good": good, "bad": bad})))
    name = cluster.submit(tmp_path / "workflow.yaml", namespace)

    def gang() -> list[dict[str, Any]]:
        found = cluster.kubectl("get", "jobsets.jobset.x-k8s.io", "-n", namespace, "-o", "json")
        return [each for each in json.loads(found)["items"] if each["metadata"]["name"].endswith("-a2")]

    wait_for("the second gang", gang, 180, every=0.5)
    (owner,) = gang()[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Workflow", name)
    wait_for("its words", lambda: "attempt 2 on" in cluster.argo("logs", name, namespace=namespace), 60, every=0.5)
    nodes = cluster.wait_workflow(name, namespace)["status"]["nodes"].values()
    steps = {node["displayName"]: node for node in nodes}
    assert steps["good"]["phase"] == "Succeeded"
    assert steps["bad"]["phase"] == "Failed"
    assert steps["bad"]["outputs"]["exitCode"] == "70"
    assert '"cause":"user_exception","exit_code":70' in steps["bad"]["message"]
    # A container that argo logs would not find is printed by the step itself.
    assert "[1] IndexError: shard 7" in cluster.argo("logs", name, namespace=namespace)
    left = cluster.kubectl("get", "jobsets.jobset.x-k8s.io,jobs,services", "-n", namespace, "-o", "name")
    assert left.split() == []


def test_a_retried_step_deletes_the_gang_of_the_one_before_and_a_terminated_one_its_own(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    manifest = workflow({"good": job_set("time.sleep(600)", "main")})
    manifest["spec"]["templates"][1]["retryStrategy"] = {"limit": "2", "retryPolicy": "Always"}
    (tmp_path / "workflow.yaml").write_text(yaml.safe_dump(manifest))
    name = cluster.submit(tmp_path / "workflow.yaml", namespace)

    def gangs() -> list[str]:
        return cluster.kubectl("get", "jobsets.jobset.x-k8s.io", "-n", namespace, "-o", "name").split()

    wait_for("a gang", gangs, 120, every=0.5)
    (first,) = gangs()
    steps = f"workflows.argoproj.io/workflow={name},!argosy.dev/gang"
    cluster.kubectl("delete", "pod", "-n", namespace, "-l", steps, "--grace-period=0", "--force")
    wait_for("another gang alone", lambda: len(gangs()) == 1 and gangs() != [first], 180, every=0.5)
    cluster.argo("terminate", name, namespace=namespace)
    cluster.wait_workflow(name, namespace)
    wait_for("nothing to be left", lambda: not gangs(), 60, every=0.5)


def workflow(gangs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """One step for each gang, side by side."""
    templates: list[dict[str, Any]] = []
    for name, documents in gangs.items():
        path = "/argosy/gang/gang.yaml"
        words = [f"--gang={path}", "--workflow={{workflow.name}}", "--workflow-uid={{workflow.uid}}"]
        raw = {"name": "gang", "path": path, "raw": {"data": yaml.safe_dump_all(documents)}}
        container = {
            "image": f"docker.io/argosy/step:{VERSION}",
            "imagePullPolicy": "IfNotPresent",
            "command": ["python", "-m", "argosy.steps.supervise"],
            "args": words,
            "securityContext": CONTAINED,
        }
        templates.append({"name": name, "inputs": {"artifacts": [raw]}, "container": container})
    tasks = [{"name": name, "template": name, "continueOn": {"failed": True}} for name in gangs]
    spec = {
        "entrypoint": "both",
        "serviceAccountName": "argosy",
        "securityContext": RESTRICTED["securityContext"],
        "podSpecPatch": json.dumps(
            {
                "initContainers": [{"name": "init", "securityContext": CONTAINED}],
                "containers": [{"name": "wait", "securityContext": CONTAINED}],
            }
        ),
        "templates": [{"name": "both", "steps": [tasks]}, *templates],
    }
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"generateName": "own-"}}
    return {**kind, "spec": spec}
