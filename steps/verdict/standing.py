"""Who holds the others up in a hang: from what every rank printed of its stacks, and from its process' state."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from argosy.steps.contract.channel import Ending

_FRAME = re.compile(r'^\s+File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+)$')
_CURRENT = "Current thread "
_NOT_THEIRS = re.compile(r"site-packages/|dist-packages/|/lib/python3|/argosy/(steps|workflows)/|^<")
_WAITING = re.compile(r"/torch/(distributed|autograd|cuda|nn/parallel)/|/deepspeed/comm/|/horovod/|/argosy/steps/")
"""Library code in which a rank stands that waits for its peers."""
_OF_A_SOCKET = ("inet_csk_accept", "wait_woken", "sk_wait_data")
"""Where the kernel lets a process sleep that waits for another machine."""
_STATES = {
    "T": "was stopped by a signal (state T)",
    "t": "is held by a debugger (state t)",
    "D": "waits in the kernel, for a disk or a driver (state D)",
}
"""/proc/PID/stat, https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html"""


_MOST_PLACES = 3  # more of them are in the ranks' logs


@dataclass(frozen=True)
class Standing:
    """Where a rank stands: the innermost line of its own code, and whether it waits for peers below that."""

    rank: int
    place: str
    waits: bool
    state: str

    @property
    def text(self) -> str:
        """For people."""
        where = f"stands at {self.place}" if self.place else "printed no Python stack"
        return f"{_STATES[self.state]} and {where}" if self.state in _STATES else where


def standing_of(ending: Ending) -> Standing:
    """From the stacks that Python's faulthandler wrote at the end of the rank's output, innermost frame first."""
    place, waits, inside = "", False, False
    for line in ending.tail:
        if line.startswith(_CURRENT):
            place, waits, inside = "", False, True
        elif inside and not place and (frame := _FRAME.match(line)):
            if _NOT_THEIRS.search(frame["file"]):
                waits = waits or bool(_WAITING.search(frame["file"]))
            else:
                place = f"{frame['file'].rpartition('/')[2]}:{frame['line']} in {frame['name']}"
    return Standing(ending.rank, place, waits, ending.state)


def one_apart(endings: Sequence[Ending]) -> Standing | None:
    """The one rank that the others wait for; None when they do not tell.

    In this order: the only one that was stopped or waits in the kernel; the only one that does not wait for its peers;
    of three and more that all wait, or none of which does, the only one at another line than all the others.
    """
    stand, asleep = [standing_of(ending) for ending in endings], set[int]()
    if not any(each.waits for each in stand):
        # No library that is known here lets them meet: the script's own sockets do.
        asleep = {ending.rank for ending in endings if ending.sleeps_in in _OF_A_SOCKET}
        stand = [replace(each, waits=each.rank in asleep) for each in stand]
    places = Counter(each.place for each in stand)
    # The lines of sockets say nothing: who adds up stands at another one than who is told the sum.
    comparable = not asleep and len(stand) > 2 == len(places) and len({each.waits for each in stand}) == 1
    kinds = (
        [each for each in stand if each.state in _STATES],
        [each for each in stand if each.place and not each.waits],
        [each for each in stand if comparable and each.place and places[each.place] == 1],
    )
    return next((kind[0] for kind in kinds if len(kind) == 1 and len(stand) > 1), None)


def where_all_stand(endings: Sequence[Ending]) -> str:
    """As the end of a sentence, of a hang in which nobody is apart: the places of all, where these are few."""
    places: dict[str, list[int]] = {}
    for each in sorted(map(standing_of, endings), key=lambda each: each.rank):
        places.setdefault(each.place, []).append(each.rank)
    if "" in places or not 0 < len(places) <= _MOST_PLACES:
        return ""
    if len(endings) > 1 == len(places):
        return f"; every rank stands at {next(iter(places))}"
    return "; " + ", ".join(f"{_called(ranks)} at {place}" for place, ranks in places.items())


def _called(ranks: Sequence[int]) -> str:
    more = f" and {len(ranks) - 1} more" if len(ranks) > 1 else ""
    return f"rank {ranks[0]}{more}"
