"""Our steps as ordinary Hera templates, to place among your own tasks.

Template names, inputs and outputs are public API (each function's docstring lists them); an input that has a
default may be left out. Every template is self-contained: security, volumes, retries.
"""

from argosy.workflows.templates.admit import admit
from argosy.workflows.templates.container import restricted
from argosy.workflows.templates.evaluate import evaluate
from argosy.workflows.templates.finalize import finalize
from argosy.workflows.templates.gate import gate
from argosy.workflows.templates.promote import promote
from argosy.workflows.templates.snapshot import snapshot
from argosy.workflows.templates.stage import stage
from argosy.workflows.templates.train import train

__all__ = ["admit", "evaluate", "finalize", "gate", "promote", "restricted", "snapshot", "stage", "train"]
