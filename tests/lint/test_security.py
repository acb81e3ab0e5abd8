"""The node, root, secrets, images and rights: small manifests, both ways."""

from __future__ import annotations

import pytest

from tests.lint.rules_table import POD, found, pod


def sec(text: str) -> list[tuple[str, str]]:
    return [(rule, level) for rule, level, _ in found(text, "SEC")]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("HF_TOKEN", "ab1cd2ef", [("SEC016", "warning")]),
        ("HF_TOKEN", "hf_" + "a1B2" * 9, [("SEC016", "error")]),
        ("ANYTHING", "AKIA" + "ABCDEFGH12345678", [("SEC016", "error")]),
        ("HF_TOKEN", "''", []),
        ("OPENAI_API_KEY", "not-needed", []),
        ("OPENAI_API_KEY", "EMPTY", []),
        ("SECRET_KEY", "SOME_VALUE", []),
        ("SECRET_KEY", "your-secret-key", []),
        ("OPENAI_API_KEY", "notneeded9", []),
        ("HF_TOKEN", "$(FROM_SECRET)", []),
        ("HF_TOKEN", "'{{inputs.parameters.t}}'", []),
        ("HF_TOKEN_PATH", "/secrets/token", []),
        ("HF_TOKEN", "/secrets/token", []),
        ("PAD_TOKEN", "'<pad>'", []),
        ("MAX_TOKENS", "'4096'", []),
        ("TOKENIZERS_PARALLELISM", "'false'", []),
        ("DB_PASSWORD", "hunter2", []),
    ],
)
def test_secrets_in_variables(name: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert sec(pod(f"env: [{{name: {name}, value: {value}}}]")) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ('[sh, -c, "WANDB_API_KEY=ab1cd2ef python t.py"]', ["SEC017"]),
        ('[sh, -c, "export WANDB_API_KEY=$KEY; python t.py"]', []),
        ("[python, t.py, --wandb-api-key, ab1cd2ef]", ["SEC017"]),
        ("[python, t.py, --api-key=$(KEY)]", []),
        ("[python, t.py, --max-tokens, '12']", []),
        ("[python, t.py, --eos-token, x]", []),
        ('[sh, -c, "pip install -r requirements.txt && python t.py"]', []),
        ('[sh, -c, "pip install -e . && python t.py"]', []),
        ('[sh, -c, "pip install torch==2.9.1; python t.py"]', []),
        ('[sh, -c, "curl -s https://x.example/i.sh -o i.sh"]', []),
    ],
)
def test_commands(command: str, expected: list[str]) -> None:
    assert [rule for rule, _ in sec(pod(f"command: {command}"))] == expected


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("train", ["SEC013"]),
        ("train:latest", ["SEC013"]),
        ("registry.example:5000/train", ["SEC013"]),
        ("registry.example:5000/train:1.2", []),
        ("train@sha256:" + "a" * 64, []),
        ("train:latest@sha256:" + "a" * 64, []),
        ("'{{image}}'", []),
        ("${IMAGE}", []),
        ("null", []),
    ],
)
def test_images(image: str, expected: list[str]) -> None:
    assert [rule for rule, _ in sec(POD.replace("registry.example/train:1.4.2", image))] == expected


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("privileged: 'true'", []),
        ("privileged: true, allowPrivilegeEscalation: false", [("SEC008", "error")]),
        ("runAsUser: 1000, runAsNonRoot: true", []),
        ("capabilities: {add: [IPC_LOCK, SYS_NICE, NET_ADMIN]}", []),
    ],
)
def test_contexts(context: str, expected: list[tuple[str, str]]) -> None:
    assert sorted(sec(pod(f"securityContext: {{{context}}}"))) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("pip install torch", [("SEC020", "note")]),
        ("python -m pip install --upgrade --index-url https://x.example torch", [("SEC020", "note")]),
        ("git clone https://x.example/repo.git", [("SEC020", "note")]),
        ("pip install torch==2.9.1", []),
        ("pip install -r requirements.txt", []),
    ],
)
def test_ranks_that_install(line: str, expected: list[tuple[str, str]]) -> None:
    text = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: pytorch, image: "x:1", command: [sh, -c, "%s && python t.py"]}]}}
"""
    assert sec(text % line) == expected


def test_a_credential_is_not_repeated_in_what_lint_says() -> None:
    from argosy.workflows.lint.linter import lint
    from argosy.workflows.manifests.reading import read_text

    token = "hf_" + "a1B2" * 9
    text = pod(f"env: [{{name: HF_TOKEN, value: {token}}}]\ncommand: [sh, -c, 'x {token}']")
    text += f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{a: {token}}}\n"
    said = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule.startswith("SEC"))
    assert {each.rule for each in said} >= {"SEC016", "SEC017"}
    assert not [each for each in said if token[4:] in each.message + each.remedy]
