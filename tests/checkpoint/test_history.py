"""The explanation of a resume says what the resume does, and why nothing newer was taken."""

from __future__ import annotations

import random

from argosy.steps.checkpoint import CheckpointStore, Claim
from argosy.steps.store import ObjectStore


def save(checkpoints: CheckpointStore, claim: Claim, step: int, *, final: bool = False) -> str:
    name = checkpoints.new_save(claim, step)
    part = checkpoints.part(name, 0)
    part.add_bytes("state", b"%d" % step * 10)
    refs = [part.finish()]
    return checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=1, final=final).digest


def test_every_commit_is_told_for_what_it_is(inner: ObjectStore) -> None:
    checkpoints = CheckpointStore(inner, "run")
    assert checkpoints.explain().chosen is None
    assert checkpoints.explain().why == "it has no commit log: it has not trained yet, or its store was emptied"
    first = checkpoints.claim("first")
    assert checkpoints.explain().why == "nothing was ever committed"
    made = {step: save(checkpoints, first, step) for step in (1, 2, 3)}
    checkpoints.pin(made[1], "paper")
    checkpoints.prune(1, first)
    second = checkpoints.claim("second")
    made |= {step: save(checkpoints, second, step, final=step == 4) for step in (4, 5, 6, 7)}
    checkpoints.quarantine(made[7], "shard x is torn")
    inner.delete(f"run/manifests/{made[6]}.json")
    lost = checkpoints.by_digest(made[5]).files[0].key
    inner.put(f"run/{lost}", b"less")

    told = checkpoints.explain()
    states = {commit.step: (commit.state, commit.pinned, commit.final, commit.generation) for commit in told.commits}
    assert states == {
        7: ("set aside", None, False, 2),
        6: ("incomplete", None, False, 2),
        5: ("incomplete", None, False, 2),
        4: ("live", None, True, 2),
        3: ("live", None, False, 1),
        2: ("pruned", None, False, 1),
        1: ("live", "paper", False, 1),
    }
    assert [commit.step for commit in told.commits] == [7, 6, 5, 4, 3, 2, 1]
    assert told.chosen is not None
    assert told.chosen.digest == made[5]
    assert f"{lost}: 4 of 10 bytes" in told.why
    assert [(commit.step, why) for commit, why in told.skipped] == [
        (7, "set aside: shard x is torn"),
        (6, "incomplete: its root manifest is missing"),
    ]
    for key in list(inner.list("run/")):
        inner.delete(key.key)
    narrowed = told.without({made[5]: "torn", made[4]: "torn"})  # the store is not asked again
    assert narrowed.chosen is not None
    assert narrowed.chosen.step == 3
    assert [commit.step for commit, _ in narrowed.skipped] == [7, 6, 5, 4]
    assert narrowed.skipped[-1][1] == "damaged: torn"


def test_the_explanation_and_the_choice_never_differ(inner: ObjectStore) -> None:
    seed = 20261121
    print(f"seed {seed}")
    chance = random.Random(seed)
    checkpoints = CheckpointStore(inner, "run")
    digests: list[str] = []
    for step in range(24):
        claim = checkpoints.claim("gang")
        digests.append(save(checkpoints, claim, step, final=chance.random() < 0.1))
        match chance.randrange(6):
            case 0:
                checkpoints.prune(chance.randint(1, 3), claim)
            case 1:
                checkpoints.quarantine(chance.choice(digests), "chance")
            case 2:
                inner.delete(f"run/manifests/{chance.choice(digests[-3:])}.json")
            case 3:
                live = [commit for commit in checkpoints.explain().commits if commit.state == "live"]
                if live:
                    checkpoints.pin(chance.choice(live).digest, "chance")
            case 4 if pinned := checkpoints.pinned():
                checkpoints.unpin(chance.choice(sorted(pinned)))
        told, newest = checkpoints.explain(), checkpoints.newest()
        assert (told.chosen.digest if told.chosen else None) == (newest.digest if newest else None)
        live_digests = {commit.digest for commit in told.commits if commit.state == "live"}
        assert live_digests == {checkpoint.digest for checkpoint in checkpoints.commits()}
        assert {commit.digest for commit in told.commits if commit.pinned is not None} == set(checkpoints.pinned())
