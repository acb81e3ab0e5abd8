"""Small manifests against what is found in them: shared by the tests of several families."""

from __future__ import annotations

from argosy.workflows.lint.linter import lint
from argosy.workflows.manifests.reading import read_text

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: trainer
      image: registry.example/train:1.4.2
"""


def found(text: str, *families: str) -> list[tuple[str, str, int]]:
    """(rule, level, line) of what the families' rules find."""
    wanted = lint([read_text(text.encode(), "x.yaml")], lambda rule: rule.rstrip("0123456789") in families)
    return [(each.rule, each.level.word, each.line) for each in wanted]


def levels(text: str, rule: str) -> list[str]:
    """The levels of what one rule finds."""
    return [each[1] for each in found(text, rule.rstrip("0123456789")) if each[0] == rule]


def pod(container: str = "", spec: str = "") -> str:
    """A pod whose container and spec have these lines besides."""
    return POD + _indented(container, 6) + _indented(spec, 2)


def _indented(text: str, by: int) -> str:
    return "".join(f"{' ' * by}{line}\n" for line in text.strip("\n").splitlines())
