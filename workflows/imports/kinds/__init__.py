"""From each kind of object to what trains in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from argosy.workflows.imports.account import Account
from argosy.workflows.imports.kinds.batch import job, jobset, volcano
from argosy.workflows.imports.kinds.kubeflow import mpi, pytorch, tensorflow, xgboost
from argosy.workflows.imports.kinds.ray import ray
from argosy.workflows.imports.kinds.trainer import trainer
from argosy.workflows.imports.source import Source
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.workload import Workload

Reader = Callable[[Workload, Bundle, Account], Source]

READERS: Final[Mapping[str, Reader]] = {
    "pytorch": pytorch,
    "tensorflow": tensorflow,
    "xgboost": xgboost,
    "mpi": mpi,
    "trainer": trainer,
    "jobset": jobset,
    "job": job,
    "volcano": volcano,
    "ray": ray,
}
"""Family of a workload -> its reader."""
