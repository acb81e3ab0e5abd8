"""What of a user's own gang is refused, what is changed, and which host names follow its fresh name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from argosy.steps.contract.errors import InputError
from argosy.steps.supervise.manifest import read_gang, rendered

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: t}
spec:
  parallelism: 2
  completions: 2
  completionMode: Indexed
  template: {spec: {subdomain: s, restartPolicy: Never, containers: [{name: c, image: i, env: [], args: []}]}}
"""


def written(folder: Path, text: str) -> Path:
    (folder / "gang.yaml").write_text(text)
    return folder / "gang.yaml"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "not YAML"),
        ("", "holds nothing"),
        ("- 1", "holds a list"),
        (f"{JOB}---{JOB}", "holds Job, Job"),
        (JOB + "---\nkind: ConfigMap", "apply the rest before, with kubectl"),
        (
            "kind: PyTorchJob",
            "holds a PyTorchJob; a gang is one JobSet or Job, with at most a Service and a PodGroup; argosy import",
        ),
        (JOB.replace("batch/v1", "batch/v2"), "batch/v2"),
        (JOB.replace("batch/v1", "batch.volcano.sh/v1alpha1"), "a Job of Volcano's"),
        (JOB.replace("completions: 2", "completions: 9"), "parallelism 2 and completions 9"),
        (JOB.replace("parallelism: 2", "parallelism: two"), "invalid literal"),
        (JOB.replace("Indexed", "NonIndexed"), "completionMode: Indexed"),
        (JOB.replace("{name: t}", "{name: t, namespace: other}"), "namespace other, this is mine; pass -n"),
        (JOB.replace("spec:\n", "specs:\n"), "the Job has no spec"),
        (JOB.replace("template:", "templates:"), "'template' is missing"),
    ],
)
def test_a_gang_that_cannot_be_supervised_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"gang = .*gang\.yaml") as caught:
        read_gang(written(tmp_path, text), "mine")
    assert said in str(caught.value)
    assert str(caught.value).count("gang = ") == 1  # no refusal in another


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_gang(tmp_path / "gang.yaml", "mine")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("t-0.s", "n-0.n"),
        ("t-0.s:29500", "n-0.n:29500"),
        ("tcp://t-$(RANK).s.mine.svc:1", "tcp://n-$(RANK).n.mine.svc:1"),
        ("t-0.s,t-1.s", "n-0.n,n-1.n"),
        ("--rdzv-endpoint=t-0.s", "--rdzv-endpoint=n-0.n"),
        ("s:29500", "n:29500"),
        ("/data/t-0", "/data/t-0"),
        ("t-0", "t-0"),
        ("s", "s"),
        ("at-0.s", "at-0.s"),
        ("t-0.st", "t-0.st"),
        ("s3://s/t", "s3://s/t"),
    ],
)
def test_host_names_that_the_user_wrote_follow_the_fresh_name(tmp_path: Path, given: str, made: str) -> None:
    document: dict[str, Any] = yaml.safe_load(JOB)
    container = document["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "X", "value": given}, {"name": "MASTER_ADDR", "value": "s"}]
    container["args"] = [given]
    gang, name, changes = read_gang(written(tmp_path, yaml.safe_dump(document)), "mine")
    assert (name, gang.nnodes, changes) == ("t", 2, [])
    (job,) = rendered(gang, "n", 1, (), {})
    pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == [made]
    assert [item["value"] for item in pod["containers"][0]["env"]] == [made, "n"]
    assert (job["metadata"]["name"], pod["subdomain"]) == ("n", "n")


def test_selectors_find_the_pods_under_the_fresh_name(tmp_path: Path) -> None:
    """By a controller's label, which says the fresh name, and by the user's own, which has the old one for a value."""
    own = {"app": "t", "batch.kubernetes.io/job-name": "t"}
    document: dict[str, Any] = yaml.safe_load(JOB)
    template = document["spec"]["template"]
    template["metadata"] = {"labels": own}
    named = {"matchExpressions": [{"key": "job-name", "operator": "In", "values": ["t", "other"]}]}
    apart = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": own}}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    template["spec"]["affinity"] = {"podAntiAffinity": {required: apart}}
    template["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "labelSelector": named}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"selector": own}}
    gang, _, _ = read_gang(written(tmp_path, yaml.safe_dump_all([service, document])), "mine")
    made_service, job = rendered(gang, "n", 1, (), {})
    pod, fresh = job["spec"]["template"], {"app": "t", "batch.kubernetes.io/job-name": "n"}
    assert made_service["spec"]["selector"] == {**fresh, "argosy.dev/gang": "n"}
    assert pod["metadata"]["labels"] == {**fresh, "argosy.dev/gang": "n", "argosy.dev/attempt": "1"}
    assert pod["spec"]["affinity"]["podAntiAffinity"][required][0]["labelSelector"] == {"matchLabels": fresh}
    spread = pod["spec"]["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"]
    assert spread[0]["values"] == ["n", "other"]


def test_selectors_of_others_keep_their_names_that_begin_with_the_gangs(tmp_path: Path) -> None:
    """A pod placed beside the Job t-data, which nobody renames, would wait for ever; and ``values:`` may be empty."""
    job = yaml.safe_load(JOB)["spec"]
    names = {"jobset.sigs.k8s.io/jobset-name": "t", "job-name": "t-w-1", "batch.kubernetes.io/job-name": "t-w-2"}
    apart = {"key": "jobset.sigs.k8s.io/jobset-name", "operator": "NotIn", "values": ["t", "t-eval"]}
    chosen = {"matchLabels": names, "matchExpressions": [apart, {"key": "job-name", "values": None}]}
    job["template"]["spec"]["topologySpreadConstraints"] = [{"maxSkew": 1, "labelSelector": chosen}]
    document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "t"},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]},
    }
    gang, _, _ = read_gang(written(tmp_path, yaml.safe_dump(document)), "mine")
    made = rendered(gang, "n", 1, (), {})[0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    told = made["topologySpreadConstraints"][0]["labelSelector"]
    assert {*told["matchLabels"].values()} == {"n", "n-w-1", "t-w-2"}  # two of w are numbered 0 and 1
    assert [each["values"] for each in told["matchExpressions"]] == [["n", "t-eval"], []]


def test_the_pods_of_all_replicated_jobs_count_and_stay_off_excluded_nodes(tmp_path: Path) -> None:
    job = yaml.safe_load(JOB)["spec"]
    document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"generateName": "two-"},
        "spec": {
            "ttlSecondsAfterFinished": 5,
            "replicatedJobs": [
                {"name": "a", "template": {"spec": job}},
                {"name": "b", "replicas": 3, "template": {"spec": {**job, "backoffLimit": 6}}},
            ],
        },
    }
    gang, name, changes = read_gang(written(tmp_path, yaml.safe_dump(document)), "mine")
    assert (name, gang.nnodes) == ("two", 8)
    assert [line.split(":")[0] for line in changes] == ["ttlSecondsAfterFinished removed", "b"]
    (made,) = rendered(gang, "n", 2, ("bad",), {"x": "y"})
    assert made["spec"]["failurePolicy"] == {"maxRestarts": 0}
    for each in made["spec"]["replicatedJobs"]:
        spec = each["template"]["spec"]
        assert spec["backoffLimit"] == 0
        assert spec["template"]["metadata"]["labels"] == {
            "x": "y", "argosy.dev/gang": "n", "argosy.dev/attempt": "2",
        }  # fmt: skip
        assert "bad" in str(spec["template"]["spec"]["affinity"])
