"""What chains of faults share: a store that holds requests, a warm parent, a checkpointed beginning and the truth."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from argosy.steps.contract import env
from argosy.steps.store import open_store
from argosy.steps.supervisor.commits import RunCommits
from tests.exact.gang import Gang, Gangs
from tests.exact.zygote import Zygote
from tests.processes.control import Control
from tests.processes.holding import Hold, HoldingServer
from tests.s3.bucket import Stored

WORLD = 3
EVERY, KEEP = 5, 2
BEGIN = 2 * EVERY
"""Each chain begins with checkpoints of steps EVERY and BEGIN."""
LAST = 250
PATIENCE = 60.0


@dataclass
class Lane:
    """One chain after the other; several lanes may run at once."""

    bucket: str
    folder: Path
    server: HoldingServer
    zygote: Zygote
    control: Control
    truth: list[str]
    """Digest of the state after each step."""
    template: dict[str, Stored]
    generation: int = 0
    begun: int = 0
    gangs: Gangs = field(init=False)

    def __post_init__(self) -> None:
        self.gangs = Gangs(self.zygote.reap)

    @property
    def uri(self) -> str:
        return f"s3://{self.bucket}/run"

    @property
    def holds(self) -> list[Hold]:
        """What the store holds of this lane's requests."""
        return self.server.holds[self.bucket]

    def commits(self) -> RunCommits:
        return RunCommits(open_store(self.uri), "", "latest", 0)

    def begin(self) -> None:
        """A store as it is after two saves."""
        self.server.buckets[self.bucket].replace(self.template)
        self.begun += 1

    def start(self, name: str, environ: dict[str, str], end: int, **stop: str | int | bool) -> Gang:
        """Ranks with the environment of a train step."""
        given = {"stop_at": "", "stop_rank": -1, "stop_number": 0, "prepare": False, "final": False, **stop}
        pids = self.zygote.start(
            "tests.processes.training:train",
            world=WORLD,
            folder=self.folder,
            gang=name,
            environ={**{key: value for key, value in os.environ.items() if key.startswith("AWS_")}, **environ},
            control=self.control.path,
            name=name,
            lines=str(self.folder),
            end=end,
            **given,
        )
        return self.gangs.add(Gang(name, WORLD, pids))

    def environ(self, name: str, timeout: int) -> dict[str, str]:
        """Claim, choose, and say so, as the supervisor and launch do."""
        commits = self.commits()
        claim, found = commits.claim("process-faults"), commits.resume()
        self.generation = claim.generation
        return {
            env.RUN_URI: self.uri,
            env.GENERATION: str(claim.generation),
            env.LOG_SEQ: str(claim.seq),
            env.RESUME_DIGEST: found.digest if found else "",
            env.CHECKPOINT_EVERY: str(EVERY),
            env.CHECKPOINT_KEEP: str(KEEP),
            env.CHECKPOINT_TIMEOUT: str(timeout),
            env.POD_TOKEN: f"{self.bucket}-{os.getpid()}-{name}",
        }


@contextlib.contextmanager
def lanes(count: int) -> Iterator[list[Lane]]:
    """``count`` lanes over one server."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="process-faults-")))
        server = stack.enter_context(HoldingServer([f"lane{number}" for number in range(count)]))
        before = dict(os.environ)
        os.environ.update({"AWS_ENDPOINT_URL_S3": server.endpoint, "AWS_ACCESS_KEY_ID": "harness",
                           "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"})  # fmt: skip
        stack.callback(lambda: (os.environ.clear(), os.environ.update(before)))
        made = []
        for number in range(count):
            folder = root / f"lane{number}"
            folder.mkdir()
            zygote = stack.enter_context(contextlib.closing(Zygote()))
            control = stack.enter_context(Control(folder / "control"))
            made.append(Lane(f"lane{number}", folder, server, zygote, control, [], {}))
        _learn(made)
        yield made


def _learn(made: list[Lane]) -> None:
    first = made[0]
    pids = first.zygote.start(
        "tests.processes.training:reference", world=WORLD, folder=first.folder, gang="truth", lines="", end=LAST
    )
    truth = first.gangs.add(Gang("truth", WORLD, pids))
    begin = first.start("begin", first.environ("begin", 30), BEGIN)
    for gang in (truth, begin):
        first.gangs.wait(gang, PATIENCE, everyone=True)
        assert gang.own_codes() == {0}, gang.errors(first.folder)
    digests = json.loads((first.folder / "truth-0.answer").read_text())
    for lane in made:
        lane.truth, lane.template = digests, dict(first.server.buckets[first.bucket].objects)
