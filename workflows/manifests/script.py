"""A shell script as lint's rules read it: plain words, and what stands between the commands."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from argosy.workflows.manifests.node import Node, Origin
from argosy.workflows.manifests.shell import Command as Read
from argosy.workflows.manifests.shell import read_statements

MOST_COMMANDS: Final = 400
"""Commands of one script that are looked at: each has an environment of its own, and no container starts so many."""
LONGEST: Final = 128 << 10
"""Characters of one script that are read: Linux takes no longer word on a command line (MAX_ARG_STRLEN)."""
_NOWHERE: Final = Node(None, Origin(""))


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command, or the head of a statement that holds some (``while true``).

    Args:
        words: as the shell passes them but for what it would expand; assignments first, no redirections.
        text: the line it stands on (joined lines as one), for the caret.
        before: what separates it from the command before: ``\\n``, ``;``, ``&&``, ``||``, ``|``, ``&`` or ``""``.
        after: what separates it from the next.
        depth: 0 at the top level, more inside of ``if``, loops, functions and subshells.
    """

    words: tuple[str, ...]
    text: str
    before: str
    after: str
    depth: int

    @property
    def name(self) -> str:
        """The first word's base name."""
        return self.words[0].rsplit("/", 1)[-1]


@lru_cache(maxsize=1024)  # many rules ask for the same script, one after the other
def commands(script: str) -> tuple[Command, ...]:
    """The simple commands of a script in order."""
    found, _ = read_statements(script[:LONGEST], _NOWHERE)
    made = (Command(_words(each), each.line, each.before, each.after, each.depth) for each in found[:MOST_COMMANDS])
    return tuple(each for each in made if each.words)


def _words(command: Read) -> tuple[str, ...]:
    words = [word.source for word in command.words]
    if command.part.startswith("[") and len(words) == 1:
        words = words[0].split()
    set_here = [f"{each.value.part.partition('=')[0]}={each.value.source}" for each in command.assignments]
    exports = ["export"] if not words and any(each.exported for each in command.assignments) else []
    return (*exports, *set_here, *words)
