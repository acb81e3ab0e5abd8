"""How much a record is believed."""

from __future__ import annotations

from enum import IntEnum


class Weight(IntEnum):
    """How much a line is believed; a greater weight wins over any number of smaller ones."""

    SUMMARY = 0
    """A launcher's list of who died; never why."""
    CASCADE = 1
    """Always the consequence of something else."""
    HINT = 2
    """A line that no rule knows, but that is about this kind of trouble."""
    MESSENGER = 3
    """A root only when no process told of its own trouble: timeouts, missing peers."""
    GENERIC = 4
    """Some error of the program."""
    ROOT = 5
    """Names what went wrong."""
    MACHINE = 6
    """The machine itself: kernel, driver, hardware."""
