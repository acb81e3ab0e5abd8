"""Data that every pod fetches for itself while its GPUs wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.pod import Pod
from argosy.workflows.lint.view.process import Process

_COPIES: Final = {
    "aws": ({"s3"}, {"sync", "cp"}),
    "gsutil": (set(), {"cp", "rsync"}),
    "gcloud": ({"storage"}, {"cp", "rsync"}),
    "s5cmd": (set(), {"cp", "sync"}),
    "azcopy": (set(), {"copy", "sync"}),
    "rclone": (set(), {"copy", "sync"}),
    "huggingface-cli": (set(), {"download"}),
    "hf": (set(), {"download"}),
}


@rule("STORE019", Level.NOTE, on=Pod)
def while_gpus_wait(pod: Pod, bundle: Bundle) -> Iterator[Problem]:
    """A pod holds its GPUs from the first init container on."""
    if pod.gpus == 0:
        return
    for container in pod.all_containers:
        for process in bundle.processes(container):
            if _fetches(process):
                text = " ".join(process.words[:3])
                yield Problem(
                    process.node,
                    f"{text} runs in a pod that already holds its GPUs, once per pod",
                    "stage the data once before the gang starts, on a volume that all pods mount or on the nodes",
                    inside=process.program if process.in_shell else "",
                )


def _fetches(process: Process) -> bool:
    needs = _COPIES.get(process.program)
    words = set(process.words[1:5])
    if needs is None or not needs[0] <= words or not needs[1] & words:
        return False
    return not _uploads(process)


def _uploads(process: Process) -> bool:
    """Whether the last place is the store, and not the disk."""
    places = [word for word in process.words[1:] if "://" in word or word.startswith(("/", ".", "$"))]
    return len(places) > 1 and "://" in places[-1]
