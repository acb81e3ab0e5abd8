"""Faults of public manifests that stayed silent, and right ones that did not: a table of what lint says of each."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text


def fill(text: str, *values: str) -> str:
    """The text with a value for each ``@``."""
    for value in values:
        text = text.replace("@", value, 1)
    return text


HEAD = "apiVersion: @\nkind: @\nmetadata: {name: train}\nspec:\n"
POD = fill(HEAD, "v1", "Pod")
JOB = fill(HEAD, "batch/v1", "Job")
SHELL = JOB + (
    "  completionMode: Indexed\n  completions: 2\n  parallelism: 2\n  backoffLimit: 0\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      containers:\n      - name: c\n        image: r/x:1\n        command:\n"
    "        - bash\n        - -c\n        - |\n          @\n"
)
KEPT = fill(HEAD, "apps/v1", "StatefulSet") + (
    "  serviceName: s\n  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
    "    spec: {restartPolicy: @, containers: [{name: c, image: r/x:1, command: [@]}]}\n"
)
RUNTIME = fill(HEAD, "trainer.kubeflow.org/v1alpha1", "TrainingRuntime") + (
    "  mlPolicy: {numNodes: 2, torch: {}}\n  template:\n    spec:\n      @\n      replicatedJobs:\n"
    "      - name: node\n        template:\n          metadata: {labels: @}\n          spec:\n            template:\n"
    "              spec: {containers: [{name: @, image: r/x:1, volumeMounts: {}}]}\n"
)
STEP = "{trainer.kubeflow.org/trainjob-ancestor-step: trainer}"
CLAIM = "volumeClaimPolicies: [{templates: [{metadata: {name: v}, spec: {}}]}]"
MPI = fill(HEAD, "kubeflow.org/v2beta1", "MPIJob") + (
    "  mpiReplicaSpecs:\n    Launcher:\n      template: {spec: {containers: [{name: l, image: r/x:1, env: [{name: "
    "NCCL_DEBUG, value: WARN}], command: [mpirun, -x, NCCL_DEBUG, a.out], volumeMounts: [{name: ssh-auth, mountPath: "
    "/s}]}]}}\n    Worker:\n      replicas: 2\n      template: {spec: {containers: [{name: w, image: r/x:1}]}}\n"
)
STEPS = fill(HEAD, "argoproj.io/v1alpha1", "Workflow") + "  entrypoint: m\n  templates:\n  - name: m\n"
RAY = fill(HEAD, "ray.io/v1", "RayCluster") + (
    "  headGroupSpec:\n    rayStartParams: {@}\n"
    "    template: {spec: {containers: [{name: h, image: rayproject/ray, command: [@]}]}}\n"
)
CASES = [
    (fill(SHELL, "torchrun --nnodes=2 --node_rank=${JOB_COMPLETION_INDEX:-0} --master_addr=a.b t.py"), "REND020", 0),
    (fill(SHELL, "torchrun --nnodes=2 --node_rank=${OTHER:-0} --master_addr=a.b t.py"), "REND020", 1),
    (fill(SHELL, "torchrun --nnodes=2 --node_rank=$R --master_addr=${MASTER_ADDR:-localhost} t.py"), "REND011", 0),
    (fill(SHELL, "torchrun --nnodes=2 --node_rank=${HOSTNAME##*-} --master_addr=a-0.b t.py"), "REND011", 0),
    (fill(SHELL, "torchrun t.py && echo good || echo bad"), "ARGV041", 1),
    (fill(SHELL, "torchrun t.py && echo good || exit 1"), "ARGV041", 0),
    (fill(KEPT, "OnFailure", "sleep"), "API015", 1),
    (fill(KEPT, "Always", "python, train.py"), "GANG021", 1),
    (fill(RUNTIME, CLAIM, STEP, "node", "[{name: v, mountPath: /v}]"), "STORE001", 0),
    (fill(RUNTIME, "", "{}", "node", "[]"), "API012", 1),
    (fill(RUNTIME, "", STEP, "trainer", "[]"), "API012", 1),
    (fill(RUNTIME, "", STEP, "node", "[]"), "API012", 0),
    (MPI, "NCCL048", 0),
    (MPI, "STORE001", 0),
    (fill(HEAD, "kubeflow.org/v2beta1", "MPIJob") + "  slotsPerWorker: 8\n", "API005", 1),
    (STEPS + '    container: {name: "", image: r/x:1, command: [echo]}\n', "API010", 0),
    (STEPS + "    container: {image: r/x:1, command: [echo]}\n    retries: 3\n", "API003", 1),
    (fill(RAY, 'port: "10001"', "sleep"), "RAY005", 1),
    (fill(RAY, "", '"ray start --head"'), "ARGV001", 0),
    (POD + "  containers: [{name: c, image: r/x:1, env: [{name: TORCH_CUDA_ALLOC_CONF, value: a}]}]\n", "TORCH007", 1),
    (POD.replace("v1", "kubeflow.org/v2alpha1", 1).replace("Pod", "TrainJob"), "API001", 1),
]


@pytest.mark.parametrize(("text", "rule", "times"), CASES)
def test_a_public_manifest(text: str, rule: str, times: int) -> None:
    found = lint([read_text(text.encode(), "manifest.yaml")])
    assert not [each for each in found if each.rule == "YAML001"]
    seen = [each.rule for each in found if each.level > Level.NOTE or not times]
    assert seen.count(rule) == times, [(each.rule, each.message) for each in found]
