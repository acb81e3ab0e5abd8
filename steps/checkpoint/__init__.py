"""Checkpoints that are committed or are nothing: the log, the manifests and the store of one run. No torch here."""

from argosy.steps.checkpoint.log import Claim, CommitLog, Entry
from argosy.steps.checkpoint.manifest import Checkpoint, ShardFile
from argosy.steps.checkpoint.reader import CorruptCheckpoint
from argosy.steps.checkpoint.store import CheckpointStore

__all__ = [
    "Checkpoint",
    "CheckpointStore",
    "Claim",
    "CommitLog",
    "CorruptCheckpoint",
    "Entry",
    "ShardFile",
]
