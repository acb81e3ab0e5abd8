"""What the ranks dial, what they are told they are, and how many there are: small manifests, both ways."""

from __future__ import annotations

import textwrap

import pytest

from argosy.workflows.lint.finding import Level
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text

SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: train}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {job-name: train}
---
"""


def found(text: str, *families: str) -> list[tuple[str, int]]:
    """(rule, line) of the findings of the families, notes left out."""
    wanted = families or ("REND", "BATCH")
    held = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule.startswith(wanted))
    return [(each.rule, each.line) for each in held if each.level > Level.NOTE]


def rules(text: str) -> set[str]:
    return {rule for rule, _ in found(text)}


def indexed(command: str, *, size: int = 2, gpus: int = 0, env: str = "[]", subdomain: str = "train") -> str:
    """An Indexed Job, behind its Service."""
    return SERVICE + textwrap.dedent(f"""\
        apiVersion: batch/v1
        kind: Job
        metadata: {{name: train}}
        spec:
          completionMode: Indexed
          completions: {size}
          parallelism: {size}
          template:
            spec:
              subdomain: {subdomain}
              containers:
                - name: trainer
                  command: {command}
                  env: {env}
                  resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
        """)


STATIC = "[torchrun, --nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), --master-addr={0}, train.py]"


@pytest.mark.parametrize(
    "address",
    [
        "train-0.train",
        "train-0.train.team-a",
        "train-0.train.team-a.svc",
        "train-0.train.team-a.svc.cluster.local",
        "$(MASTER)",
        "10.1.2.3",
    ],
)
def test_the_first_pod_may_be_named_in_every_way(address: str) -> None:
    env = "[{name: MASTER, value: train-0.train}]"
    assert found(indexed(STATIC.format(address), env=env)) == []


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("train-2.train", "REND010"),
        ("train-0.trains", "REND010"),
        ("train", "REND012"),
        ("train.default.svc.cluster.local", "REND012"),
        ("127.0.0.1", "REND011"),
    ],
)
def test_another_name_is_found_where_it_is_written(address: str, rule: str) -> None:
    assert found(indexed(STATIC.format(address))) == [(rule, 21)]


def test_a_service_may_be_named_svc() -> None:
    text = indexed(STATIC.format("train-0.svc"), subdomain="svc").replace(
        "{name: train}\nspec:\n  clusterIP", "{name: svc}\nspec:\n  clusterIP"
    )
    assert found(text) == []


def test_a_name_through_a_variable_is_followed() -> None:
    text = indexed(STATIC.format("$(MASTER)"), env="[{name: MASTER, value: train-7.train}]")
    assert found(text) == [("REND010", 21)]


def test_a_shell_s_variable_and_its_default_are_followed() -> None:
    command = "[bash, -c, 'torchrun --nnodes=${NODES:-3} --rdzv-backend c10d --rdzv_endpoint $HOST:29400 train.py']"
    text = indexed(command, env="[{name: HOST, value: train-0.train}]")
    assert found(text) == [("REND040", 21)]


def test_what_is_not_known_is_not_judged() -> None:
    command = "[bash, -c, 'torchrun --nnodes=$NODES --node-rank=$RANK --master-addr=$(cat /etc/master) train.py']"
    assert found(indexed(command)) == []


def test_a_branch_may_dial_itself() -> None:
    script = 'if [ "$JOB_COMPLETION_INDEX" = 0 ]; then A=localhost; fi; torchrun --nnodes=2 --node-rank=$X '
    assert found(indexed(f"[bash, -c, '{script} --master-addr=localhost train.py']")) == []


@pytest.mark.parametrize("own", ["$HOSTNAME", "$(hostname -i)", "${POD}"])
def test_a_pod_s_own_name_is_no_meeting_place(own: str) -> None:
    env = "[{name: POD, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]"
    command = f"[bash, -c, 'torchrun --nnodes=2 --rdzv-backend=c10d --rdzv-endpoint={own}:29400 train.py']"
    assert found(indexed(command, env=env)) == [("REND011", 21)]


@pytest.mark.parametrize(
    ("options", "gpus", "rule"),
    [
        ("--nproc-per-node=8", 8, None),
        ("--nproc_per_node 8", 8, None),
        ("--nproc-per-node=gpu", 8, None),
        ("--nproc-per-node=$(N)", 8, None),
        ("--nproc-per-node=8", 4, "REND050"),
        ("--nproc_per_node 4", 8, "REND050"),
        ("", 8, "REND050"),
        ("", 1, None),
        ("", 0, None),
    ],
)
def test_ranks_of_a_node_against_its_gpus(options: str, gpus: int, rule: str | None) -> None:
    script = f"torchrun {options} --nnodes=2 --node-rank=$JOB_COMPLETION_INDEX --master-addr=train-0.train train.py"
    assert rules(indexed(f"[bash, -c, '{script}']", gpus=gpus)) == ({rule} if rule else set())


JOBSET = """\
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  replicatedJobs:
    - name: leader
      replicas: 1
      template: {spec: {template: {spec: {containers: [{name: a, command: %s}]}}}}
    - name: worker
      replicas: 1
      template:
        spec: {completions: 3, parallelism: 3, template: {spec: {containers: [{name: a, command: %s}]}}}
"""


def test_a_jobset_s_pods_are_counted_over_its_jobs() -> None:
    command = "[torchrun, --nnodes=%d, --rdzv-backend=c10d, --rdzv-endpoint=js-leader-0-0.js:1, t.py]"
    assert found(JOBSET % (command % 4, command % 4)) == []
    assert [rule for rule, _ in found(JOBSET % (command % 3, command % 3))] == ["REND040"]  # one cause, two jobs


def test_a_jobset_s_names_have_two_indices() -> None:
    command = "[torchrun, --nnodes=4, --rdzv-backend=c10d, --rdzv-endpoint=js-leader-0.js:1, t.py]"
    assert rules(JOBSET % (command, command)) == {"REND010"}


STATEFUL = """\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: train}
spec:
  serviceName: train
  replicas: 2
  template:
    metadata: {labels: {app: train}}
    spec:
      containers:
        - {name: a, command: [torchrun, --nnodes=2, --rdzv-backend=c10d, --rdzv-endpoint=train-%d.train:29400, t.py]}
"""


def test_a_stateful_set_names_its_pods_by_its_service() -> None:
    assert found(SERVICE.replace("job-name", "app") + STATEFUL % 0) == []
    assert found(SERVICE.replace("job-name", "app") + STATEFUL % 2) == [("REND010", 19)]
    assert rules(SERVICE + STATEFUL % 0) == {"REND004"}
    assert rules(STATEFUL % 0) == set()


def test_objects_of_a_list_are_read_too() -> None:
    text = "kind: List\napiVersion: v1\nitems:\n- " + (STATEFUL % 2).replace("\n", "\n  ").rstrip() + "\n"
    assert rules(text) == {"REND010"}


@pytest.mark.parametrize(
    ("kind", "role", "env", "rule"),
    [
        ("PyTorchJob", "Master", "MASTER_ADDR", "REND030"),
        ("PyTorchJob", "Worker", "MASTER_ADDR", None),  # without a Master the operator sets none of them
        ("TFJob", "Worker", "TF_CONFIG", "REND030"),
        ("PyTorchJob", "Master", "NCCL_DEBUG", None),
    ],
)
def test_variables_of_an_operator(kind: str, role: str, env: str, rule: str | None) -> None:
    field = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}[kind]
    text = textwrap.dedent(f"""\
        apiVersion: kubeflow.org/v1
        kind: {kind}
        metadata: {{name: train}}
        spec:
          {field}:
            {role}:
              replicas: 1
              template: {{spec: {{containers: [{{name: x, image: "r/x:1", env: [{{name: {env}, value: "{{}}"}}]}}]}}}}
        """)
    assert rules(text) == ({rule} if rule else set())


def test_a_sweep_over_an_index_is_no_gang() -> None:
    assert found(indexed("[python, train.py, --fold=$(JOB_COMPLETION_INDEX)]", gpus=1)) == []
    assert found(indexed("[python, train.py]", gpus=1)) == []
    assert found(indexed("[torchrun, train.py]", gpus=1)) == [("REND054", 21)]


INDEX = "valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['batch.kubernetes.io/job-completion-index']\"}}"


@pytest.mark.parametrize(
    ("world", "gpus", "expected"),
    [("2", 0, set()), ("2", 1, set()), ("16", 8, set()), ("1", 8, {"REND043"}), ("17", 8, {"REND043"})],
)
def test_a_world_is_its_pods_or_their_gpus(world: str, gpus: int, expected: set[str]) -> None:
    size = f"{{name: WORLD_SIZE, value: '{world}'}}"
    env = f"[{{name: MASTER_ADDR, value: train-0.train}}, {size}, {{name: RANK, {INDEX}}}]"
    assert rules(indexed("[python, train.py]", env=env, gpus=gpus)) == expected


def test_a_rank_is_a_number() -> None:
    name = "valueFrom: {fieldRef: {fieldPath: metadata.name}}"
    env = f"[{{name: MASTER_ADDR, value: train-0.train}}, {{name: RANK, {name}}}]"
    assert rules(indexed("[python, train.py]", env=env)) == {"REND025"}
    assert rules(indexed("[bash, -c, 'export RANK=${RANK##*-}; python train.py']", env=env)) == set()


def test_replicas_that_are_filled_in_later_are_not_counted() -> None:
    text = indexed(STATIC.format("train-0.train"))
    for each in ("${N}", "$N", "'{{n}}'", "<n>"):
        assert (
            found(
                text.replace("completions: 2", f"completions: {each}").replace("parallelism: 2", f"parallelism: {each}")
            )
            == []
        )


def test_the_jobs_of_a_jobset_may_be_gangs_of_their_own() -> None:
    command = "[torchrun, --nnodes=3, --rdzv-backend=c10d, --rdzv-endpoint=$(MASTER):1, t.py]"
    text = JOBSET.replace("replicas: 1\n      template:\n", "replicas: 2\n      template:\n") % (
        "[sleep, '1']",
        command,
    )
    assert "replicas: 2" in text
    assert found(text) == []


def test_a_server_in_several_pods_is_no_training() -> None:
    assert found(indexed("[python, server.py]", gpus=1)) == []
