"""What a step may refer to: outputs of earlier nodes, one by one or as the lists of a loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.workflows.engine import rawjson
from argosy.workflows.engine.artifacts import SOURCES
from argosy.workflows.engine.gotext import from_json, json_text, rfc3339
from argosy.workflows.engine.node import SUCCEEDED, NodeState


@dataclass
class Scope:
    """``values``: dotted name -> text, None for the output of a node that was skipped (and has no default).

    ``artifacts``: dotted name -> stored artifact or raw text; nothing in it for one of a skipped step.
    """

    values: dict[str, str | None] = field(default_factory=dict)
    artifacts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of_template(cls, template: Mapping[str, Any]) -> Scope:
        """A scope that holds the template's own inputs."""
        scope = cls()
        inputs = template.get("inputs") or {}
        for parameter in inputs.get("parameters") or []:
            scope.values[f"inputs.parameters.{parameter['name']}"] = str(parameter["value"])
        for artifact in inputs.get("artifacts") or []:
            if any(source in artifact for source in SOURCES):
                scope.artifacts[f"inputs.artifacts.{artifact['name']}"] = artifact
        return scope

    def add_node(self, prefix: str, node: NodeState) -> None:
        """Everything of one node that can be referred to as ``PREFIX.…``."""
        self.values[f"{prefix}.id"] = node.id
        self.values[f"{prefix}.status"] = node.phase
        if node.started is not None:
            self.values[f"{prefix}.startedAt"] = rfc3339(node.started)
        if node.finished is not None:
            self.values[f"{prefix}.finishedAt"] = rfc3339(node.finished)
        if node.exit_code is not None:
            self.values[f"{prefix}.exitCode"] = str(node.exit_code)
        self.add_outputs(prefix, node.outputs)

    def add_outputs(self, prefix: str, outputs: Mapping[str, Any]) -> None:
        """Output parameters, result and artifacts."""
        if "result" in outputs:
            self.values[f"{prefix}.outputs.result"] = outputs["result"]
        self.add_values(prefix, outputs)

    def add_values(self, prefix: str, outputs: Mapping[str, Any]) -> None:
        """Output parameters and artifacts: all that a node's own hook may see of them."""
        for name, value in (outputs.get("parameters") or {}).items():
            self.values[f"{prefix}.outputs.parameters.{name}"] = value
        for name, stored in (outputs.get("artifacts") or {}).items():
            self.artifacts[f"{prefix}.outputs.artifacts.{name}"] = (
                stored if isinstance(stored, dict) else {"stored": stored}
            )

    def add_loop(self, prefix: str, nodes: Iterable[NodeState]) -> None:
        """The outputs of a loop's nodes as JSON lists, in the order of the loop.

        Raises:
            ExpressionError: a result is not JSON, which the controller refuses too.
        """
        kept = [node for node in nodes if not node.hooked and not node.retried]
        records, results = [], []
        lists: dict[str, list[str]] = {}
        for node in sorted(kept, key=lambda node: _index(node.name)):
            if node.phase != SUCCEEDED:
                continue
            parameters = node.output_parameters
            if parameters:
                records.append(parameters)
                for name, value in parameters.items():
                    lists.setdefault(name, []).append(value)
            if "result" in node.outputs:
                results.append(rawjson.compact(node.outputs["result"]))
        self.values[f"{prefix}.outputs.result"] = f"[{','.join(results)}]"
        self.values[f"{prefix}.outputs.parameters"] = json_text(records)
        for name, values in lists.items():
            self.values[f"{prefix}.outputs.parameters.{name}"] = json_text(_decoded(values))


def _index(name: str) -> int:
    found = re.search(r"\((\d+)(?::[^(]*)?\)?$", name) or re.search(r"\((\d+):", name)
    return int(found[1]) if found else 0


def _decoded(values: list[str]) -> list[Any]:
    """The values themselves if all of them are JSON lists or maps, else the texts."""
    decoded = []
    for value in values:
        try:
            found = from_json(value)
        except ValueError:
            return list(values)
        if not isinstance(found, dict | list):
            return list(values)
        decoded.append(found)
    return decoded
