"""What manifests of public recipes and guides hold, in small: placeholders, odd layouts, faults that stay silent."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import found, pod

JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {{name: train}}
spec:
  completionMode: Indexed
  completions: {count}
  parallelism: {count}
  backoffLimit: 0
  template:
    metadata: {{labels: {{app: train}}}}
    spec:
      restartPolicy: Never
      subdomain: train
      containers:
        - name: trainer
          image: {image}
          command: {command}
          resources:
            limits:
              nvidia.com/gpu: {gpus}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{clusterIP: {ip}, publishNotReadyAddresses: true, selector: {{app: {app}}}}}
---
"""
FAMILIES = ("API", "ARGV", "MEM", "REND", "SEC", "YAML")


def job(count: str = "2", image: str = "a/b:1", command: str = "[sleep, '1']", gpus: str = "8") -> str:
    return JOB.format(count=count, image=image, command=command, gpus=gpus)


@pytest.mark.parametrize("value", ["$NODES", "${NODES}", "__NUM_NODES__", "PLACEHOLDER_NODES", "<nodes>"])
def test_a_placeholder_is_no_error(value: str) -> None:
    text = job(count=value, gpus=value, image=value)
    assert not [each for each in found(text, *FAMILIES) if each[1] == "error"]


@pytest.mark.parametrize("flags", ["-c", "-ec", "-ecx", "-xc", "-lce", "-euo pipefail -c"])
def test_the_letters_of_a_shell_stand_in_any_order(flags: str) -> None:
    words = ", ".join(f'"{each}"' for each in flags.split())
    assert not found(pod(f'command: [bash, {words}, "echo a b; exec python prepare.py"]'), "ARGV")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('[daemon, --setup_param, "--verbose 128 2 0"]', []),
        ('[daemon, run, "--verbose 128"]', [("ARGV002", "note")]),
        ('[mpirun, "-x NCCL_DEBUG=INFO", python, prepare.py]', [("ARGV002", "warning")]),
        ('[mpirun, -mca, plm_rsh_args, "-p 2222", python, prepare.py]', []),
    ],
)
def test_an_option_and_its_value_in_one_word(command: str, expected: list[tuple[str, str]]) -> None:
    assert [each[:2] for each in found(pod(f"command: {command}"), "ARGV")] == expected


def test_a_command_line_in_one_word_is_judged_as_what_was_meant() -> None:
    line = '["torchrun --nnodes=2 --nproc_per_node=8 --master_addr=train-0.train train.py"]'
    rules = {
        each[0]
        for each in found(SERVICE.format(name="train", ip="None", app="train") + job(command=line), "ARGV", "REND")
    }
    assert {"ARGV001", "REND020"} <= rules


@pytest.mark.parametrize("launcher", ["[torchrun", "[python, -m, torch.distributed.launch"])
def test_one_node_rank_for_all_pods(launcher: str) -> None:
    command = f"{launcher}, --nnodes=2, --node_rank=0, --nproc_per_node=8, --master_addr=train-0.train, train.py]"
    assert "REND020" in {each[0] for each in found(job(command=command), "REND")}


@pytest.mark.parametrize(
    ("first", "second", "level"),
    [
        ("a: '3'", "a: '3'", "note"),
        ("a: '3'", "a: '4'", "warning"),  # kubectl takes the last
        ("a: ['3']", "a: ['4', '5']", "warning"),
        ("a: [{b: '3'}]", "a: [{c: '4'}]", "warning"),
        ("a: {b: '3'}", "a: {c: '4'}", "warning"),
    ],
)
def test_a_key_twice_is_worse_where_it_loses_something(first: str, second: str, level: str) -> None:
    text = f"apiVersion: example.org/v1\nkind: Any\nmetadata: {{name: c}}\ndata:\n  {first}\n  {second}\n"
    assert [each[:2] for each in found(text, "YAML")] == [("YAML002", level)]


@pytest.mark.parametrize(
    ("mount", "options", "expected"),
    [("/checkpoints", "", 1), ("/ckpt", "--save /ckpt/run", 1), ("/scratch", "", 0), ("/data/checkpoints", "", 1)],
)
def test_checkpoints_in_an_emptydir(mount: str, options: str, expected: int) -> None:
    container = (
        f'command: [sh, -c, "exec torchrun train.py {options}"]\nresources: {{limits: {{nvidia.com/gpu: 1}}}}\n'
        f"volumeMounts: [{{name: v, mountPath: {mount}}}]"
    )
    rules = [each[0] for each in found(pod(container, "volumes: [{name: v, emptyDir: {}}]"), "STORE")]
    assert rules.count("STORE015") == expected


@pytest.mark.parametrize("rest", ["  ...\n  b: {}\n", "  image: ...  # yours\n  replicas: x\n"])
def test_what_a_page_left_out_makes_no_error(rest: str) -> None:
    text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: c}\nspec:\n  paused: false\n" + rest
    assert "error" not in {each[1] for each in [*found(text, "YAML"), *found(text, "API")]}
