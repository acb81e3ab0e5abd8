"""Which objects of a dataset are wanted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate

from argosy.steps.contract.errors import InputError
from argosy.steps.data.manifest import DatasetManifest, Objects
from argosy.steps.data.plan import node_share
from argosy.workflows.cli.options import LARGEST


@dataclass(frozen=True)
class Selection:
    """Keys by shell patterns, relative to the uri; ``*`` passes over ``/``."""

    include: tuple[re.Pattern[str], ...]
    exclude: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> Selection:
        """From patterns as they are typed.

        Raises:
            InputError: a pattern is empty.
        """
        return cls(_patterns("--include", include), _patterns("--exclude", exclude))

    def takes(self, key: str) -> bool:
        """Whether the key is wanted: one of ``include`` matches (or there is none), and none of ``exclude``."""
        wanted = not self.include or any(pattern.match(key) for pattern in self.include)
        return wanted and not any(pattern.match(key) for pattern in self.exclude)


def _patterns(option: str, globs: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    found = []
    for glob in globs:
        if not glob:
            raise InputError(f"{option} '': an empty pattern matches nothing; leave it out or write '*.tar'")
        found.append(re.compile(translate(glob)))
    return tuple(found)


@dataclass(frozen=True)
class Share:
    """Node ``node_rank`` of ``nnodes`` that share a dataset; one node of one has all of it."""

    node_rank: int = 0
    nnodes: int = 1

    def objects_of(self, manifest: DatasetManifest) -> Objects:
        """The objects that this node stages."""
        return manifest if self.nnodes == 1 else node_share(manifest, "sharded", self.node_rank, self.nnodes)


def share_of(text: str | None) -> Share:
    """``2/8`` as a share; None is all of it.

    Raises:
        InputError: not of that form, or not ``0 <= K < N``.
    """
    if text is None:
        return Share()
    rank, cross, nodes = text.partition("/")
    numbers = cross and all(part.isascii() and part.isdigit() and len(part) <= 6 for part in (rank, nodes))
    if numbers and int(rank) < int(nodes) <= LARGEST:
        return Share(int(rank), int(nodes))
    raise InputError(f"--share {text!r}: not a node and a number of nodes; write --share 0/8 to --share 7/8")
