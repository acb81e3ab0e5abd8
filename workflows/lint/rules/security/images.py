"""Images: which one runs, on all nodes alike."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.image import image
from argosy.workflows.lint.view.workload import Workload


@rule("SEC013", Level.WARNING, on=Container)
def moving_tag(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """``latest`` is whatever was pushed last when a node pulled it."""
    node = container.image
    if not node.text or node.open or not image(node.text).moves:
        return
    workload = bundle.workload(container.pod.document)
    many = workload is not None and workload.gang
    what = "has no tag" if not image(node.text).tag else f"is tagged {image(node.text).tag}"
    why = "the nodes of the gang, and its restarts, may run different images" if many else "a restart may run another"
    yield Problem(
        node,
        f"{node.text} {what}: {why}",
        "name a version, best by its digest (…@sha256:…)",
    )


@rule("SEC014", Level.NOTE, on=Container)
def pulled_always(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A fixed image that is asked for again at every start."""
    del bundle
    policy = container.node["imagePullPolicy"]
    name = container.image.text
    if policy.text == "Always" and name and not container.image.open and not image(name).moves and container.gpus:
        yield Problem(
            policy,
            f"imagePullPolicy: Always for {name}: no rank starts or restarts while the registry is down",
            "leave it out: a version that is on the node is then used as it is",
        )


@rule("SEC015", Level.WARNING, on=Workload)
def different_images(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """Ranks of one gang run one image: PyTorch and NCCL must be the same on all."""
    del bundle
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
