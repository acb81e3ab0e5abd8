"""Real ranks, under torchrun and forked: each writes a share, any number of them reads it, and all end the same way."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.contract import env
from argosy.steps.store import open_store
from tests.exact.gang import Gang, Gangs
from tests.exact.zygote import Zygote

pytestmark = pytest.mark.torch

RANKS = Path(__file__).with_name("ranks.py")


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


class Ranks:
    def __init__(self, folder: Path, zygote: Zygote) -> None:
        self.folder, self._zygote = folder, zygote
        self.store = CheckpointStore(open_store(f"file://{folder}/store"), "name/runs/r1")

    def environ(self, resume: str, claim: tuple[int, int] | None) -> dict[str, str]:
        made = self.store.claim("supervisor") if claim is None else None
        generation, seq = (made.generation, made.seq) if made else claim or (0, 0)
        return {
            env.RUN_URI: f"{self.store.store.uri}/{self.store.prefix}",
            env.GENERATION: str(generation),
            env.LOG_SEQ: str(seq),
            env.RESUME_DIGEST: resume,
            "OMP_NUM_THREADS": "1",
        }

    def run(
        self, task: str, world: int, *, resume: str = "", claim: tuple[int, int] | None = None
    ) -> tuple[list[int], str]:
        """Exit code of each rank, which has a gloo group and no agent above it, and all output."""
        name = os.urandom(4).hex()
        environ = self.environ(resume, claim)
        pids = self._zygote.start(
            "tests.checkpoint.ranks:act", world=world, folder=self.folder, gang=name, environ=environ, task=task
        )
        gangs = Gangs(self._zygote.reap)
        gang = gangs.add(Gang(name, world, pids))
        gangs.wait(gang, 60.0, everyone=True)
        said = [(self.folder / f"{name}-{rank}.err").read_text() for rank in range(world)]
        return [gang.codes[pid] for pid in pids], "".join(said)

    def torchrun(self, task: str, world: int) -> tuple[list[int], str]:
        """The same of a real torchrun."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
        environ |= self.environ("", None) | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        (self.folder / "wrapper.py").write_text(WRAPPER)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
        command += [str(self.folder / "wrapper.py"), str(self.folder), str(RANKS), task]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)
        codes = [int((self.folder / f"rank-{rank}.code").read_text()) for rank in range(world)]
        assert (done.returncode == 0) == (set(codes) == {0}), done.stderr
        return codes, done.stdout + done.stderr


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with contextlib.closing(Zygote()) as started:
        yield started


@pytest.fixture
def gang(tmp_path: Path, zygote: Zygote) -> Ranks:
    return Ranks(tmp_path, zygote)


def test_saved_by_two_read_by_any_and_ended_alike(gang: Ranks) -> None:
    codes, output = gang.torchrun("save", 2)
    assert codes == [0, 0], output
    newest = gang.store.newest()
    assert newest is not None
    assert (newest.step, newest.world_size, newest.final) == (20, 2, True)
    assert output.count(f"saved 20 {newest.digest}") == 2
    gang.store.verify(newest)
    shares = [sum(f.size for f in newest.files if f"rank-{rank:05d}-" in f.path) for rank in (0, 1)]
    assert max(shares) < 1.1 * min(shares)

    for ranks in (1, 2, 3):
        codes, output = gang.run("read", ranks, resume=newest.digest)
        assert codes == [0] * ranks, output
        assert output.count("restored 20") == ranks
        assert output.count("rng True") == (2 if ranks == 2 else 0)

    # The ranks of an older claim save: both learn that they are fenced.
    codes, output = gang.run("save", 2, claim=(1, 1))
    assert codes == [73, 73], output
    assert output.count("argosy: fenced ") == 2
    assert gang.store.newest() == newest


def test_disagreement_and_damage_end_every_rank(gang: Ranks) -> None:
    codes, output = gang.run("differ", 2)
    assert codes == [70, 70], output
    assert "rank 0 and rank 1 differ" in output
    codes, output = gang.torchrun("refused", 2)
    assert "builtins.object" in output
    assert output.count(" ended") == 2
    # Rank 1 ends by the script's own exception: torch may then abort on the process group that nobody destroyed.
    assert codes[0] == 70, output
    assert codes[1] in (1, -6), output
    assert gang.store.newest() is None

    assert gang.run("save", 2)[0] == [0, 0]
    newest = gang.store.newest()
    assert newest is not None
    shard = next(file for file in newest.files if "rank-00001-000" in file.path)
    key = f"{gang.store.prefix}/{shard.key}"
    data = bytearray(gang.store.store.get(key))
    data[len(data) // 2] ^= 0x40
    gang.store.store.put(key, bytes(data))
    codes, output = gang.run("read", 2, resume=newest.digest)
    assert 72 in codes, output
    assert f"argosy: checkpoint_corrupt digest={newest.digest} shard={shard.key}\n" in output
    assert "restored" not in output
