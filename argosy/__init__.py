"""argosy: multi-node training on Argo Workflows that finishes.

``from argosy import TrainingRun`` at author time, ``from argosy import Checkpointer`` in a training script.
Names load on first use, so neither side imports the other's dependencies (hera and pydantic; torch and obstore).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argosy.steps.checkpointer.checkpointer import Checkpointer
    from argosy.steps.exact.data_parallel import ExactDataParallel
    from argosy.steps.exact.loader import ResumableLoader
    from argosy.steps.progress import report, skips
    from argosy.steps.stream.archives import ArchiveSamples
    from argosy.steps.stream.dataset import StreamingDataset
    from argosy.steps.stream.samples import LineSamples, ObjectSamples, RecordSamples
    from argosy.workflows.handle.handle import Handle, RunFailed, find
    from argosy.workflows.handle.training_run import TrainingRun

_WHERE = {
    "TrainingRun": "argosy.workflows.handle.training_run",
    "Handle": "argosy.workflows.handle.handle",
    "RunFailed": "argosy.workflows.handle.handle",
    "find": "argosy.workflows.handle.handle",
    "Checkpointer": "argosy.steps.checkpointer.checkpointer",
    "ExactDataParallel": "argosy.steps.exact.data_parallel",
    "ResumableLoader": "argosy.steps.exact.loader",
    "report": "argosy.steps.progress",
    "skips": "argosy.steps.progress",
    "StreamingDataset": "argosy.steps.stream.dataset",
    "ArchiveSamples": "argosy.steps.stream.archives",
    "LineSamples": "argosy.steps.stream.samples",
    "ObjectSamples": "argosy.steps.stream.samples",
    "RecordSamples": "argosy.steps.stream.samples",
}

__all__ = [
    "ArchiveSamples", "Checkpointer", "ExactDataParallel", "Handle", "LineSamples", "ObjectSamples", "RecordSamples",
    "ResumableLoader", "RunFailed", "StreamingDataset", "TrainingRun", "find", "report",
    "skips",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'argosy' has no attribute {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
