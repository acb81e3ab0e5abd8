"""Commit files of a folder as launch does on one node, without a watch that judges them first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.checkpoint.manifest import Checkpoint, Saved
from argosy.steps.launch.folder_part import store_part
from argosy.steps.launch.whole_files import Signature, facts


def commit_folder(
    checkpoints: CheckpointStore, claim: Claim, name: str, step: int, folder: Path, files: Signature, *, final: bool
) -> Saved:
    part = store_part(checkpoints.part(name, 0), folder, files)
    return checkpoints.commit(claim, name, step, [part], kind="files", world_size=1, final=final)


def committed_folder(
    checkpoints: CheckpointStore, claim: Claim, step: int, folder: Path, names: Sequence[str], *, final: bool = False
) -> Checkpoint:
    name = checkpoints.new_save(claim, step)
    saved = commit_folder(checkpoints, claim, name, step, folder, facts(folder, names), final=final)
    return checkpoints.by_digest(saved.digest)
