"""What was saved after a loss was no number renews no budget, though its ranks save until they are stopped."""

from __future__ import annotations

import time
from pathlib import Path

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import open_store
from argosy.steps.supervisor.commits import RunCommits


def test_who_was_final_too_early_is_told_so(tmp_path: Path) -> None:
    """It said that none was saved with final=True, which one was."""
    store = open_store(tmp_path.as_uri())
    checkpoints = CheckpointStore(store, "r")
    claim = checkpoints.claim("gang")
    for step in (5, 6):
        name = checkpoints.new_save(claim, step)
        part = checkpoints.part(name, 0)
        part.add_bytes("x", b"%d" % step)
        checkpoints.commit(claim, name, step, [part.finish()], kind="tensors", world_size=1, final=step == 5)
    commits = RunCommits(store, "r", "latest", 0)
    assert commits.reached_end() is None
    assert "is of step 6 and was not saved with final=True; that of step 5 was" in commits.missing()


def test_of_an_opaque_folder_nobody_is_told_of_final(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    checkpoints = CheckpointStore(store, "r")
    claim = checkpoints.claim("gang")
    name = checkpoints.new_save(claim, 5)
    part = checkpoints.part(name, 0)
    part.add_bytes("x", b"5")
    checkpoints.commit(claim, name, 5, [part.finish()], kind="files", world_size=1, final=False)
    assert "is of step 5 and none was saved after they had ended" in RunCommits(store, "r", "latest", 0).missing()


def test_what_was_saved_since_is_no_progress(tmp_path: Path) -> None:
    store = open_store(tmp_path.as_uri())
    checkpoints = CheckpointStore(store, "r")
    claim = checkpoints.claim("gang")
    for step in (10, 20, 30):
        name = checkpoints.new_save(claim, step)
        part = checkpoints.part(name, 0)
        part.add_bytes("x", b"%d" % step)
        checkpoints.commit(claim, name, step, [part.finish()], kind="tensors", world_size=1, final=False)
        saved = time.time()
        while time.time() < saved + 0.002:  # a commit's time is told in milliseconds
            time.sleep(0.001)
    made = {each.step: each.created for each in checkpoints.commits()}
    assert made[10] < made[20] < made[30]
    for resume_from in ("latest", "none"):
        commits = RunCommits(store, "r", resume_from, 0)
        commits.since(claim.generation)
        assert commits.reached()["commit_step"] == 30
        for first_spoiled, left in ((20, 10), (30, 20)):
            found = commits.reached(spoiled=made[first_spoiled])
            assert (found["commit_step"], found["progress"]) == (left, left)
        assert commits.reached(spoiled=made[10]) == {"commit_step": -1, "progress": -1}
    assert checkpoints.quarantined() == {}
