"""A script in the style of nanoGPT, which overwrites its one file in place, killed for real by the local engine's side.

The libraries that people use beside that (HF Trainer, Lightning, DeepSpeed) are killed by ``make prove
SUITE=opaque-kills``.
"""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.prove.engine_kill import leftovers
from tests.prove.unaware.commits import commits, store_of
from tests.prove.unaware.killer import Killer
from tests.prove.unaware.style import STYLES

pytestmark = [pytest.mark.torch, pytest.mark.variant]
SEED = 20261121


def test_killed_in_training_and_in_the_middle_of_a_save(tmp_path: Path) -> None:
    style = replace(STYLES[0], args=("--max_iters=120",))
    where = style.copy(tmp_path / "work", {})["checkpoint"]["path"]
    work, draw = tmp_path / "work", random.Random(SEED)
    print(f"seed {SEED}")
    with (tmp_path / "log").open("wb") as log:
        command = [str(Path(sys.executable).parent / "argosy"), "run", "run.toml"]
        engine = subprocess.Popen(command, cwd=work, stdout=log, stderr=log, start_new_session=True)
    killer = Killer(engine, work, where, lambda: commits(work))
    killer.run(["training", "saving"], draw, 240.0)

    said = (tmp_path / "log").read_text()
    assert [bool(kill.open_file) for kill in killer.kills][1:] == [True], said
    assert engine.returncode == 0, said
    first, *later = style.restarts(work)
    assert len(later) == 2
    known, trained_again = dict(first), 0
    for losses in later:
        assert 20 <= losses[0][0] <= max(known) + 1
        assert losses[0][0] % 20 == 0
        trained_again += len(known.keys() & dict(losses).keys())
        assert [pair for pair in losses if known.get(*pair) != pair[1]] == []
        known |= dict(losses)
    assert trained_again > 0
    assert sorted(known) == list(range(120))
    store = store_of(work)
    newest = store.newest() if store else None
    assert store is not None
    assert newest is not None
    assert newest.final
    store.verify(newest)
    assert leftovers(work) == set()
