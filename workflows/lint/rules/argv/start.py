"""What happens before and around the training in its container."""

from __future__ import annotations

from collections.abc import Iterator

from argosy.workflows.lint.bundle import Bundle
from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import rule
from argosy.workflows.lint.rules.argv.endings import training
from argosy.workflows.lint.view.container import Container
from argosy.workflows.lint.view.script import Command

_INSTALLERS = {
    "pip": "install",
    "pip3": "install",
    "uv": "pip",
    "conda": "install",
    "apt-get": "install",
    "apt": "install",
}


@rule("ARGV060", Level.NOTE, on=Container)
def installs(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """Packages that are installed at every start."""
    del bundle
    found = training(container)
    if found is None or container.script is None:
        return
    for command in found[0][: found[1]]:
        what = _installed(command)
        if what:
            yield Problem(
                container.script,
                f"{what} at every start, in every pod and after every restart: another version each time, "
                "GPUs that wait, and a failure when the index is away",
                "put the packages into the image",
                inside=what,
            )
            return


def _installed(command: Command) -> str:
    words = [word for word in command.words if word not in ("sudo", "python", "python3", "-m")]
    if len(words) < 2 or _INSTALLERS.get(words[0]) != next(
        (word for word in words[1:] if not word.startswith("-")), ""
    ):
        return ""
    at = command.text.find(words[0])
    return command.text[at:].split("&")[0].split(";")[0].strip()[:40].rstrip() if at >= 0 else ""


@rule("ARGV061", Level.NOTE, on=Container)
def first_process(container: Container, bundle: Bundle) -> Iterator[Problem]:
    """A shell as process 1 passes no SIGTERM on."""
    del bundle
    found = training(container)
    if found is None or container.script is None:
        return
    held, index = found
    command = held[index]
    if "exec" in command.words[:3] or len(held) == 1 or "trap" in container.script.text or command.after in ("&", "|"):
        return
    first = container.argv[0].text.rsplit("/", 1)[-1] if container.argv else ""
    if first in ("tini", "dumb-init") or container.pod.spec["shareProcessNamespace"].flag:
        return
    yield Problem(
        container.script,
        "the shell is process 1 and does not pass SIGTERM on: an evicted training is killed without a last checkpoint",
        "write exec before the training command",
        inside=command.text.split("  ")[0],
    )
