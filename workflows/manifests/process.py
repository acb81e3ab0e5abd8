"""What a container really starts: shells opened, launchers found, the environment that each of them has.

``["bash", "-c", "export NCCL_DEBUG=INFO && torchrun --nnodes=2 train.py"]`` is a process ``torchrun`` with the options
``nnodes`` and an environment of one more variable. Nothing is run and nothing is guessed: what a shell would have to
expand is left as it stands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.script import commands
from argosy.workflows.manifests.shell import SHELLS

_ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=(.*)", re.DOTALL)
_WRAPPERS: Final = ("exec", "env", "time", "nice", "nohup", "sudo", "numactl", "dumb-init", "tini")
# Options of a launcher that take no value; the word after any other option is its value.
_FLAGS: Final = frozenset(
    (
        *("standalone", "no-python", "no_python", "module", "m", "run-path", "virtual-local-rank", "allow-run-as-root"),
        *("tag-output", "use-env", "oversubscribe", "report-bindings", "display-map", "nooversubscribe", "verbose"),
        *("quiet", "multi-gpu", "use-deepspeed", "use-fsdp", "same-network"),
    )
)


# mpirun's options that take a name and a value.
_TWO_VALUES: Final = frozenset({"mca", "gmca", "pmixmca", "prtemca", "omca", "genv", "env"})


@dataclass(frozen=True, slots=True)
class Assignment:
    """A variable that a process gets besides the container's ``env``.

    Args:
        value: as written; None when it is forwarded by name or left to a shell.
        how: ``export``, ``prefix`` (``X=1 cmd``) or ``-x`` (mpirun).
        text: the piece of text that says so.
    """

    name: str
    value: str | None
    how: str
    node: Node
    text: str


@dataclass(frozen=True, slots=True)
class Process:
    """One command that a container starts.

    Args:
        program: the base name: ``torchrun`` (also for ``python -m torch.distributed.run``), ``mpirun``, ``python``, ….
        words: all words, the program first.
        node: the text that holds it.
        text: how it is written there, for the caret.
        assignments: variables set for it in the text.
        options: the program's own options, before its first operand; dashes for underscores.
        operands: the words after them: for a launcher the script (or ``-m``'s module) and its arguments.
        in_shell: whether a shell reads the words (``$X``, globs and redirections mean something).
    """

    program: str
    words: tuple[str, ...]
    node: Node
    text: str
    assignments: tuple[Assignment, ...] = ()
    in_shell: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    operands: tuple[str, ...] = ()

    def option(self, *names: str) -> str | None:
        """The value of the first of the options that is given, ``""`` for one without a value; dashes are ``-``.

        ``option("nnodes")`` finds ``--nnodes=2`` and ``--nnodes 2``; ``nproc-per-node`` also ``--nproc_per_node``.
        """
        return next((self.options[name] for name in names if name in self.options), None)


def processes(argv: list[Node], scripts: Mapping[str, Node] | None = None) -> list[Process]:
    """The commands of a container's argv.

    Args:
        argv: ``command`` and ``args``.
        scripts: text of files that can be run, by path (ConfigMaps that are mounted).
    """
    if not argv:
        return []
    words = [node.text for node in argv]
    found = script_index(words)
    if found is not None:
        return list(_in_script(argv[found].text, argv[found], scripts or {}))
    known = next((index for index, word in enumerate(words) if word in (scripts or {})), None)
    if known is not None and scripts and known <= 1:
        return list(_in_script(scripts[words[known]].text, scripts[words[known]], {}))
    # A whole command line as one word (ARGV001) is read as what was meant, so that the other rules can speak of it.
    meant = _split(words[0]) if re.search(r"\S\s+\S", words[0].strip()) and len(words) == 1 else words
    made = _process(meant, argv[0], "", [], in_shell=False)
    return [made] if made is not None else []


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def script_index(words: Sequence[str]) -> int | None:
    """Index of the word that a shell reads as a script (``sh -c WORD``); None when no shell reads one."""
    shell = next((index for index, word in enumerate(words[:4]) if word.rsplit("/", 1)[-1] in SHELLS), None)
    if shell is None:
        return None
    for later in range(shell + 1, len(words)):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", words[later]):  # bash -ecx: the order of the letters is free
            return _first_operand(words, later + 1)
        if not words[later].startswith(("-", "+")) and words[later] not in ("pipefail", "errexit"):
            return None
    return None


def _first_operand(words: Sequence[str], index: int) -> int | None:
    """Behind ``-c`` further options may stand, and ``--``; the word after them is the script."""
    while index < len(words) and re.fullmatch(r"--|[-+][a-zA-Z]+|pipefail|errexit", words[index]):
        index += 1
        if words[index - 1] == "--":
            break
    return index if index < len(words) else None


def _in_script(script: str, node: Node, scripts: Mapping[str, Node]) -> Iterator[Process]:
    exported: list[Assignment] = []
    for command in commands(script):
        text = command.text
        set_here, rest = _assignments(list(command.words), node)
        if rest and rest[0] in ("export", "declare", "typeset", "setenv"):
            exported.extend(_exports(rest[1:], node))
        elif not rest:
            exported.extend(set_here)
        elif rest[0].rsplit("/", 1)[-1] in SHELLS and len(rest) > 1 and rest[1] in scripts:
            yield from _in_script(scripts[rest[1]].text, scripts[rest[1]], {})
        elif rest[0] in scripts:
            yield from _in_script(scripts[rest[0]].text, scripts[rest[0]], {})
        else:
            made = _process(rest, node, text, [*exported, *set_here], in_shell=True)
            if made is not None:
                yield made


def _assignments(words: list[str], node: Node) -> tuple[list[Assignment], list[str]]:
    found, index = [], 0
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is not None:
            found.append(Assignment(match[1], _known(match[2]), "prefix", node, word))
        elif word not in _WRAPPERS:
            break
        index += 1
    return found, words[index:]


def _exports(words: list[str], node: Node) -> Iterator[Assignment]:
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is not None:
            yield Assignment(match[1], _known(match[2]), "export", node, word)


def _known(value: str) -> str | None:
    return None if re.search(r"[$`]", value) else value


def _process(
    words: list[str], node: Node, text: str, assignments: list[Assignment], *, in_shell: bool
) -> Process | None:
    found, rest = _assignments(words, node)
    if not rest:
        return None
    program, rest = _launcher(rest)
    assignments = [*assignments, *found]
    if program in ("mpirun", "mpiexec", "horovodrun", "orterun"):
        assignments.extend(_forwarded(rest, node))
    options, operands = _options(rest[2:] if program == "accelerate" else rest[1:])
    return Process(program, tuple(rest), node, text or program, tuple(assignments), in_shell, options, tuple(operands))


def program_of(words: Sequence[str]) -> str:
    """What a simple command starts, behind assignments and wrappers; ``torchrun`` also for its Python module."""
    rest = list(words)
    while rest and (rest[0] in _WRAPPERS or _ASSIGNMENT.fullmatch(rest[0])):
        rest = rest[1:]
    return _launcher(rest)[0] if rest else ""


def _launcher(words: list[str]) -> tuple[str, list[str]]:
    """(name, words) with ``python -m torch.distributed.run`` and its like under the name of the command."""
    program = words[0].rsplit("/", 1)[-1]
    if not re.fullmatch(r"python[\d.]*", program):
        return program, words
    modules = {
        "torch.distributed.run": "torchrun",
        "torch.distributed.launch": "torch.distributed.launch",
        "deepspeed.launcher.runner": "deepspeed",
        "accelerate.commands.launch": "accelerate",
    }
    for index, word in enumerate(words[:-1]):
        if word == "-m" and words[index + 1] in modules:
            return modules[words[index + 1]], words[index + 1 :]
    return "python", words


def _forwarded(words: list[str], node: Node) -> Iterator[Assignment]:
    for index, word in enumerate(words[:-1]):
        if word == "-x":
            name, given, value = words[index + 1].partition("=")
            yield Assignment(name, _known(value) if given else None, "-x", node, f"{word} {words[index + 1]}")


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """(options up to the script, the script and what follows): ``""`` for an option without a value."""
    found: dict[str, str] = {}
    index = 0
    while index < len(words):
        word = words[index]
        if not word.startswith("-") or word in ("-", "--"):
            break
        name, given, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        after = words[index + 1] if index + 1 < len(words) else ""
        if given:
            found.setdefault(name, value)
        elif name in _FLAGS or after.startswith("--") or not after:
            found.setdefault(name, "")
        else:
            found.setdefault(name, after)
            index += 2 if name in _TWO_VALUES else 1
        index += 1
    return found, words[index:]
