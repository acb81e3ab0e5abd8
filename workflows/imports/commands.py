"""What a container starts: its argv, the shell scripts in it, and the wrappers around the program."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from argosy.workflows.manifests.bundle import Bundle
from argosy.workflows.manifests.environment import mounted_scripts
from argosy.workflows.manifests.node import Node
from argosy.workflows.manifests.pod import Container
from argosy.workflows.manifests.shell import SHELLS, Command, read_script
from argosy.workflows.manifests.word import Values, Word, fill, kubelet_filled, of_argv

_DEEPEST: Final = 4
# Programs that start another one: how many words of their own follow, besides options; None: up to `--` or an option's
# value, see _OPTIONS.
_WRAPPERS: Final[Mapping[str, int]] = {
    "exec": 0, "env": 0, "time": 0, "nohup": 0, "nice": 0, "sudo": 0, "numactl": 0, "stdbuf": 0, "tini": 0,
    "dumb-init": 0, "catatonit": 0, "timeout": 1, "taskset": 1, "command": 0, "ionice": 0, "setsid": 0,
}  # fmt: skip
_RUNNERS: Final = ("conda", "mamba", "micromamba", "poetry", "uv", "pipenv", "pdm", "hatch")
_VALUED: Final = {
    "-n": True, "--name": True, "-p": True, "--prefix": True, "-u": True, "-c": True, "-k": True, "-s": True,
    "--cwd": True, "--with": True, "--project": True, "--python": True, "--extra": True,
}  # fmt: skip


@dataclass(slots=True)
class Started:
    """What is started.

    Args:
        commands: in the order of the text.
        values: what variables hold at the beginning.
        whole: whether all of the script was understood.
        unread: the path of a script that lies in the image, so that nobody here can read it.
    """

    commands: list[Command] = field(default_factory=list)
    values: Values = field(default_factory=Values)
    whole: bool = True
    unread: str = ""


def container_commands(container: Container, bundle: Bundle) -> Started:
    """The commands of a container's ``command`` and ``args``."""
    known = {name: each.value for name, each in bundle.environment(container).items()}
    words = [of_argv(node, known) for node in container.argv if node.is_scalar]
    reading = _Reading(mounted_scripts(container, bundle), Values(known))
    reading.argv(words)
    return reading.found


def line_commands(line: Node, known: dict[str, str | None]) -> Started:
    """The commands of a line that a shell reads (a RayJob's entrypoint)."""
    reading = _Reading({}, Values(known))
    reading.script(line.text, line, 0)
    return reading.found


class _Reading:
    def __init__(self, scripts: Mapping[str, Node], values: Values) -> None:
        self._scripts = scripts
        self.found = Started(values=values)

    def argv(self, words: Sequence[Word]) -> None:
        if not words:
            return
        program, rest = peeled(words, self.found.values)[1:]
        if _base(program) in SHELLS:
            self._shell(rest)
            return
        path = rest[0].literal if rest else None
        if path is not None and path in self._scripts and not path.endswith(".py"):
            self.script(self._scripts[path].text, self._scripts[path], 0, rest)
            return
        if path is not None and path.endswith(".sh"):
            self.found.unread = path
        self.found.commands.append(Command(tuple(words), (), words[0].node, ""))

    def _shell(self, words: Sequence[Word]) -> None:
        """``bash -c SCRIPT NAME ARG…`` or ``bash FILE ARG…``."""
        for index, word in enumerate(words[1:], 1):
            text = word.literal
            if text is not None and re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", text) and index + 1 < len(words):
                script = words[index + 1]
                self.script(script.node.text, script.node, 0, words[index + 2 :])
                return
            if text in ("pipefail", "errexit", "nounset", "xtrace") or (text or "").startswith(("-", "+")):
                continue
            if text is not None and text in self._scripts:
                self.script(self._scripts[text].text, self._scripts[text], 0, words[index:])
            else:
                self.found.unread = word.source
                self.found.commands.append(Command(tuple(words), (), words[0].node, ""))
            return
        self.found.commands.append(Command(tuple(words), (), words[0].node, ""))

    def script(self, text: str, node: Node, depth: int, positional: Sequence[Word] = ()) -> None:
        """Read a script, and those that it calls and that are among the files."""
        values = self.found.values
        if positional:
            values.positional = tuple(each for word in positional for each in fill(word, values).words)
        commands, whole = read_script(kubelet_filled(text, values.known), node)
        self.found.whole = self.found.whole and whole
        for command in commands:
            inner = self._called(command)
            if inner is not None and depth < _DEEPEST:
                self.script(self._scripts[inner].text, self._scripts[inner], depth + 1)
                self.found.commands.append(replace(command, inside=command.inside or "read"))
            elif (line := _shell_line(command)) is not None and depth < _DEEPEST:
                self.script(line, node, depth + 1)
            else:
                self.found.commands.append(command)

    def _called(self, command: Command) -> str | None:
        """The script among the files that a command runs."""
        words = [word.literal for word in command.words[:3]]
        if words and words[0] is not None and (_base(words[0]) in SHELLS or words[0] in ("source", ".")):
            words = [word for word in words[1:] if word is not None and not word.startswith("-")]
        path = words[0] if words else None
        return path if path is not None and path in self._scripts and not path.endswith(".py") else None


def _shell_line(command: Command) -> str | None:
    """``bash -c '…'`` within a script."""
    words = [word.literal for word in command.words]
    if len(words) >= 3 and _base(words[0] or "") in SHELLS and re.fullmatch(r"-[a-z]*c", words[1] or ""):
        return words[2]
    return None


def peeled(words: Sequence[Word], values: Values) -> tuple[list[Word], str, list[Word]]:
    """(words of wrappers and ``X=1`` before the program, the program, it and its words)."""
    rest, off = list(words), 0
    while off < len(rest):
        name = _base(_first(rest[off], values))
        if name in _RUNNERS and off + 1 < len(rest) and rest[off + 1].literal in ("run", "exec"):
            off = _after_options(rest, off + 2)
        elif name in _WRAPPERS:
            off = _after_options(rest, off + 1) + _WRAPPERS[name]
        elif re.fullmatch(r"[A-Za-z_]\w*=.*", rest[off].source, re.DOTALL):
            off += 1
        else:
            break
    rest = rest[min(off, len(rest)) :]
    return list(words[:off]), _first(rest[0], values) if rest else "", rest


def _after_options(words: Sequence[Word], index: int) -> int:
    while index < len(words):
        text = words[index].source
        if text == "--":
            return index + 1
        if not text.startswith("-"):
            break
        index += 2 if _VALUED.get(text) else 1
    return index


def _first(word: Word, values: Values) -> str:
    return next(iter(fill(word, values).words), "")


def _base(program: str) -> str:
    return posixpath.basename(program)
