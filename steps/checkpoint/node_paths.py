"""Paths in a checkpoint of files to which every node gave its own: a folder per node, ``argosy-node-000001/…``.

Nodes may write different files under one name; in the store and in the manifest they must not meet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from argosy.steps.checkpoint.manifest import ShardFile
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError

_NODE = re.compile(r"argosy-node-(\d{6})/(.+)", re.S)


def node_prefix(node_rank: int) -> str:
    """What the paths of a node's files begin with."""
    return f"argosy-node-{node_rank:06d}/"


def nodes_of(files: Iterable[ShardFile]) -> list[int]:
    """Ranks of the nodes that gave files of their own; empty: one writer gave them all."""
    found = [_NODE.fullmatch(file.path) for file in files]
    return sorted({int(match[1]) for match in found if match}) if found and all(found) else []


def files_of(files: Iterable[ShardFile], node_rank: int) -> tuple[ShardFile, ...]:
    """One node's files, under the paths that they have on that node."""
    prefix = node_prefix(node_rank)
    return tuple(replace(file, path=file.path[len(prefix) :]) for file in files if file.path.startswith(prefix))


def merged(files: Iterable[ShardFile]) -> tuple[ShardFile, ...]:
    """All nodes' files in one folder; files of one writer stay as they are.

    Raises:
        StepError: ``checkpoint_mismatch``: nodes wrote different bytes under one name.
    """
    given = tuple(files)
    together: dict[str, ShardFile] = {}
    for rank in nodes_of(given):
        for file in files_of(given, rank):
            other = together.setdefault(file.path, file)
            if other.sha256 != file.sha256:
                text = f"nodes wrote different files named {file.path}: they cannot lie in one folder"
                raise StepError(Cause.CHECKPOINT_MISMATCH, text, quote=text)
    return tuple(together.values()) or given
