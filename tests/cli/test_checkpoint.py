"""``argosy checkpoint`` and ``argosy explain-resume`` on real checkpoints, by run name, folder and uri."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint import CheckpointStore
from argosy.steps.store import open_store
from tests.transfer.raw import HANG_UP, RawServer

Argosy = Callable[..., tuple[int, str, str]]
FACTS = ["step", "digest", "bytes", "created", "generation", "seq", "state", "reason", "final", "pinned", "newest"]


class Run:
    """A run of this machine with six checkpoints in two generations."""

    def __init__(self, story: Any) -> None:
        self.checkpoints = CheckpointStore(story.store, "gpt/runs/gpt-abc12")
        self.made: dict[int, str] = {}
        for steps in ((10, 20, 30), (40, 50, 60)):
            claim = self.checkpoints.claim("gang")
            for step in steps:
                self.made[step] = self.save(claim, step)
        self.folder = story.finish("Succeeded", 130.0)
        self.uri = f"{open_store((story.state_dir / 'volumes/argosy').as_uri()).uri}/gpt/runs/gpt-abc12"

    def save(self, claim: Any, step: int, weights: bytes = b"", *left: str) -> str:
        name = self.checkpoints.new_save(claim, step)
        part = self.checkpoints.part(name, 0)
        part.add_bytes("weights.bin", weights or os.urandom(50_000))
        part.add_bytes("state.json", b"%d" % step)
        for other in left:
            part.add_bytes(other, b"left at the end")
        ref = part.finish()
        final = step == 60
        return self.checkpoints.commit(claim, name, step, [ref], kind="files", world_size=1, final=final).digest

    def damage(self, step: int) -> str:
        shard = self.checkpoints.by_digest(self.made[step]).files[0].key
        data = bytearray(self.checkpoints.store.get(f"{self.checkpoints.prefix}/{shard}"))
        data[1000] ^= 1
        self.checkpoints.store.put(f"{self.checkpoints.prefix}/{shard}", bytes(data))
        return shard


@pytest.fixture
def run(story: Any) -> Run:
    return Run(story)


def test_list_shows_every_checkpoint_and_what_it_is(run: Run, argosy: Argosy) -> None:
    run.checkpoints.quarantine(run.made[50], "shard x is torn\x1b[2J")
    run.checkpoints.pin(run.made[20], "table 2")
    run.checkpoints.store.delete(f"{run.checkpoints.prefix}/manifests/{run.made[30]}.json")
    code, out, err = argosy("checkpoint", "list")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["step", "digest", "size", "age", "generation", "state"]
    assert [line.split()[:2] for line in lines[1:7]] == [
        [str(step), run.made[step][:12]] for step in (60, 50, 40, 30, 20, 10)
    ]
    assert lines[1].endswith("2  newest, final")
    assert lines[2].endswith(r"2  set aside: shard x is torn\x1b[2J"), "a terminal obeys nothing of it"
    assert lines[4].endswith("1  incomplete: its root manifest is missing")
    assert lines[5].endswith("1  pinned: table 2")
    assert lines[7].startswith("6 checkpoints, 293.")
    assert "argosy explain-resume gpt-abc12" in out

    _, out, _ = argosy("checkpoint", "list", "--json")
    told = json.loads(out)
    assert told["run"] == "gpt-abc12"
    assert all(list(each) == FACTS for each in told["checkpoints"])
    assert [each["step"] for each in told["checkpoints"] if each["newest"]] == [60]
    assert [each["pinned"] for each in told["checkpoints"]] == [None, None, None, None, "table 2", None]


def test_a_run_is_found_by_name_folder_and_uri(run: Run, argosy: Argosy, tmp_path: Path) -> None:
    by_name = json.loads(argosy("checkpoint", "list", "gpt-abc12", "--json")[1])["checkpoints"]
    folder = os.path.relpath(run.uri.removeprefix("file://"), tmp_path)
    for where in (run.uri, run.uri.removeprefix("file://"), folder, f"./{folder}/", f"../{tmp_path.name}/{folder}"):
        code, out, err = argosy("checkpoint", "list", where, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["checkpoints"] == by_name
        assert argosy("explain-resume", where)[0] == 0
    (tmp_path / "ckpts").symlink_to(run.uri.removeprefix("file://"))  # as Checkpointer("ckpts") names it
    assert json.loads(argosy("checkpoint", "list", "ckpts", "--json")[1])["checkpoints"] == by_name
    (tmp_path / "gpt").mkdir()  # the code's own folder, and a run's name that was cut off
    assert "RUN_ID 'gpt': no such run" in argosy("checkpoint", "list", "gpt")[2]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["list", "nobody"], "RUN_ID 'nobody': no such run"),
        (["list", "/nowhere/at/all"], "RUN '/nowhere/at/all': no commit log (log/0000000001.json) there; name"),
        (
            ["list", "file:///mnt/none/store/gpt/runs/gpt-1"],
            "file:///mnt/none/store: there is no folder /mnt/none/store",
        ),
        (["list", "ftp://x/y"], "unknown scheme; use s3://"),
        (["pin", "gpt-abc12", "15"], "CHECKPOINT '15': no such checkpoint in this run; write a step, or at least 6"),
        (["pin", "gpt-abc12", "0"], "the newest: 60 ("),
        (["pin", "gpt-abc12"], "CHECKPOINT 'gpt-abc12': no such checkpoint in this run"),
        (["pin", "gpt-abc12", "10", "20"], "write [RUN] CHECKPOINT, not 3 words"),
        (["unpin", "gpt-abc12", "10"], "CHECKPOINT '10': is not pinned; see: argosy checkpoint list gpt-abc12"),
        (["verify", "gpt-abc12", "77"], "CHECKPOINT '77': no such checkpoint"),
        (["prune"], "is not given; as in: argosy checkpoint prune gpt-abc12 --keep 3 --dry-run"),
        (["prune", "gpt-abc12", "--keep", "0"], "0 is not in the range x>=1"),
    ],
)
def test_a_mistake_is_one_sentence_with_a_remedy(run: Run, argosy: Argosy, argv: list[str], said: str) -> None:
    code, out, err = argosy("checkpoint", *argv)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_store_that_does_not_answer_is_named_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}.items():
        monkeypatch.setenv(name, value)
    date = b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT"  # and no ETag: then the client does not go on in a body
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n" + date + b"\r\n\r\nnot all" + HANG_UP
    with RawServer(lambda number, head: cut) as raw:
        monkeypatch.setenv("AWS_ENDPOINT_URL", raw.endpoint)
        command = [sys.executable, "-m", "argosy.workflows.cli.main", "checkpoint", "list", "s3://b/gpt/runs/x"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as listing:
            assert listing.stderr is not None
            said = listing.stderr.readline()
            listing.kill()
    assert said.startswith("argosy: cannot read s3://b/gpt/runs/x/log/0000000001.json: the store did not serve it")
    assert said.endswith(f"; it was asked at {raw.endpoint}; it is asked again for 15 s\n")


def test_the_verb_alone_shows_its_help(argosy: Argosy) -> None:
    code, out, err = argosy("checkpoint")
    assert (code, err) == (0, "")
    assert out == argosy("checkpoint", "--help")[1]
    assert "Remove old checkpoints and what failed saves left.\n" in out


def test_a_prefix_names_one_checkpoint_or_none(run: Run, argosy: Argosy) -> None:
    digest = run.made[30]
    assert argosy("checkpoint", "pin", "gpt-abc12", digest[:5])[0] == 2
    code, out, _ = argosy("checkpoint", "pin", "gpt-abc12", digest[:6].upper(), "--reason", "why not")
    assert code == 0
    assert out.startswith(f"pinned {digest[:12]} of step 30 of gpt-abc12: why not\n")
    assert run.checkpoints.pinned() == {digest: "why not"}
    assert argosy("checkpoint", "pin", "30")[1].startswith(f"pinned {digest[:12]} of step 30 of gpt-abc12: why not\n")
    assert run.checkpoints.pinned() == {digest: "why not"}
    # A step that two generations committed is not one checkpoint.
    again = run.save(run.checkpoints.claim("after a roll back"), 30)
    code, _, err = argosy("checkpoint", "pin", "gpt-abc12", "30")
    assert code == 2
    assert f"2 are meant: {again[:12]} (step 30), {digest[:12]} (step 30); write more digits" in err
    assert argosy("checkpoint", "unpin", "gpt-abc12", digest[:12])[0] == 0
    assert run.checkpoints.pinned() == {}


def test_a_step_that_was_committed_again_as_the_end_names_the_end(run: Run, argosy: Argosy, tmp_path: Path) -> None:
    claim, weights = run.checkpoints.claim("gang"), os.urandom(1000)
    saved = run.save(claim, 70, weights)
    end = run.save(claim, 70, weights, "final.txt")
    assert argosy("checkpoint", "pin", "gpt-abc12", "70")[1].startswith(f"pinned {end[:12]} of step 70 of gpt-abc12")
    assert argosy("checkpoint", "get", "gpt-abc12", "70", "model")[0] == 0
    assert (tmp_path / "model/final.txt").is_file()
    assert argosy("checkpoint", "pin", "gpt-abc12", saved[:12])[1].startswith(f"pinned {saved[:12]} of step 70")
    run.checkpoints.quarantine(end, "its bytes are damaged")
    assert "2 are meant" in argosy("checkpoint", "get", "gpt-abc12", "70", "other")[2], "the one before may be whole"


def test_verify_reads_every_byte(run: Run, argosy: Argosy) -> None:
    code, out, _ = argosy("checkpoint", "verify")
    assert code == 0
    assert out.count("whole\n") == 6
    assert "6 checkpoints whole (293." in out
    assert "/s), 0 corrupt" in out
    shard = run.damage(40)
    code, out, _ = argosy("checkpoint", "verify", "gpt-abc12")
    assert code == 1
    assert f"step 40  {run.made[40][:12]}  48.8 KiB  corrupt: {shard}: its SHA-256 is another" in out
    assert "5 checkpoints whole" in out
    code, out, _ = argosy("checkpoint", "verify", "gpt-abc12", "60", run.made[50][:8], "--json")
    told = json.loads(out)
    assert (code, told["corrupt"], [each["ok"] for each in told["checkpoints"]]) == (0, 0, [True, True])
    assert told["bytes"] == 2 * 50_002
    assert told["bytes_per_second"] > 0
    assert argosy("checkpoint", "verify", "gpt-abc12", "40", "--json")[0] == 1
    assert run.checkpoints.quarantined() == {}, "verifying changes nothing"


def test_prune_removes_what_it_said(run: Run, argosy: Argosy) -> None:
    run.checkpoints.pin(run.made[10], "first")
    before = sorted(info.key for info in run.checkpoints.store.list(""))
    code, out, _ = argosy("checkpoint", "prune", "--keep", "2", "--dry-run")
    assert code == 0
    assert [line.split()[-1] for line in out.splitlines() if line.startswith("would prune")] == ["40", "30", "20"]
    assert sorted(info.key for info in run.checkpoints.store.list("")) == before
    code, out, _ = argosy("checkpoint", "prune", "--keep", "2", "--json")
    assert code == 0
    told = json.loads(out)
    assert [each["step"] for each in told["pruned"]] == [40, 30, 20]
    assert (told["bytes"], told["dry_run"]) == (3 * 50_002, False)
    assert [checkpoint.step for checkpoint in run.checkpoints.commits()] == [10, 50, 60]
    code, out, _ = argosy("checkpoint", "list", "--all")
    assert out.count("pruned") == 3
    assert "\n6 checkpoints, 3 of them gone, 146.5 KiB\n" in out
    code, _, err = argosy("checkpoint", "get", "gpt-abc12", "20", "model")
    assert code == 2
    assert "CHECKPOINT '20': was pruned, its bytes are gone" in err


def test_prune_never_takes_the_run_from_its_training(run: Run, argosy: Argosy) -> None:
    tail = run.checkpoints.log.tail()
    with (run.folder / "engine.lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        code, _, err = argosy("checkpoint", "prune", "gpt-abc12", "--keep", "1")
        assert code == 2
        assert "its engine runs on this machine, and pruning would take the run away" in err
        assert argosy("checkpoint", "prune", "gpt-abc12", "--keep", "1", "--dry-run")[0] == 0
    # By its uri nothing is known but what lies there: the last commit is seconds old.
    code, _, err = argosy("checkpoint", "prune", run.uri, "--keep", "1")
    assert code == 2
    assert "its last sign of life is" in err
    assert run.checkpoints.log.tail() == tail, "nothing was claimed"


def test_explain_resume_says_which_why_and_what_not(run: Run, argosy: Argosy) -> None:
    run.checkpoints.quarantine(run.made[60], "loss was NaN")
    run.checkpoints.store.delete(f"{run.checkpoints.prefix}/manifests/{run.made[50]}.json")
    code, out, err = argosy("explain-resume")
    assert (code, err) == (0, "")
    assert out.startswith(f"A resume takes step 40, {run.made[40][:12]} (48.8 KiB, ")
    assert "Why: the newest commit that is neither set aside nor damaged, by a hash of every byte" in out
    assert f"step 60, {run.made[60][:12]}: set aside: loss was NaN\n" in out
    assert f"step 50, {run.made[50][:12]}: incomplete: its root manifest is missing\n" in out
    told = json.loads(argosy("explain-resume", "--json")[1])
    assert list(told) == ["run", "chosen", "why", "skipped"]
    assert (told["chosen"]["step"], [each["step"] for each in told["skipped"]]) == (40, [60, 50])


def test_explain_resume_names_no_checkpoint_whose_bytes_are_wrong(run: Run, argosy: Argosy) -> None:
    torn = run.damage(60)
    run.checkpoints.store.delete(f"{run.checkpoints.prefix}/{run.checkpoints.by_digest(run.made[50]).files[0].key}")
    assert argosy("checkpoint", "verify")[0] == 1
    out = argosy("explain-resume")[1]
    assert out.startswith(f"A resume takes step 40, {run.made[40][:12]} (")
    assert f"step 60, {run.made[60][:12]}: damaged: {torn}: " in out
    assert f"step 50, {run.made[50][:12]}: damaged: " in out
    assert run.checkpoints.explain().chosen.step == 60, "nothing was changed"


def test_a_run_without_checkpoints_is_no_error(story: Any, argosy: Argosy) -> None:
    story.finish("Running", None)
    why = "it has no commit log: it has not trained yet, or its store was emptied"
    assert argosy("checkpoint", "list") == (0, f"gpt-abc12: no checkpoint; {why}\n", "")
    code, out, _ = argosy("explain-resume")
    assert (code, out.splitlines()[0]) == (0, f"A resume begins from scratch: {why}.")
    assert argosy("checkpoint", "verify")[0] == 0
    assert json.loads(argosy("checkpoint", "list", "--json")[1])["checkpoints"] == []
