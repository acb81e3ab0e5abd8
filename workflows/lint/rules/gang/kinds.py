"""Kinds that keep pods alive, used for what should end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.launchers import LAUNCHERS
from argosy.workflows.manifests.pod import Pod
from argosy.workflows.manifests.process import Process
from argosy.workflows.manifests.training import named_training
from argosy.workflows.manifests.workload import Workload

# What takes work from a queue as it comes, by the name of its module or script.
_WAITS: Final = re.compile(r"worker|consumer|service|listener|scheduler|daemon|celery|watcher")
_ONE_TRAINING: Final = re.compile(
    r"(pre|re)?train(_(ddp|fsdp|dist\w*|multi\w*|model|mnist|llm|gpt|sft))?\.py|fine_?tune\.py"
)
_SERVES: Final = ("serve", "server", "api", "infer", "vllm", "triton", "gradio", "uvicorn")


def _stays(commands: list[Process], pod: Pod) -> bool:
    """Whether a script waits for ever behind its training, to be looked at or used again."""
    scripts = " ".join(each.script.text for each in pod.containers if each.script is not None)
    return re.search(r"sleep (inf|\d{5})|tail -f|while (true|:)", scripts) is not None and len(commands) > 1


def _surely_ends(process: Process) -> bool:
    """Whether a launcher starts what is named a training, or Python a script of that plain name."""
    if process.program in LAUNCHERS:
        return named_training(process.words)
    return any(_ONE_TRAINING.fullmatch(word.rsplit("/", 1)[-1]) for word in process.words)


@rule("GANG021", Level.WARNING, on=Workload)
def never_ends(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """A Deployment starts its containers again when they have ended well."""
    if workload.document.kind not in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
        return
    for role in workload.roles:
        commands = [process for each in role.pod.containers for process in bundle.processes(each)]
        for process in commands:
            if not (process.program in LAUNCHERS or (process.program == "python" and named_training(process.words))):
                continue
            if any(part in word.lower() for word in process.words for part in _SERVES) or _stays(commands, role.pod):
                continue
            named = [word for word in process.words if not word.startswith("-")][:2]
            if any(_WAITS.search(word.lower()) for word in named):
                continue
            yield Problem(
                workload.document.root["kind"],
                f"{process.program} in a {workload.document.kind}: a container that has ended is started again, so the "
                "training begins anew when it is done, and its failures are never counted",
                "use a JobSet, an Indexed Job or a TrainJob",
                # A script may serve, and be started by a launcher for it; what is named a training ends.
                level=None if _surely_ends(process) else Level.NOTE,
            )
            return
