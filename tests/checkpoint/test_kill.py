"""A real process saving without end, killed with signal 9 at random instants."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import open_store

SAVER = """
import os, sys
from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import open_store
checkpoints = CheckpointStore(open_store(sys.argv[1]), "run")
newest = checkpoints.newest()
step = newest.step if newest else 0
claim = checkpoints.claim(str(os.getpid()))
print("ready", flush=True)
while True:
    step += 1
    name = checkpoints.new_save(claim, step)
    refs = []
    for writer in range(2):
        part = checkpoints.part(name, writer)
        part.add_bytes("w%d" % writer, bytes([step % 256]) * 300_000)
        refs.append(part.finish())
    saved = checkpoints.commit(claim, name, step, refs, kind="tensors", world_size=2, final=False)
    print(saved.step, saved.digest, flush=True)
    checkpoints.prune(2, claim)
"""


def test_killed_while_saving(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    uri = f"file://{tmp_path}/store"
    last_step = 0
    for _ in range(12):
        process = subprocess.Popen([sys.executable, "-c", SAVER, uri], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.0, 0.25))  # the kill's random instant, nothing waits for it
        os.kill(process.pid, signal.SIGKILL)
        acknowledged = [line.split() for line in process.stdout.read().splitlines() if len(line.split()) == 2]
        process.stdout.close()
        process.wait()
        checkpoints = CheckpointStore(open_store(uri), "run")
        newest = checkpoints.newest()
        if newest is None:
            assert not acknowledged
            assert last_step == 0
            continue
        checkpoints.verify(newest)
        assert newest.step >= last_step
        if acknowledged:
            assert newest.step >= int(acknowledged[-1][0])
            assert acknowledged[-1][1] in [entry.digest for entry in checkpoints.log.entries()]
        last_step = newest.step
        for kept in checkpoints.commits():
            checkpoints.verify(kept)
    assert last_step > 5
    claim = checkpoints.claim("after")
    checkpoints.prune(2, claim)
    names = {info.key.split("/")[2] for info in open_store(uri).list("run/data")}
    assert names <= {checkpoint.name for checkpoint in checkpoints.commits()}
