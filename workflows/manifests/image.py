"""A container image's name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOVING: Final = ("latest", "nightly", "main", "master", "edge", "develop", "dev", "head", "HEAD")
"""Tags that every build is pushed under again."""


@dataclass(frozen=True)
class Image:
    """``registry.example:5000/team/train:1.4@sha256:…`` in its parts; ``""`` for one that is not written."""

    repository: str
    tag: str
    digest: str

    @property
    def moves(self) -> bool:
        """Whether the same name may stand for another image tomorrow, as far as one can tell from it."""
        return not self.digest and (self.tag == "" or self.tag in MOVING)


def image(text: str) -> Image:
    """The parts of a name. https://github.com/distribution/reference"""
    name, _, digest = text.partition("@")
    head, slash, last = name.rpartition("/")
    base, _, tag = last.partition(":")
    return Image(f"{head}{slash}{base}", tag, digest)
