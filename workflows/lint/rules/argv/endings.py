"""How a script ends, and whether the pod ends as the training did.

A container's exit code is that of its last command: a Job, an operator and Argo see nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from argosy.workflows.lint.finding import Level, Problem
from argosy.workflows.lint.rule import also, rule
from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.document import Document
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.ranks import holds_only
from argosy.workflows.manifests.script import Command, commands
from argosy.workflows.manifests.training import trains
from argosy.workflows.manifests.workload import Workload

_FOREVER: Final = re.compile(r"(sleep (infinity|inf|\d+d|\d{6,})|tail -[fF])\b|while (true|:)")
_STRICT: Final = re.compile(r"-[a-z]*e[a-z]*")


def _training(container: Container) -> Iterator[tuple[Node, Sequence[Command], int]]:
    """(the script, its commands, index of the last one that trains); nothing where no shell runs a training."""
    if container.script is not None and not container.init:
        found = commands(container.script.text)
        numbers = (number for number in range(len(found) - 1, -1, -1) if trains(found[number].words))
        yield from ((container.script, found, number) for number in islice(numbers, 1))


def stops_at_errors(found: Sequence[Command], container: Container) -> bool:
    """Whether the shell ends at the first command that fails (``set -e``, ``sh -ec``)."""
    argv = [node.text for node in container.argv]
    by_option = any(_STRICT.fullmatch(word) for word in argv[1:3])
    by_name = "errexit" in argv
    return by_option or by_name or any(_sets(each, "e", "errexit") for each in found)


def keeps_pipe_errors(found: Sequence[Command], container: Container) -> bool:
    """Whether a pipe fails with any of its commands (``set -o pipefail``)."""
    given = [node.text for node in container.argv]
    looks = any("PIPESTATUS" in word for each in found for word in each.words)
    return looks or "pipefail" in given or any("pipefail" in each.words for each in found if each.name == "set")


def _sets(command: Command, letter: str, name: str) -> bool:
    words = command.words[1:] if command.name == "set" else ()
    return any(re.fullmatch(rf"-[a-z]*{letter}[a-z]*", word) for word in words) or name in words


@rule("ARGV040", Level.WARNING, on=Container)
def pipe(container: Container) -> Iterator[Problem]:
    """``train | tee log``: the exit code is tee's."""
    for script, held, index in _training(container):
        command = held[index]
        if command.after == "|" and not keeps_pipe_errors(held, container):
            follower = held[index + 1].name if index + 1 < len(held) else "the last command"
            if command.name.startswith("python") and (follower.startswith("python") or follower in ("jq", "xargs")):
                continue  # what it prints is data, and no log
            yield Problem(
                script,
                f"the exit code of the pipe is that of {follower}: a training that failed ends the container with 0",
                "write set -o pipefail before it (bash)",
                inside=_piece(command, f"| {follower}"),
            )


@rule("ARGV041", Level.WARNING, on=Container)
def swallowed(container: Container) -> Iterator[Problem]:
    """``|| true``, ``; exit 0``: a failure that nobody is told of."""
    for script, held, index in _training(container):
        following = held[index + 1 :]
        after = following[0] if following else None
        asked = index > 0 and held[index - 1].words == ("if", *held[index].words)
        harmless = all(each.depth or each.name in ("echo", "printf", "date") for each in following)
        if asked and harmless and not any(each.name in ("exit", "false", "return", "kill") for each in following):
            what = "if takes the training's failure for an answer, and the script ends well"
            yield Problem(script, what, "write exit 1 behind else", inside="if")
        if after is None:
            return
        chain = _chain(held, index)
        if chain and chain[-1].before == "||" and chain[-1].name not in ("exit", "false", "return", "kill", "break"):
            other = " ".join(chain[-1].words)[:40]
            yield Problem(
                script,
                f"|| {other} ends a training that failed with the exit code of {chain[-1].name}: it looks finished",
                "write if ! TRAINING; then …; exit 1; fi, or end it with || { …; exit 1; }",
                inside=_piece(held[index], "||"),
            )
            return
        ends = [each for each in following if each.depth == 0 and each.words == ("exit", "0") and each.before != "&&"]
        if (
            held[index].after == "||"
            and after.name in ("true", ":", "echo", "exit")
            and after.words[-1] not in ("1", "$?")
        ):
            shown = f"|| {' '.join(after.words)}"
            parts = sum((each.name, each.after) == (held[index].name, "||") for each in held)  # each of them may fail
            yield Problem(
                script,
                f"{shown} makes a training that failed look finished: the Job completes and nothing restarts it",
                f"take {shown} away",
                inside=_piece(held[index], "||"),
                level=Level.NOTE if parts > 1 else None,
            )
        elif ends and held[index].after in ("\n", ";") and not stops_at_errors(held, container):
            yield Problem(
                script,
                "exit 0 after the training hides its failure: the Job completes and nothing restarts it",
                "take exit 0 away",
                inside="exit 0",
            )


@also("ARGV041", on=Document)
def of_a_ray_job(document: Document) -> Iterator[Problem]:
    """The entrypoint of a RayJob, which a shell runs."""
    entrypoint = document.spec["entrypoint"] if document.kind == "RayJob" else None
    match = re.search(r"\|\| *(true|:|exit 0) *$", entrypoint.text.strip()) if entrypoint else None
    if entrypoint is not None and match is not None:
        what = f"{match[0]} makes a training that failed look finished: the RayJob succeeds"
        yield Problem(entrypoint, what, f"take {match[0]} away", inside=match[0])


@rule("ARGV042", Level.WARNING, on=Container)
def not_last(container: Container) -> Iterator[Problem]:
    """Commands behind the training whose exit code takes the place of the training's."""
    for script, held, index in _training(container):
        following = [each for each in held[index + 1 :] if each.depth == 0]
        handed_on = re.search(r"\b(exit|return|if|case|test|false|kill|trap)\b|\[", script.text) is not None
        looked_at = re.search(r"\$\?|\$\{?PIPESTATUS", script.text) is not None and handed_on
        looked_at = looked_at or re.search(r"trap\s|wait\s+[\w$%]", script.text) is not None
        if held[index].depth or held[index].after not in ("\n", ";", "&") or not following or looked_at:
            return
        last = following[-1]
        if held[index].after == "&" and last.words != ("wait",):
            return
        if stops_at_errors(held, container) or last.words == ("exit", "0") or _FOREVER.search(" ".join(last.words)):
            return
        yield Problem(
            script,
            f"the container ends with {last.name}'s exit code, not the training's: one that failed looks finished",
            "write wait $!"
            if last.name == "wait"
            else "begin the script with set -e, or make the training its last command",
            inside=_piece(held[index], ""),
        )


@rule("ARGV043", Level.WARNING, on=Container)
def never_ends(container: Container) -> Iterator[Problem]:
    """``sleep infinity`` behind the training: the GPUs stay taken and the Job never completes."""
    for script, held, index in _training(container):
        role = container.pod.role
        loop = next((each for each in _around(held, index) if _FOREVER.match(" ".join(each.words))), None)
        leaves = re.search(r"\b(break|exit|return)\b|set -[a-z]*e", script.text) is not None
        if loop is not None and not leaves and role is not None and role.job:
            head = " ".join(loop.words)
            what = f"the training stands in {head}: it begins anew when it is done, and the job never completes"
            yield Problem(script, what, "take the loop away, or leave it with break", inside=head)
        for command in held[index + 1 :]:
            match = _FOREVER.search(" ".join(command.words))
            if match is not None and command.before != "||" and command.depth == 0:
                yield Problem(
                    script,
                    f"{match[0]} after the training: the pod keeps its GPUs and never ends, so the job never completes",
                    "take it away; keep a pod for debugging with kubectl debug",
                    level=Level.NOTE if container.pod.document.kind == "Pod" else None,  # somebody works in it
                    inside=match[0],
                )
                return


@also("ARGV043", on=Workload)
def only_holds(workload: Workload, bundle: Bundle) -> Iterator[Problem]:
    """``sleep infinity`` and nothing else; MPI's workers and Ray's pods wait for others' work."""
    for role in workload.roles if workload.family not in ("mpi", "ray") else ():
        held = [(each, " ".join(process.words)) for each in role.pod.containers for process in bundle.processes(each)]
        for container, words in held if role.pod.gpus and holds_only(role, bundle) else ():
            if _FOREVER.search(words):
                what = f"{words} is all that the pod does: it keeps its GPUs until somebody deletes it"
                yield Problem(container.argv[0], what, "delete it when nobody works in it", level=Level.NOTE)
                break


@rule("ARGV044", Level.ERROR, on=Container)
def background(container: Container) -> Iterator[Problem]:
    """The training in the background of a script that ends at once."""
    for script, held, index in _training(container):
        at_once = all(each.name in ("echo", "printf", "exit", "true", ":", "date") for each in held[index + 1 :])
        if held[index].after == "&" and held[index].depth == 0 and at_once:
            yield Problem(
                script,
                "the training runs in the background and the script ends: the container ends with it, and kills it",
                "take the & away",
                inside=_piece(held[index], "&"),
            )


def _around(held: Sequence[Command], index: int) -> Iterator[Command]:
    """The heads of the statements that hold a command, the nearest first."""
    depth = held[index].depth
    for each in reversed(held[:index]):
        if each.depth < depth:
            depth = each.depth
            yield each


def _chain(held: Sequence[Command], index: int) -> list[Command]:
    """The commands that ``&&`` and ``||`` join to the training, where the script ends with them and has an ``||``."""
    end = index
    while end + 1 < len(held) and held[end].after in ("&&", "||"):
        end += 1
    rest = [each for each in held[end + 1 :] if each.name not in ("fi", "done", "}")]
    joined = list(held[index + 1 : end + 1])
    first_only = held[index].after == "||" and len(joined) == 1  # judged by its words below
    return joined if any(each.before == "||" for each in joined) and not rest and not first_only else []


def _piece(command: Command, wanted: str) -> str:
    """A piece of the command's line that can be found in the text."""
    if wanted and wanted in command.text:
        return wanted
    return command.text.split("  ")[0]
