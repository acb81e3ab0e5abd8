"""API: what the server refuses, and what a newer one does not serve any more."""

from __future__ import annotations

import pytest

from argosy.workflows.compile import compile_run
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from argosy.workflows.spec.load import parse_run
from tests.lint.manifests import GROUP, JOB, JOBSET, PYTORCH, VOLCANO, found, rules


@pytest.mark.parametrize("manifest", [JOB, JOBSET, PYTORCH, VOLCANO, GROUP])
def test_right_ones(manifest: str) -> None:
    assert rules(manifest, "API") == set()


@pytest.mark.parametrize(
    ("text", "instead", "rule", "line"),
    [
        ("completions: 2\n", "completion: 2\n", "API002", 7),
        ("      restartPolicy", "      restartpolicy", "API002", 14),
        ("          image:", "          environment: []\n          image:", "API002", 19),
        ("          image:", "          hostNetwork: true\n          image:", "API003", 19),
        ("          image:", "          limits: {cpu: 1}\n          image:", "API003", 19),
        ("      subdomain", "      backoffLimit: 1\n      subdomain", "API003", 15),
        ("      subdomain", "      env: []\n      subdomain", "API003", 15),
        ("      subdomain", "      securityContext: {privileged: true}\n      subdomain", "API003", 15),
        ("completions: 2", 'completions: "2"', "API004", 7),
        ("          image:", "          env: {A: b}\n          image:", "API004", 19),
        ("          image:", "          workingDir: 8\n          image:", "API004", 19),
        ("          image:", "          terminationMessagePath: true\n          image:", "API004", 19),
        ("          image:", "          env: [{value: a}]\n          image:", "API005", 19),
        ("{app: train}", "{app: 1}", "API004", 12),
        ("  name: train\n", "  name: Train\n", "API008", 4),
        ("name: trainer", "name: my_trainer", "API010", 18),
        ("completionMode: Indexed", "completionMode: indexed", "API015", 6),
        ("batch/v1", "v1", "API020", 1),
        ("batch/v1", "batch/v2alpha1", "API001", 1),
    ],
)
def test_a_job(text: str, instead: str, rule: str, line: int) -> None:
    assert text in JOB
    assert (rule, line) in found(JOB.replace(text, instead), "API")


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("completions: 2", "completions: {{ .Values.nodes }}"),
        ("completions: 2", 'completions: "{{nodes}}"'),
        ("completions: 2", "completions: $NODES"),
        ("name: train\n", "name: train-$USER\n"),
        ("image: registry.example/train:1.4.2", "image: <your image>"),
        ("          image:", "          env: [{name: A, value: }]\n          image:"),
        ("          image:", "          resources: {limits: {cpu: 8, memory: 64Gi}}\n          image:"),
        ("          image:", "          ports: [{containerPort: 80, name: http}]\n          image:"),
        ("          image:", "          readinessProbe: {httpGet: {port: http}}\n          image:"),
        ("          image:", "          readinessProbe: {exec: {command: [a]}}\n          image:"),
        ("      subdomain", "      volumes: [{name: a, secret: {secretName: b, defaultMode: 0400}}]\n      subdomain"),
        ("      subdomain", "      resources: {limits: {cpu: 1}}\n      subdomain"),  # a pod's own, since 1.34
        ("kind: Job\n", "kind: Job\nx-common: &common {}\n"),
        ("  name: train\n", "  name: train\n  creationTimestamp: null\n"),
        ("  name: train\n", "  name: train\n  annotations: {when: 2026-01-01}\n"),
    ],
)
def test_what_is_right_or_not_known_is_left_alone(text: str, instead: str) -> None:
    assert text in JOB
    assert rules(JOB.replace(text, instead, 1), "API") == set()


@pytest.mark.parametrize(
    ("text", "instead", "rule", "line"),
    [
        ("  runPolicy:", "  nprocPerNode: 8\n  runPolicy:", "API004", 6),
        ("    cleanPodPolicy: Running\n", "    cleanPodPolicy: running\n", "API015", 7),
        ("            - name: pytorch", "            - name: trainer", "API012", 16),
        ("    Worker:", "    Workers:", "API013", 19),
        ("      replicas: 1", "      replicas: 2", "API014", 10),
        ("  runPolicy:", "  activeDeadlineSeconds: 5\n  runPolicy:", "API006", 6),
        ("kubeflow.org/v1", "kubeflow.org/v1beta2", "API001", 1),
    ],
)
def test_a_pytorchjob(text: str, instead: str, rule: str, line: int) -> None:
    assert text in PYTORCH
    assert (rule, line) in found(PYTORCH.replace(text, instead), "API")


def test_a_field_of_a_kind_whose_list_is_not_whole_is_a_warning() -> None:
    findings = lint([read_text(VOLCANO.replace("minAvailable", "minAvailables").encode(), "v.yaml")])
    assert [each.level.word for each in findings if each.rule == "API002"] == ["warning"]
    assert rules(VOLCANO.replace("  schedulerName", "  ofNextYear: 1\n  schedulerName"), "API") == set()


def test_a_manifest_in_a_workflow_has_parameters_in_it() -> None:
    inside = "".join(f"          {line}\n" for line in JOB.replace("completions: 2", "completions: {{n}}").splitlines())
    workflow = f"""\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{generateName: train-}}
spec:
  entrypoint: train
  templates:
    - name: train
      resource:
        action: create
        manifest: |
{inside}"""
    assert rules(workflow, "API") == set()
    wrong = workflow.replace("parallelism: 2", 'parallelism: "2"')
    assert {(rule, line) for rule, line in found(wrong, "API")} == {("API004", 18)}


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v2\nname: chart\nversion: 1.0.0\n",  # Helm's Chart.yaml
        "kind: pipeline\ntype: docker\nname: default\nsteps: []\n",  # Drone's
        "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: tune}\nspec: {}\n",  # Katib's
        "apiVersion: kubeflow.org/v1beta1\nkind: Profile\nmetadata: {name: Team}\nspec: {}\n",
        "apiVersion: monitoring.coreos.com/v1beta1\nkind: AlertmanagerConfig\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\nspec: {}\n",
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]\n",
        "apiVersion: backstage.io/v1alpha1\nkind: Component\nmetadata: {name: My_Part}\nspec: {}\n",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: 'system:x'}\nrules: []\n",
    ],
)
def test_what_others_have_in_their_repositories_is_left_alone(text: str) -> None:
    assert found(text, "API") == set()


def test_a_patch_of_kustomize_is_a_part_of_an_object() -> None:
    patch = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template:\n    spec:\n"
    patch += "      containers:\n        - name: trainer\n          volumeMounts: [{name: a}]\n"
    kustomization = "kind: Kustomization\nresources: [base]\npatches: [{path: gpus.yaml}]\n"
    files = [read_text(patch.encode(), "over/gpus.yaml"), read_text(kustomization.encode(), "over/kustomization.yaml")]
    refused = {"API005", "RESTART005"}
    assert not {each.rule for each in lint(files)} & refused
    assert {each.rule for each in lint(files[:1])} >= refused


def test_a_gauge_without_realtime_is_refused_by_argos_full_crd_alone() -> None:
    gauge = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\nspec:\n  entrypoint: a\n"
    gauge += "  metrics: {prometheus: [{name: g, help: h, gauge: {value: '1'}}]}\n"
    gauge += "  templates: [{name: a, suspend: {}}]\n"
    read = lint([read_text(gauge.encode(), "a.yaml")])
    assert [(each.rule, each.level.word) for each in read] == [("API005", "note")]


@pytest.mark.parametrize("runtime", ["jobset", "job", "trainjob", "pytorchjob", "mpijob", "tfjob", "rayjob"])
def test_nothing_is_found_in_a_gang_that_we_compile(runtime: str) -> None:
    """A TrainJob's container was to be named node, an MPIJob's pods to be deleted before their logs are read."""
    memory = '[gang.resources]\nmemory = "8Gi"\n'
    run = parse_run(f'name = "a"\nscript = "/t.py"\ncode = ""\n[gang]\nnnodes = 2\nruntime = "{runtime}"\n{memory}')
    findings = lint([read_text(compile_run(run), "workflow.yaml")])
    assert [each for each in findings if each.level > 1] == []
