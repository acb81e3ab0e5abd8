"""What vendors' own manifests do, and do well: nobody is warned of it."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: x}
spec:
  containers:
  - {name: c, image: "r/x:@", command: [python, serve.py], resources: {limits: {nvidia.com/gpu: 1, memory: 8Gi}}}
"""
WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: @
metadata: {name: w}
spec:
  entrypoint: main
  templates:
  - name: main
    steps: [[{name: a, template: a, arguments: {parameters: [{name: x, value: "1"}@]}}]]
  - name: a
    inputs: {parameters: [{name: x}@]}
    container: {image: "r/x:1", command: [run, "{{inputs.parameters.x}}", "@"]}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: r, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: @, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: dataset-initializer, image: "r/d"}]}}}
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {backoffLimit: 0, template: {spec: {containers: [{name: node, image: "r/x:1"}]}}}
"""
VOLCANO = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: v}
spec:
  schedulerName: volcano
  minAvailable: 1
  tasks:
  - {name: a, replicas: 3, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "r/x:1"@}]}}}
"""


PATCH = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: x}
spec: {template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8, memory: 8Gi}}}]}}}
"""


def fill(text: str, *values: str) -> str:
    for value in values:
        text = text.replace("@", value, 1)
    return text


def warned(text: str) -> set[str]:
    return {each.rule for each in lint([read_text(text.encode(), "x.yaml")]) if each.level > Level.NOTE}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A server's image may move: nobody waits for its peers.
        (fill(POD, "latest"), set()),
        # What is passed besides is lost only where a default answers in its place.
        (fill(WORKFLOW, "Workflow", ", {name: y, value: b}", "", ""), set()),
        (fill(WORKFLOW, "Workflow", ", {name: y, value: b}", ", {name: z, default: c}", ""), {"ARGO012"}),
        # Arguments of a template come from the workflow that refers to it.
        (fill(WORKFLOW, "WorkflowTemplate", "", "", "{{workflow.parameters.q}}"), set()),
        (fill(WORKFLOW, "Workflow", "", "", "{{workflow.parameters.q}}"), {"ARGO009"}),
        # A Kustomization completes a patch: what it lacks stands elsewhere.
        (PATCH, set()),
        # Argo 3 took one schedule; Spark brings the image of its pod templates.
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: CronWorkflow\nmetadata: {name: x}\nspec: {schedule: '* * * * *', "
            "concurrencyPolicy: Forbid, workflowSpec: {}}\n",
            {"API006"},
        ),
        # Initializers end before the ranks begin.
        (fill(RUNTIME, "1"), set()),
        (fill(RUNTIME, "2"), set()),
        # Three pods that are no ranks may come one by one.
        (fill(VOLCANO, ""), set()),
        (fill(VOLCANO, ", command: [torchrun, --nnodes=3, train.py]"), {"RESTART036"}),
        # Another project's group has kinds of its own.
        ("apiVersion: xgboostjob.kubeflow.org/v1\nkind: XGBoostJob\nmetadata: {name: x}\nspec: {}\n", set()),
        ("apiVersion: v1\nkind: TrainJob\nmetadata: {name: x}\nspec: {}\n", {"API020"}),
    ],
)
def test_only_what_harms_is_a_warning(text: str, expected: set[str]) -> None:
    found = warned(text)
    assert expected <= found
    assert not [
        each
        for each in lint([read_text(text.encode(), "x.yaml")])
        if each.rule == "API005" and each.level > Level.WARNING
    ]
    assert expected or not found & {
        "MEM001",
        "SEC013",
        "ARGO012",
        "ARGO009",
        "RESTART004",
        "GANG007",
        "RESTART036",
        "API020",
    }


def test_a_habit_of_scripts_is_one_finding() -> None:
    text = fill(WORKFLOW, "Workflow", "", "", "").replace("[run,", "[torchrun,")
    for name in ("b", "c"):
        text += f"  - name: {name}\n    inputs: {{parameters: [{{name: x}}]}}\n"
        text += "    script: {image: r/x, command: [sh], source: 'echo {{inputs.parameters.x}}'}\n"
    found = [each for each in lint([read_text(text.encode(), "x.yaml")]) if each.rule == "ARGO025"]
    assert [each.message.endswith("and so in 1 more of its scripts") for each in found] == [True]


@pytest.mark.parametrize(
    ("image", "expected"), [("your-registry/x:latest", False), ("r/<project>", False), ("r/x", True)]
)
def test_an_image_that_is_still_to_be_written_moves_nowhere(image: str, expected: bool) -> None:
    text = fill(VOLCANO, ", command: [torchrun, --nnodes=3, t.py]").replace("r/x:1", image)
    assert ("SEC013" in warned(text)) == expected


RAY = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: r}
spec:
  entrypoint: python train.py
  shutdownAfterJobFinishes: true
  runtimeEnvYAML: |
    env_vars:
      AWS_SECRET_ACCESS_KEY: "@"
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: h, image: "rayproject/ray:2.51.1"}]}}}
"""


@pytest.mark.parametrize(("value", "expected"), [("4f1c0e5a", [9]), ("${KEY}", []), ("minioadmin", [])])
def test_a_secret_of_rays_entrypoint_stands_in_the_manifest_too(value: str, expected: list[int]) -> None:
    found = lint([read_text(fill(RAY, value).encode(), "x.yaml")])
    assert [each.line for each in found if each.rule == "SEC016"] == expected


def test_a_credential_in_the_address_of_what_ray_serves() -> None:
    text = fill(RAY, "${KEY}").replace("RayJob", "RayService").replace("runtimeEnvYAML", "serveConfigV2")
    text = text.replace("rayClusterSpec", "rayClusterConfig").replace(
        "${KEY}", f"https://a:ghp_{'a1B2' * 9}@example.com/a.zip"
    )
    found = lint([read_text(text.encode(), "x.yaml")])
    assert [(each.rule, each.level) for each in found if each.rule == "SEC016"] == [("SEC016", Level.ERROR)]
