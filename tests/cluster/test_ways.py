"""The ways in: install, doctor, submit, and the reading verbs, with nothing kept on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.cluster import Cluster
from tests.cluster.images import CHECKOUT
from tests.cluster.progress import wait_for

ARGOSY = [sys.executable, "-m", "argosy.workflows.cli.main"]
RUN = """\
name = "ways"
script = "train.py"
secrets = ["s3"]

[storage]
uri = "{bucket}/store"

[env]
AWS_ENDPOINT_URL = "{endpoint}"
AWS_REGION = "us-east-1"

[gang]
nnodes = 2
resources = {{ cpu = "100m", memory = "1Gi" }}

[checkpoint]
mode = "opaque"
path = "out"
include = ["state.json"]
"""
REFERRING = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: by-hand-}
spec:
  entrypoint: main
  serviceAccountName: argosy
  templates:
  - name: main
    steps:
    - - {name: admit, templateRef: {name: ways, template: admit}}
"""
ALLOWED = ("create jobsets", "delete jobs", "create podgroups", "list pods", "create secrets", "create services",
           "create networkpolicies", "patch workflowtaskresults", "list events")  # fmt: skip
FORBIDDEN = ("get secrets", "list secrets", "delete pods", "create pods", "create workflows", "get nodes",
             "patch jobsets", "create rolebindings")  # fmt: skip


@dataclass
class Shell:
    """The command line in an empty folder that holds a run, with a kubeconfig and the bucket's keys."""

    folder: Path
    namespace: str
    environment: dict[str, str]

    def start(self, *arguments: str, keys: bool = True) -> subprocess.Popen[str]:
        hidden = () if keys else ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        environment = {name: value for name, value in self.environment.items() if name not in hidden}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen([*ARGOSY, *arguments], cwd=self.folder, env=environment, text=True, **pipes)

    def __call__(self, *arguments: str, keys: bool = True) -> tuple[int, str, str]:
        process = self.start(*arguments, "-n", self.namespace, keys=keys)
        out, err = process.communicate(timeout=600)
        return process.returncode, out, err


@pytest.fixture(scope="module")
def shell(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A fresh namespace in which nothing but ``argosy install`` was applied, and a Secret with the bucket's keys."""
    folder = tmp_path_factory.mktemp("laptop")
    shutil.copy(CHECKOUT / "examples/hera-compose/train.py", folder)
    name = f"ways-{os.getpid()}"
    bucket = cluster.create_bucket(name)
    (folder / "run.toml").write_text(RUN.format(bucket=bucket, endpoint=cluster.s3_endpoint))
    keys = {name: value for name, value in cluster.s3_environment.items() if name != "AWS_ENDPOINT_URL"}
    made = Shell(folder, name, {**os.environ, **keys, "KUBECONFIG": str(cluster.kubeconfig)})
    code, _, err = made("install", "--create-namespace", "--apply")
    assert code == 0, err
    cluster.create_s3_secret(name)
    yield made
    cluster.delete_namespace(name)


@pytest.fixture(scope="module")
def trained(shell: Shell) -> tuple[str, dict[str, object]]:
    """(workflow, summary) of a run that was submitted and followed to its end."""
    code, out, err = shell("submit", "run.toml", "--json")
    assert code == 0, err
    found = json.loads(out)
    return found["workflow"], found


def test_the_account_may_do_what_a_run_does_and_nothing_else(shell: Shell, cluster: Cluster) -> None:
    user = f"--as=system:serviceaccount:{shell.namespace}:argosy"

    def can(what: str) -> bool:
        command = [cluster.bin / "kubectl", f"--kubeconfig={cluster.kubeconfig}", "auth", "can-i", "-n"]
        asked = subprocess.run([*command, shell.namespace, *what.split(), user], capture_output=True, text=True)
        return asked.stdout.strip() == "yes"

    assert [what for what in ALLOWED if not can(what)] == []
    assert [what for what in FORBIDDEN if can(what)] == []


def test_installing_again_changes_nothing_and_keeps_what_others_wrote(shell: Shell, cluster: Cluster) -> None:
    where = ("serviceaccount", "argosy", "-n", shell.namespace)
    cluster.kubectl("annotate", *where, "eks.amazonaws.com/role-arn=arn:aws:iam::1:role/r", "--overwrite")
    before = json.loads(cluster.kubectl("get", *where, "-o", "json"))["metadata"]
    assert shell("install", "--apply")[0] == 0
    after = json.loads(cluster.kubectl("get", *where, "-o", "json"))["metadata"]
    assert after["resourceVersion"] == before["resourceVersion"]
    assert "eks.amazonaws.com/role-arn" in after["annotations"]


def test_doctor_finds_what_is_missing_and_what_mends_it(shell: Shell) -> None:
    code, out, err = shell("doctor", "run.toml", "--json")
    assert code == 0, out + err
    states = {check["what"]: check["state"] for check in json.loads(out)["checks"]}
    for what in ("secret s3", "capacity", "Workflow, dry run", "Pod of the gang, dry run", "Pod of a step, dry run"):
        assert states[what] == "ok"
    more = 'service_account = "nobody"\npriority_class = "urgent"\nnnodes = 50\nnode_selector'
    wrong = (shell.folder / "run.toml").read_text().replace('["s3"]', '["s3", "wandb"]')
    (shell.folder / "wrong.toml").write_text(wrong.replace("nnodes = 2", f'{more} = {{ disk = "none" }}'))
    code, out, _ = shell("doctor", "wrong.toml", "--json")
    assert code == 1
    missing = {check["what"]: check["remedy"] for check in json.loads(out)["checks"] if check["state"] == "missing"}
    assert {"secret wandb", "service account nobody", "priority class urgent", "capacity"} <= set(missing)
    assert missing["service account nobody"].endswith("--service-account nobody --apply")
    assert missing["secret wandb"].startswith("kubectl create secret generic wandb ")


def test_without_the_account_nothing_is_submitted(shell: Shell) -> None:
    text = (shell.folder / "run.toml").read_text().replace("[gang]", '[gang]\nservice_account = "nobody"')
    (shell.folder / "nobody.toml").write_text(text)
    code, _, err = shell("submit", "nobody.toml")
    assert code == 2
    assert f"argosy install -n {shell.namespace} --service-account nobody --apply" in err


def test_a_run_is_trained_from_the_bytes_that_compile_prints(
    shell: Shell, trained: tuple[str, dict[str, object]], cluster: Cluster
) -> None:
    name, found = trained
    assert (found["phase"], found["last_step"]) == ("Succeeded", 20)
    compiled = subprocess.run([*ARGOSY, "compile", "run.toml"], cwd=shell.folder, capture_output=True, check=True)
    assert found["yaml_sha256"] == hashlib.sha256(compiled.stdout).hexdigest()
    kept = said(cluster.workflow(name, shell.namespace)["spec"])
    assert kept == said(yaml.safe_load(compiled.stdout)["spec"])


def said(node: Any) -> Any:
    """Without what is empty: the controller writes the fields that nobody set."""
    if isinstance(node, list):
        return [said(each) for each in node]
    if not isinstance(node, dict):
        return node
    return {key: kept for key, value in node.items() if (kept := said(value)) not in ({}, "", None)}


def test_every_reading_verb_finds_it_without_state(
    shell: Shell, trained: tuple[str, dict[str, object]], cluster: Cluster
) -> None:
    name, found = trained
    code, out, _ = shell("status", name)
    assert code == 0
    assert out.startswith(f"{name}: Succeeded, ")
    assert "Trained to step 20" in shell("explain")[1]
    assert name in shell("top")[1]
    assert shell("report", name, "-o", "r.html")[0] == 0
    assert name in (shell.folder / "r.html").read_text()
    assert "step 20 loss" in shell("logs", name)[1]  # its pods are gone: from the store
    place = f"{found['store_uri']}/ways/runs/{name}"
    bucket = {**shell.environment, "AWS_ENDPOINT_URL": cluster.s3_endpoint}
    code, out, err = Shell(shell.folder, "", bucket)("status", place)
    assert code == 0, err
    assert out.startswith(f"{name}: Succeeded, ")
    assert not (shell.folder / ".argosy").exists()


def test_who_has_no_keys_of_the_store_is_told_which(shell: Shell, trained: tuple[str, dict[str, object]]) -> None:
    code, out, err = shell("status", trained[0], keys=False)
    assert code == 0
    assert "train     Succeeded" in out
    code, _, err = shell("explain", trained[0], keys=False)
    assert code == 1
    for words in ("AWS_ACCESS_KEY_ID", f"from the secret s3 of namespace {shell.namespace}"):
        assert words in err


def test_ctrl_c_leaves_the_run_alone_and_logs_follow_it(shell: Shell, cluster: Cluster) -> None:
    with shell.start("submit", "run.toml", "-n", shell.namespace) as submitted:
        assert submitted.stderr is not None
        name = next(line.split()[1] for line in submitted.stderr if line.startswith("workflow "))
        wait_for("the train step", lambda: "train" in phases_of(cluster, name, shell.namespace), 300)
        submitted.send_signal(signal.SIGINT)
        assert submitted.wait(60) == 130
        assert f"argosy status {name} -n {shell.namespace}" in submitted.stderr.read()
    code, out, err = shell("logs", "-f", name)
    assert code == 0, err
    ranks = {line.split(" | ")[0] for line in out.splitlines() if "step 20 loss" in line}
    assert len(ranks) == 2, out
    assert " argo=true" not in out
    assert cluster.wait_workflow(name, shell.namespace)["status"]["phase"] == "Succeeded"


def phases_of(cluster: Cluster, name: str, namespace: str) -> set[str]:
    nodes = cluster.workflow(name, namespace).get("status", {}).get("nodes", {}).values()
    return {node["displayName"] for node in nodes}


def test_a_template_is_kept_updated_and_referred_to_by_hand(shell: Shell, cluster: Cluster) -> None:
    template = ("get", "workflowtemplate", "ways", "-n", shell.namespace, "-o", "jsonpath={.metadata.generation}")
    generations = []
    for _ in range(2):
        code, out, err = shell("submit", "run.toml", "--template", "--detach", "-p", "run-id=kept")
        assert code == 0, err
        cluster.argo("terminate", out.strip(), namespace=shell.namespace)
        generations.append(cluster.kubectl(*template))
    assert generations == ["1", "1"]
    (shell.folder / "by-hand.yaml").write_text(REFERRING)
    code, out, err = shell("submit", "by-hand.yaml", "--detach")
    assert code == 0, err
    ended = cluster.wait_workflow(out.strip(), shell.namespace)
    assert ended["status"]["phase"] == "Succeeded", ended["status"]


def test_a_hera_script_is_submitted_with_a_task_before_and_after(
    shell: Shell, cluster: Cluster, edited: Callable[[str], str]
) -> None:
    script = CHECKOUT / "examples/hera-compose/compose.py"
    environment = {**shell.environment, "AWS_ENDPOINT_URL": cluster.s3_endpoint, "AWS_REGION": "us-east-1"}
    store = yaml.safe_load((shell.folder / "run.toml").read_text().partition("[storage]\nuri = ")[2].splitlines()[0])
    made = subprocess.run([sys.executable, script, store], env=environment, capture_output=True, text=True, check=True)
    (shell.folder / "flow.yaml").write_text(edited(made.stdout))
    code, out, err = shell("submit", "flow.yaml", "--json")
    assert code == 0, err
    reached = phases_of(cluster, json.loads(out)["workflow"], shell.namespace)
    assert {"prepare", "train", "announce"} <= reached


@pytest.fixture
def edited() -> Callable[[str], str]:
    """The test cluster pulls nothing: the user's own image is one that its nodes have."""
    return lambda text: text.replace("python:3.11-slim", "argosy/step:0.1.0")
