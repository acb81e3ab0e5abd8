"""A pod between its submission and its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.steps.pods.pod import Pod
from argosy.workflows.engine.artifacts import PodFiles
from argosy.workflows.engine.node import NodeState


def is_ours(command: Any) -> bool:
    """Whether a container runs one of our steps: those find their paths under the pod's root by themselves."""
    words = [str(word) for word in command or []]
    return (
        len(words) > 2
        and words[0] in ("python", "python3")
        and words[1] == "-m"
        and (words[2].startswith("argosy.steps."))
    )


@dataclass
class PodJob:
    """A node's pod: its processed template, where its files lie, and what is going to end it."""

    node: NodeState
    template: dict[str, Any]
    keep_result: bool
    folder: Path
    files: PodFiles | None = None
    termination_log: Path | None = None
    pod: Pod | None = None
    kill_at: float | None = None
    timed_out: bool = False

    @property
    def container(self) -> dict[str, Any]:
        """The container or script of the template."""
        found = self.template.get("container") or self.template["script"]
        return dict(found)
