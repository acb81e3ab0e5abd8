"""Words, shells, variables and endings of a container's command: small manifests, both ways."""

from __future__ import annotations

import pytest

from argosy.workflows.lint.finding import Level, SetValue
from argosy.workflows.lint.fix.text import Text
from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text
from argosy.workflows.manifests.script import commands

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: trainer
"""


def findings(body: str, head: str = POD) -> list[tuple[str, str]]:
    """(rule, level) of the family's findings, notes left out."""
    text = head + "".join(f"      {line}\n" for line in body.splitlines())
    found = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule.startswith("ARGV"))
    return [(each.rule, each.level.word) for each in found if each.level > Level.NOTE]


@pytest.mark.parametrize(
    "body",
    [
        "command: [torchrun, train.py]",
        'command: [bash, -c, "cd /app && torchrun train.py"]',
        'command: ["/bin/bash", "-lc", "--"]\nargs: ["ulimit -n 65536; $START"]',
        'command: [bash, -euo, pipefail, -c, "python train.py | tee log"]',
        'command: [tini, --, bash, -c, "torchrun train.py"]',
        'command: ["/bin/sh", "-c", "exec \\"$0\\" \\"$@\\"", "python", "train.py"]',
        'command: [sh]\nargs: [-c, "while true; do nvidia-smi; sleep 10; done"]',
        'command: [python, -c, "import torch; print(1 | 2) && 3"]',
        'command: [find, /data, -name, "*.bin"]',
        "command: [sleep, infinity]",
        "command: [bash, /scripts/train.sh, --lr, '0.1']",
        'args: ["--prompt", "two words"]',
        "command: [python, train.py, $(POD)]\nenv: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]",
        "command: [python, train.py, $$(NOT_A_REFERENCE)]",
        "command: [python, train.py, $(FROM)]\nenvFrom: [{configMapRef: {name: elsewhere}}]",
        "command: [python, train.py, $(REDIS_SERVICE_HOST)]",
        "command: [python, train.py]\nenv: [{name: A, value: a}, {name: B, value: $(A)/b}]",
        'command: [python, train.py]\nenv: [{name: A, value: ""}, {name: B}]',
        'command: [bash, -c, "echo $(date) $(hostname) && python train.py"]',
        'command: [bash, -c, "set -e; python train.py; echo done"]',
        'command: [bash, -c, "python train.py; code=$?; upload; exit $code"]',
        'command: [bash, -c, "python train.py & wait $!"]',
        'command: [bash, -c, "python prepare.py || true; python train.py"]',
        'command: [bash, -c, "python train.py && echo done"]',
        'command: [bash, -c, "python train.py || exit 1"]',
        "command: [torchrun, --nnodes, '2', --nproc_per_node=8, train.py, --lr, '0.1']",
        "command: [torchrun, --no-python, python, -u, train.py]",
        "env: [{name: A, value: 2026-11-22}, {name: B, value: 12:30}, {name: C, value: 1.2.3}]",
        "env: [{name: A, value: '1e-4'}, {name: B, value: 'yes'}]",
        "command: [torchrun, --nproc-per-node=8, -m, pkg.train, --nnodes-of-the-graph=3]",
        "command: [accelerate, launch, --config_file, a.yaml, train.py]",
        "env: [{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.annotations['a/b']\"}}}]",
    ],
)
def test_what_works_is_left_alone(body: str) -> None:
    assert findings(body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('command: ["python train.py"]', ("ARGV001", "error")),
        ('args: ["python train.py"]', ("ARGV001", "warning")),
        ('command: ["python"]\nargs: ["train.py", "--lr 0.1"]', ("ARGV002", "warning")),
        ("command: [python, train.py, 3]", ("ARGV003", "error")),
        ("command: python train.py", ("ARGV003", "error")),
        ("command: [python, train.py, {a: b}]", ("ARGV003", "error")),
        ("command: [python, train.py, '|', tee, log]", ("ARGV010", "warning")),
        ("command: [ls, /data/*.bin]", ("ARGV010", "warning")),
        ("command: [bash, -c, python, train.py]", ("ARGV011", "error")),
        ('command: [bash, "python train.py"]', ("ARGV011", "error")),
        ("command: [python, train.py, $A]\nenv: [{name: A, value: b}]", ("ARGV021", "warning")),
        ("env: [{name: LD_LIBRARY_PATH, value: '/x:$LD_LIBRARY_PATH'}]", ("ARGV022", "warning")),
        ("env: [{name: A, value: $(B)}, {name: B, value: b}]", ("ARGV023", "error")),
        ("env: [{name: A, value: $(B)}]", ("ARGV023", "warning")),
        ("env: [{name: A, value: true}]", ("ARGV030", "error")),
        ("env: [{name: A, value: [1]}]", ("ARGV030", "error")),
        ("env: [{name: LR, value: 1e-4}]", ("ARGV030", "error")),
        ("env: [{name: A, value: y}]", ("ARGV030", "error")),
        ("command: [python, train.py, --lr, 3e-5]", ("ARGV003", "error")),
        ("env: [{name: A, value: v}, {name: A, value: w}]", ("ARGV032", "warning")),
        ("command: [torchrun, --standalone, python, train.py]", ("ARGV014", "error")),
        ('command: [bash, -c, "deepspeed --num_gpus 8 python3 train.py"]', ("ARGV014", "error")),
        ('command: [bash, -c, "python train.py 2>&1 | tee log"]', ("ARGV040", "warning")),
        ('command: [bash, -c, "python train.py || true"]', ("ARGV041", "warning")),
        ('command: [bash, -c, "torchrun train.py; exit 0"]', ("ARGV041", "warning")),
        ('command: [bash, -c, "torchrun train.py; echo done"]', ("ARGV042", "warning")),
        ('command: [bash, -c, "nohup torchrun train.py > log 2>&1 &"]', ("ARGV044", "error")),
        ("command: [bash, -c]\nargs:\n  - >\n    torchrun \\\n    train.py", ("ARGV050", "error")),
    ],
)
def test_what_does_not_is_found(body: str, expected: tuple[str, str]) -> None:
    assert findings(body) == [expected]


def test_a_template_for_envsubst_is_not_judged_by_its_placeholders() -> None:
    head = POD.replace("name: train}", "name: $NAME}")
    body = "command: [torchrun, --nnodes=$NODES, train.py]\nenv: [{name: TOKEN, value: '${TOKEN}'}]"
    assert findings(body, head) == []
    own = "command: [torchrun, --nnodes=$NODES, train.py]\nenv: [{name: NODES, value: '2'}]"
    assert findings(own, head) == []


def test_a_script_of_argo_is_a_script() -> None:
    head = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: x}
spec:
  templates:
    - name: a
"""
    body = "script:\n  image: x\n  command: [bash]\n  source: |\n    python train.py | tee log"
    assert findings(body, head) == [("ARGV040", "warning")]
    assert findings(body.replace("bash", "python"), head) == []


def test_the_mend_of_a_command_line_is_its_words() -> None:
    text = POD + '      command: ["python train.py --lr=0.1"]\n'
    (found,) = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule == "ARGV001")
    (edit,) = found.edits
    assert isinstance(edit, SetValue)
    assert edit.value == ["python", "train.py", "--lr=0.1"]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a b; c", [("a", "b"), ("c",)]),
        ("a \\\n  b", [("a", "b")]),
        ("a 2>&1 | b", [("a",), ("b",)]),
        ("a --x=$(b | c; d) e", [("a", "--x=$(b | c; d)", "e")]),
        ("cat <<EOF > f\nit's; not | read\nEOF\na", [("cat",), ("a",)]),
        ("python -c '\nimport x; y\n'\na", [("python", "-c", "\nimport x; y\n"), ("a",)]),
        ("# it's a comment\na", [("a",)]),
        ("echo it's\na b", [("echo", "it")]),  # the quote is never closed: no shell runs a
        ("X=1 a 'b'\nexport Y=\"$Z\"", [("X=1", "a", "b"), ("export", "Y=$Z")]),
        ("while true; do a; done", [("while", "true"), ("true",), ("a",)]),
        ("if [ -f /x ]; then a; fi", [("if", "[", "-f", "/x", "]"), ("[", "-f", "/x", "]"), ("a",)]),
    ],
)
def test_a_script_is_read_as_a_shell_would(script: str, expected: list[tuple[str, ...]]) -> None:
    assert [each.words for each in commands(script)] == expected


def test_a_number_to_kubernetes_is_mended_with_quotes() -> None:
    text = POD + "      env: [{name: LR, value: 1e-4}]\n"
    (found,) = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule == "ARGV030")
    (edit,) = found.edits
    change = Text(text).change(edit)
    assert text[: change.start] + change.new + text[change.end :] == text.replace("1e-4", '"1e-4"')
