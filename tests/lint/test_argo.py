"""Argo's workflows, sensors and sources: small manifests, both ways."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found

HEAD = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: train}
spec:
  entrypoint: main
  serviceAccountName: train
  arguments: {parameters: [{name: uri, value: x}]}
  templates:
"""
WORK = """\
    - name: work
      inputs: {parameters: [{name: a, value: "1"}]}
      outputs: {parameters: [{name: out, valueFrom: {path: /tmp/o}}]}
      container: {image: "x:1", command: [work, "{{inputs.parameters.a}}"]}
"""


def argo(text: str) -> list[tuple[str, str]]:
    return [(rule, level) for rule, level, _ in found(text, "ARGO")]


def dag(*tasks: str) -> str:
    lines = "".join(f"          - {{{task}}}\n" for task in tasks)
    return f"{HEAD}    - name: main\n      dag:\n        tasks:\n{lines}{WORK}"


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (["name: a, template: work", "name: b, template: work, depends: a"], []),
        (["name: 1-a, template: work", "name: b, template: work, depends: 1-a.Succeeded||1-a.Skipped"], []),
        (["name: a, template: work", "name: b, template: work, depends: '!a.Failed && (a)'"], []),
        (["name: a, template: work", "name: b, template: work, depends: c"], ["ARGO005"]),
        (["name: a, template: work", "name: b, template: work, dependencies: [c]"], ["ARGO005"]),
        (["name: a, template: work, depends: b", "name: b, template: work, depends: a"], ["ARGO005"]),
        (["name: a, template: work, depends: a"], ["ARGO005"]),
        (["name: a, template: work", "name: b, template: work, depends: a.Done"], ["ARGO005"]),
        (["name: a, template: wrk"], ["ARGO002"]),
        (["name: a, template: '{{x}}'"], ["ARGO010"]),
        (["name: a, template: work", "name: a, template: work"], ["ARGO005"]),
        (["name: a, template: work, arguments: {parameters: [{name: b, value: x}]}"], ["ARGO012"]),
        (["name: a, template: work, onExit: nope"], ["ARGO002"]),
        (["name: a, template: work, hooks: {x: {template: nope}}"], ["ARGO002"]),
        (["name: a"], ["ARGO002"]),
    ],
)
def test_tasks(tasks: list[str], expected: list[str]) -> None:
    assert [rule for rule, _ in argo(dag(*tasks))] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{workflow.parameters.uri}}", []),
        ("{{workflow.parameters.url}}", ["ARGO009"]),
        ("{{ workflow.name }}", []),
        ("{{workflow.nme}}", ["ARGO010"]),
        ("{{worfklow.name}}", ["ARGO010"]),
        ("{{tasks.a.outputs.parameters.out}}", []),
        ("{{tasks.a.outputs.parameters}}", []),
        ("{{tasks.a.outputs.result}}", []),
        ("{{tasks.a.ip}}", []),
        ("{{tasks.a.outputs.parameters.nope}}", ["ARGO011"]),
        ("{{tasks.c.outputs.result}}", ["ARGO011"]),
        ("{{steps.a.outputs.result}}", ["ARGO011"]),
        ("{{inputs.parameters.x}}", ["ARGO008"]),
        ("{{=sprig.upper(workflow.parameters.uri)}}", []),
        ("{{item.x}}", []),
        ("{{ .Values.x }}", []),
    ],
)
def test_variables(value: str, expected: list[str]) -> None:
    task = f"name: b, template: work, depends: a, arguments: {{parameters: [{{name: a, value: '{value}'}}]}}"
    assert [rule for rule, _ in argo(dag("name: a, template: work", task))] == expected


def test_a_manifest_in_a_resource_template_is_the_outer_workflows() -> None:
    inner = """\
    - name: main
      inputs: {parameters: [{name: date, value: x}]}
      resource:
        action: create
        setOwnerReference: true
        manifest: |
          apiVersion: argoproj.io/v1alpha1
          kind: Workflow
          metadata: {generateName: a-}
          spec:
            entrypoint: main
            templates:
              - name: main
                container: {image: "x:1", command: [x, "{{=toJson(inputs.parameters.date)}}", "{{inputs.parameters.date}}"]}
"""  # noqa: E501
    assert [rule for rule, level in argo(HEAD + inner) if level == "error"] == []


def test_an_inline_template_sees_what_its_task_sees() -> None:
    text = f"""{HEAD}    - name: main
      inputs: {{parameters: [{{name: a, value: x}}]}}
      dag:
        tasks:
          - name: first
            inline: {{container: {{image: "x:1", command: [x, "{{{{inputs.parameters.a}}}}"]}}}}
          - name: second
            depends: first
            inline: {{container: {{image: "x:1", command: [x, "{{{{tasks.first.outputs.result}}}}"]}}}}
"""
    assert argo(text) == []


STATE = "status.state.phase"
REPLICAS = "status.replicaStatuses"
RESOURCE = """\
    - name: main
      resource:
        action: create
        setOwnerReference: true
        successCondition: %s
        failureCondition: %s
        manifest: |
          apiVersion: %s
          kind: %s
          metadata: {generateName: a-}
          spec: {pytorchReplicaSpecs: {Worker: {replicas: 2}}}
"""


@pytest.mark.parametrize(
    ("kind", "success", "failure", "expected"),
    [
        ("jobset.x-k8s.io/v1alpha2 JobSet", "status.terminalState == Completed", "status.terminalState = Failed", []),
        ("jobset.x-k8s.io/v1alpha2 JobSet", "status.terminalState in (Completed)", "status.restarts > 3", []),
        ("jobset.x-k8s.io/v1alpha2 JobSet", "status.terminalState == Done", "status.failed > 0", ["ARGO024"] * 2),
        ("batch/v1 Job", "status.succeeded > 2, status.failed == 0", "status.failed > 1", []),
        ("batch/v1 Job", "status.completionTime", "status.failed > 0", []),
        ("batch/v1 Job", "status.phase == Succeeded", "status.failed > 0", ["ARGO024"]),
        ("batch/v1 Job", "status.conditions.0.type == Complete", "status.failed > 0", ["ARGO023"]),
        ("batch/v1 Job", "'status.conditions.#(type==\"Complete\")'", "status.failed > 0", ["ARGO023"]),
        ("batch/v1 Job", "'{{inputs.parameters.x}}'", "status.failed > 0", ["ARGO008"]),
        ("ray.io/v1 RayJob", "status.jobStatus == Succeeded", "status.jobStatus == FAILED", ["ARGO024"]),
        ("batch.volcano.sh/v1alpha1 Job", f"{STATE} == Completed", f"{STATE} in (Failed,Aborted)", []),
        ("kubeflow.org/v1 PyTorchJob", f"{REPLICAS}.Worker.succeeded == 2", f"{REPLICAS}.Worker.failed > 0", []),
        ("kubeflow.org/v1 PyTorchJob", f"{REPLICAS}.Master.succeeded == 1", "status.conditions", ["ARGO024"]),
        ("example.org/v1 Thing", "status.anything == Yes", "status.other == No", []),
    ],
)  # fmt: skip
def test_conditions(kind: str, success: str, failure: str, expected: list[str]) -> None:
    version, name = kind.split()
    assert [rule for rule, _ in argo(HEAD + RESOURCE % (success, failure, version, name))] == expected


SCRIPT = "    - name: main\n      inputs: {parameters: [{name: x, value: y%s}]}\n      %s\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('script: {image: "x:1", command: [python], source: "print({{inputs.parameters.x}})"}', ["ARGO025"]),
        ('script: {image: "x:1", command: [python], source: "x", env: [{name: X, value: "{{item}}"}]}', []),
        ('container: {image: "x:1", command: [sh, -c], args: ["echo {{inputs.parameters.x}}"]}', ["ARGO025"]),
        ('container: {image: "x:1", command: [bash, -euxc, "echo {{workflow.parameters.uri}}"]}', ["ARGO025"]),
        ('container: {image: "x:1", command: [sh, -c, "echo $0", "{{inputs.parameters.x}}"]}', []),
        ('container: {image: "x:1", command: [train, "{{inputs.parameters.x}}"]}', []),
        ('script: {image: "x:1", command: [python], source: "print(\'{{workflow.name}}\')"}', []),
    ],
)
def test_parameters_in_code(body: str, expected: list[str]) -> None:
    assert [rule for rule, _ in argo(HEAD + SCRIPT % ("", body))] == expected
    assert argo(HEAD.replace("value: x}", "value: x, enum: [x]}") + SCRIPT % (", enum: [y]", body)) == []


@pytest.mark.parametrize(
    ("retry", "expected"),
    [
        ("{limit: 3, retryPolicy: Always}", []),
        ("{limit: 3}", [("ARGO017", "note")]),
        ("{limit: 3, expression: 'true'}", []),
        ("{limit: 3, retryPolicy: OnFailure}", [("ARGO017", "warning")]),
        ("{retryPolicy: Always}", [("ARGO015", "warning")]),
        ("{}", [("ARGO015", "note"), ("ARGO017", "note")]),
        ("{limit: 3, retryPolicy: Always, backoff: {duration: 5s, maxDuration: 1h}}", [("ARGO016", "warning")]),
        ("{limit: 3, retryPolicy: Always, backoff: {duration: 5s, cap: 1h}}", []),
    ],
)
def test_retries(retry: str, expected: list[tuple[str, str]]) -> None:
    text = f'{HEAD}    - {{name: main, retryStrategy: {retry}, container: {{image: "x:1", command: [x]}}}}\n'
    assert argo(text) == expected
