"""Real ranks under torchrun: every rank writes a share, any number of ranks reads it, and all end the same way."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.contract import env
from argosy.steps.store import open_store

pytestmark = pytest.mark.torch

SCRIPT = """
import os, sys, torch, torch.distributed as dist
from argosy.steps.checkpointer import Checkpointer
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()

def state(step):
    made = torch.Generator().manual_seed(step)
    return {"model": {f"layer.{n}": torch.randn(200, 50, generator=made) for n in range(6)},
            "optimizer": {"state": {0: {"step": torch.tensor(float(step))}}, "groups": [{"betas": (0.9, 0.95)}]}}

checkpointer = Checkpointer(save_rng=True)
restored = checkpointer.restore()
if restored is None:
    print(f"rank {rank} from scratch", flush=True)
else:
    expected = state(restored.step)
    assert restored.state["optimizer"] == expected["optimizer"], restored.state["optimizer"]
    assert all(torch.equal(restored.state["model"][k], v) for k, v in expected["model"].items())
    print(f"rank {rank} restored {restored.step} rng {restored.rng}", flush=True)
if sys.argv[1] == "save":
    for step in (10, 20):
        torch.manual_seed(1000 * rank + step)
        saved = checkpointer.save(step, state(step), final=step == 20)
        print(f"rank {rank} saved {saved.step} {saved.digest}", flush=True)
if sys.argv[1] == "differ":
    checkpointer.save(30, {"w": torch.ones(3 + rank)})
if sys.argv[1] == "refused":
    try:
        checkpointer.save(30, {"w": object() if rank == 1 else torch.ones(3)})
    finally:
        print(f"rank {rank} ended", flush=True)
dist.destroy_process_group()
"""


# torchrun ends the other ranks as soon as one has ended: each wrapper stays until every rank's own code is known.
WRAPPER = """
import os, subprocess, sys, time
folder, command = sys.argv[1], sys.argv[2:]
code = subprocess.run([sys.executable, *command]).returncode
with open(f"{folder}/rank-{os.environ['RANK']}.part", "w") as target:
    target.write(str(code))
os.replace(target.name, target.name.replace(".part", ".code"))
deadline = time.monotonic() + 60
names = [f"{folder}/rank-{rank}.code" for rank in range(int(os.environ["WORLD_SIZE"]))]
while time.monotonic() < deadline and not all(map(os.path.exists, names)):
    time.sleep(0.02)
sys.exit(code)
"""


class Gang:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.script = folder / "script.py"
        self.script.write_text(SCRIPT)
        self.store = CheckpointStore(open_store(f"file://{folder}/store"), "name/runs/r1")

    def run(self, what: str, ranks: int, *, resume: str = "", claim: tuple[int, int] | None = None) -> tuple[int, str]:
        """Exit code of torchrun and all output; each rank's own code is in the file ``rank-N.code``."""
        made = self.store.claim("supervisor") if claim is None else None
        generation, seq = (made.generation, made.seq) if made else claim or (0, 0)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
        environ |= {
            env.RUN_URI: f"{self.store.store.uri}/{self.store.prefix}",
            env.GENERATION: str(generation),
            env.LOG_SEQ: str(seq),
            env.RESUME_DIGEST: resume,
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        for stale in self.folder.glob("rank-*.code"):
            stale.unlink()
        (self.folder / "wrapper.py").write_text(WRAPPER)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command += [str(self.folder / "wrapper.py"), str(self.folder), str(self.script), what]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    def codes(self, ranks: int) -> list[str]:
        return [(self.folder / f"rank-{rank}.code").read_text() for rank in range(ranks)]


def test_saved_by_two_read_by_any_and_ended_alike(tmp_path: Path) -> None:
    gang = Gang(tmp_path)
    code, output = gang.run("save", 2)
    assert code == 0, output
    newest = gang.store.newest()
    assert newest is not None
    assert (newest.step, newest.world_size, newest.final) == (20, 2, True)
    assert output.count(f"saved 20 {newest.digest}") == 2
    gang.store.verify(newest)
    shares = [sum(f.size for f in newest.files if f"rank-{rank:05d}-" in f.path) for rank in (0, 1)]
    assert max(shares) < 1.1 * min(shares)

    for ranks in (1, 2, 3):
        code, output = gang.run("read", ranks, resume=newest.digest)
        assert code == 0, output
        assert output.count("restored 20") == ranks
        assert output.count("rng True") == (2 if ranks == 2 else 0)

    # The ranks of an older claim save: both learn that they are fenced.
    code, output = gang.run("save", 2, claim=(1, 1))
    assert code != 0
    assert gang.codes(2) == ["73", "73"], output
    assert output.count("argosy: fenced ") == 2
    assert gang.store.newest() == newest


def test_disagreement_and_damage_end_every_rank(tmp_path: Path) -> None:
    gang = Gang(tmp_path)
    code, output = gang.run("differ", 2)
    assert code != 0
    assert gang.codes(2) == ["70", "70"], output
    assert "rank 0 and rank 1 differ" in output
    code, output = gang.run("refused", 2)
    assert code != 0
    assert "builtins.object" in output
    assert output.count(" ended") == 2
    # Rank 1 ends by the script's own exception: torch may then abort on the process group that nobody destroyed.
    assert gang.codes(2)[0] == "70", output
    assert gang.codes(2)[1] in ("1", "-6"), output
    assert gang.store.newest() is None

    assert gang.run("save", 2)[0] == 0
    newest = gang.store.newest()
    assert newest is not None
    shard = next(file for file in newest.files if "rank-00001-000" in file.path)
    key = f"{gang.store.prefix}/{shard.key}"
    data = bytearray(gang.store.store.get(key))
    data[len(data) // 2] ^= 0x40
    gang.store.store.put(key, bytes(data))
    code, output = gang.run("read", 2, resume=newest.digest)
    assert code != 0
    assert "72" in gang.codes(2), output
    assert f"argosy: checkpoint_corrupt digest={newest.digest} shard={shard.key}\n" in output
    assert "restored" not in output
