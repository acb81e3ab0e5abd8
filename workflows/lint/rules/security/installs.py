"""Software that is fetched when the pod starts."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.process import Process


@rule("SEC020", Level.NOTE, on=Container)
def at_start(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Ranks that install what the index has at that moment."""
    workload = bundle.workload(container.pod.document)
    if workload is None or not workload.gang:
        return
    found = [(process, loose) for process in bundle.processes(container) if (loose := _loose(process))]
    if found:
        (process, loose), more = found[0], f" (and {found[1][1]}, …)" if len(found) > 1 else ""
        yield Problem(
            process.node,
            f"each rank installs {loose}{more} when it starts, in whatever version there is then: they may differ",
            "build it into the image, or pin the version (name==1.2.3, a commit, a lock file with hashes)",
            inside=loose if process.in_shell else "",
        )


def _loose(process: Process) -> str:
    """The first thing without a version that a command installs; ``""`` for none."""
    words = list(process.words)
    if process.program == "git" and "clone" in words:
        return next((word for word in words if "://" in word or word.startswith("git@")), "")
    if "install" not in words[:5] or not ({"pip", "pip3", "uv"} & {*words[:4], process.program}):
        return ""
    rest = words[words.index("install") + 1 :]
    takes_value = {"-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "-t"}
    for before, word in zip(["", *rest], rest, strict=False):
        if word.startswith(("-", ".", "/", "$", ">", "2>")) or before in takes_value or word.endswith((".whl", ".txt")):
            continue
        return "" if "==" in word or "@" in word else word
    return ""
