"""Images: which one runs, on all nodes alike."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.image import image
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.ranks import together, waits_for_all
from argosy.workflows.manifests.workload import Workload

_NOT_YET: Final = re.compile(r"<|\byour[-_]?|(?-i:^[A-Z0-9_]+$)", re.IGNORECASE)
"""A name that is still to be written."""


@rule("SEC013", Level.WARNING, on=Container)
def moving_tag(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``latest`` is whatever was pushed last when a node pulled it."""
    node = container.image
    if not node.text or node.open or not image(node.text).moves or _NOT_YET.search(node.text):
        return
    workload, main = bundle.workload(container.pod.document), container.pod.main
    ranks = main is not None and main.node.yaml is container.node.yaml and not container.init
    many = workload is not None and ranks and workload.gang and waits_for_all(workload, bundle)
    if many and workload is not None and workload.family != "ray":
        many = together(workload, bundle)
    what = "has no tag" if not image(node.text).tag else f"is tagged {image(node.text).tag}"
    why = "the nodes of the gang, and its restarts, may run different images" if many else "a restart may run another"
    yield Problem(
        node,
        f"{node.text} {what}: {why}",
        "name a version, best by its digest (…@sha256:…)",
        level=None if many else Level.NOTE,
    )


@rule("SEC015", Level.WARNING, on=Workload)
def different_images(workload: Workload) -> Iterator[Problem]:
    """Ranks of one gang run one image: PyTorch and NCCL must be the same on all."""
    if workload.family not in ("pytorch", "xgboost", "mpi"):
        return
    mains = [(role, role.pod.main) for role in workload.roles if not role.launcher]
    images = {main.image.text: (role, main) for role, main in mains if main is not None and main.image.text}
    if workload.family == "mpi" or len(images) < 2 or any(main.image.open for _, main in images.values()):
        return
    (first, _), (second, main) = [*images.values()][:2]
    yield Problem(
        main.image,
        f"{second.name} runs {main.image.text} and {first.name} another image: their PyTorch and NCCL may differ",
        "run one image in all ranks",
    )
