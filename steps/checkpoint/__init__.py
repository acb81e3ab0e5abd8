"""Checkpoints that are committed or are nothing: log, manifests, store, and the ``Checkpointer`` for scripts."""

from argosy.steps.checkpoint.checkpointer import Checkpointer, Restored
from argosy.steps.checkpoint.log import Claim, CommitLog, Entry
from argosy.steps.checkpoint.manifest import Checkpoint, ShardFile
from argosy.steps.checkpoint.opaque import FilesChanged
from argosy.steps.checkpoint.reader import CorruptCheckpoint
from argosy.steps.checkpoint.stopping import Stopped
from argosy.steps.checkpoint.store import CheckpointStore

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "Checkpointer",
    "Claim",
    "CommitLog",
    "CorruptCheckpoint",
    "Entry",
    "FilesChanged",
    "Restored",
    "ShardFile",
    "Stopped",
]
