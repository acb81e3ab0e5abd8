"""What else a cause says of a restart."""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """Zero or more, written down in the cause's row."""

    NONE = 0
    PROVISIONAL = auto()
    """A pod that has not spoken yet may still name what is behind it: worth a wait."""
    NEW_PODS = auto()
    """The same pods cannot go on."""
