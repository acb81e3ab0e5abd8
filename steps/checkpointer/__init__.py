"""``argosy.Checkpointer``: what a training script's ranks save and restore with."""

from argosy.steps.checkpointer.checkpointer import Checkpointer
from argosy.steps.checkpointer.restoring import Restored
from argosy.steps.checkpointer.stopping import Stopped

__all__ = ["Checkpointer", "Restored", "Stopped"]
