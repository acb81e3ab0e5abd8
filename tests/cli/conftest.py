"""A run as its pods would have written it: through the real event log, on a clock that the test moves."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract import env
from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store

START = 1_790_000_000.0
KILL_QUOTE = "rank 1 on node-0 was ended by signal 9"


class Story:
    """Writes a run's events at chosen times, and the engine's state beside them."""

    def __init__(self, state_dir: Path, monkeypatch: pytest.MonkeyPatch, workflow: str = "gpt-abc12") -> None:
        self.state_dir, self.workflow, self.now = state_dir, workflow, START
        volume = state_dir / "volumes" / "argosy"
        monkeypatch.setenv(env.MOUNTS, json.dumps({"/mnt/argosy/store": str(volume)}))
        self.store = open_store("file:///mnt/argosy/store")
        monkeypatch.delenv(env.MOUNTS)
        monkeypatch.setattr("argosy.steps.runlog.time.time", lambda: self.now)
        self.log = RunLog(self.store, f"gpt/runs/{workflow}", "train")
        self.nodes: list[dict[str, Any]] = []

    def at(self, moment: float, kind: str, /, **fields: Any) -> None:
        self.now = START + moment
        self.log.append(kind, **fields)

    def node(self, name: str, began: float, ended: float, phase: str = "Succeeded", **more: Any) -> None:
        self.nodes.append(
            {
                "id": name,
                "name": name,
                "displayName": name,
                "templateName": name,
                "type": "Pod",
                "phase": phase,
                "startedAt": START + began,
                "finishedAt": START + ended,
                **more,
            }
        )

    def steps(self, attempt: int, restart: int, first: int, last: int, began: float, each: float = 0.5) -> float:
        for index, step in enumerate(range(first, last + 1)):
            loss = 2.2 + 3.3 * math.exp(-step / 45) + 0.05 * math.sin(step * 1.7)
            self.at(
                began + index * each,
                "step",
                attempt=attempt,
                restart=restart,
                rank=0,
                step=step,
                loss=loss,
                tokens_per_second=41000.0,
                end_step=200,
            )
        return began + (last - first) * each

    def state(self, phase: str, seconds: float | None, message: str = "") -> dict[str, Any]:
        return {
            "name": self.workflow,
            "uid": "u-1",
            "yaml_sha256": "ab" * 32,
            "parameters": {"run-id": "", "args": "[]", "resume-from": "latest"},
            "phase": phase,
            "message": message,
            "started": START,
            "finished": None if seconds is None else START + seconds,
            "annotations": {"argosy.dev/store-uri": "file:///mnt/argosy/store", "argosy.dev/run-name": "gpt"},
            "nodes": self.nodes,
        }

    def finish(self, phase: str, seconds: float | None, message: str = "") -> Path:
        """Flush, and write the run's folder as the engine does."""
        self.log.close()
        folder = self.state_dir / "runs" / self.workflow
        folder.mkdir(parents=True)
        (folder / "workflow.yaml").write_text(WORKFLOW)
        (folder / "state.json").write_text(json.dumps(self.state(phase, seconds, message)))
        return folder

    def record(self, phase: str = "Succeeded", seconds: float | None = 130.0) -> RunRecord:
        from argosy.steps.runlog import read_events

        self.log.flush()
        return build_record(read_events(self.store, f"gpt/runs/{self.workflow}"), self.state(phase, seconds))


WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: gpt-
  annotations: {argosy.dev/store-uri: file:///mnt/argosy/store, argosy.dev/run-name: gpt, argosy.dev/claim: argosy}
spec:
  entrypoint: main
  volumes:
  - {name: store, persistentVolumeClaim: {claimName: argosy}}
  templates:
  - name: main
    container: {image: x, command: [x], volumeMounts: [{name: store, mountPath: /mnt/argosy/store}]}
"""


def digest(step: int) -> str:
    return f"{step:02x}" * 32


def begin(story: Story) -> None:
    """Snapshot, admission, data, the first gang of two nodes."""
    story.at(1.0, "snapshot_taken", dataset_digest="d" * 64, objects=24, bytes=31_000_000)
    story.at(2.0, "admission", decision="start", reason="a manual start", key="k")
    for node in ("node-0", "node-1"):
        story.at(5.0, "staging", node=node, objects=12, objects_total=24, bytes=15_000_000, bytes_total=31_000_000)
        story.at(7.5, "staged", node=node, bytes=31_000_000, fetched_bytes=31_000_000, seconds=4.2)
    story.at(4.0, "gang_created", attempt=1, gang="gpt-abc12-g1", nnodes=2, nproc_per_node=2)
    for name, began, ended in (("snapshot", 0.3, 1.2), ("admit", 1.4, 2.1), ("stage", 2.2, 3.4)):
        story.node(name, began, ended)


def killed_and_resumed(story: Story) -> None:
    """Rank 1 is killed in step 47 and the run goes on from 40; then a node is lost, a new gang ends at 200."""
    begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 47, 12.0)
    commit(story, 22.0, 20, 1)
    commit(story, 32.0, 40, 1)
    story.at(35.4, "injected", fault="kill", rank=1, node="node-0", step=47)
    killed = {"cause": "unknown", "signal": 9, "rank": 1, "node": "node-0", "quote": KILL_QUOTE, "last_step": 47}
    story.at(36.0, "rank_ended", attempt=1, restart=0, rank=1, node="node-0", signal=9)
    story.at(36.2, "restart_ended", attempt=1, restart=0, **killed)
    story.at(37.2, "restart_began", attempt=1, restart=1, generation=2, restored_step=40, restored_digest=digest(40))
    story.steps(1, 1, 41, 110, 41.0)
    for step in (60, 80, 100):
        commit(story, 51.0 + (step - 60) / 2, step, 2)
    lost = {"cause": "preempted_evicted", "node": "node-1", "last_step": 110}
    story.at(78.0, "restart_ended", attempt=1, restart=1, **lost)
    story.at(78.5, "gang_deleted", attempt=1, gang="gpt-abc12-g1", reason="node-1 was lost")
    story.at(79.0, "gang_created", attempt=2, gang="gpt-abc12-g2", nnodes=2, nproc_per_node=2, excluded=["node-1"])
    story.at(81.0, "restart_began", attempt=2, restart=0, generation=3, restored_step=100, restored_digest=digest(100))
    story.steps(2, 0, 101, 200, 85.0, 0.4)
    for step in (120, 140, 160, 180, 200):
        commit(story, 93.0 + (step - 120) * 0.4, step, 3, final=step == 200)
    story.at(126.2, "train_ended", cause="none", exit_code=0, checkpoint_digest=digest(200))
    story.at(126.4, "gang_deleted", attempt=2, gang="gpt-abc12-g2", reason="done")
    story.node("train", 3.5, 126.5)


def commit(story: Story, seconds: float, step: int, generation: int, *, final: bool = False) -> None:
    story.at(
        seconds,
        "checkpoint_committed",
        step=step,
        digest=digest(step),
        bytes=12_400_000,
        seconds=0.31,
        generation=generation,
        final=final,
    )


def judged(story: Story, decision: str = "promote") -> None:
    """Evaluated, then promoted or refused."""
    story.at(128.0, "evaluated", metric="bits_per_byte", value=3.412, checkpoint_digest=digest(200))
    reason = "3.412 is not worse than the floor 4" if decision == "promote" else "3.412 is worse than the floor 3"
    floor = 4.0 if decision == "promote" else 3.0
    story.at(129.0, "gated", decision=decision, reason=reason, metric="bits_per_byte", value=3.412, floor=floor)
    story.node("evaluate", 126.6, 128.2)
    story.node("gate", 128.3, 129.1)
    if decision == "promote":
        story.at(129.5, "promoted", pointer="production", digest=digest(200), previous="", rollback=False)
        story.node("promote", 129.2, 129.7)


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    written = Story(tmp_path / ".argosy", monkeypatch)
    yield written
    written.log.close()


class Tell:
    """The chapters, for tests: conftest cannot be imported by name."""

    killed_and_resumed = staticmethod(killed_and_resumed)
    judged = staticmethod(judged)
    begin = staticmethod(begin)
    digest = staticmethod(digest)


@pytest.fixture
def tell() -> type[Tell]:
    return Tell


@pytest.fixture
def initialized(
    argosy: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """What init makes of the first of some files: (exit code, the run.toml that it writes, what it says)."""

    def call(files: dict[str, str], *argv: str) -> tuple[int, dict[str, Any], str]:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        code, out, err = argosy("init", next(iter(files)), "--force", *argv)
        return code, tomllib.loads((tmp_path / "run.toml").read_text()) if code == 0 else {}, out + err

    return call
