"""One node's folder: which entries are checkpoints, when one is whole, and which step it is of."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint.manifest import Checkpoint, ShardFile
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.launch.file_step import FileStep, file_step
from argosy.steps.launch.labelling import Labelling
from argosy.steps.launch.step_clock import StepClock, Word
from argosy.steps.launch.units import Unit, contents, is_later, step_in, unit_of
from argosy.steps.launch.whole_files import looks_whole, signature
from argosy.steps.pods.processes import is_running
from tests.launch.nodes import Cluster


@pytest.fixture
def one_node(cluster: Callable[..., Cluster]) -> Callable[..., Cluster]:
    def make(**options: Any) -> Cluster:
        made = cluster(nnodes=1, **options)
        made.begin()
        return made

    return make


@pytest.mark.parametrize(
    ("path", "globs", "name"),
    [
        ("checkpoint-500/model.bin", (), "checkpoint-500"),
        ("global_step500/mp_rank_00.pt", (), "global_step500"),
        ("iter_0000500/x", (), "iter_0000500"),
        ("epoch=1-step=10.ckpt/x", (), "epoch=1-step=10.ckpt"),
        ("my-model-checkpoint-7/x", (), "my-model-checkpoint-7"),
        ("tmp-checkpoint-500/x", (), ""),
        (".checkpoint-500/x", (), ""),
        ("checkpoint-500.tmp/x", (), ""),
        ("checkpoint-best/x", (), ""),
        ("rank0/x", (), ""),
        ("runs/checkpoint-500/x", (), ""),
        ("epoch=1-step=10.ckpt", (), ""),  # a file is a unit of its own only when it is said to be
        ("epoch=1-step=10.ckpt", ("*.ckpt",), "step=10"),
        ("last.ckpt", ("*.ckpt",), "last.ckpt"),
        ("step10-rank0.pt", ("step*",), "step=10"),
        ("step10-rank1.pt", ("step*",), "step=10"),
        ("checkpoint-500/x", ("save_*",), ""),
        ("model_000100.pt", ("model_*", "meta_*", "optim_*"), "step=100"),
        ("optim_000100_rank3.pt", ("model_*", "meta_*", "optim_*"), "step=100"),
        ("best-v2.pt", ("*.pt",), "best-v2.pt"),
        ("epoch_4.pt", ("epoch_*",), "epoch_4.pt"),
    ],
)
def test_what_a_file_belongs_to(path: str, globs: tuple[str, ...], name: str) -> None:
    assert unit_of(path, globs) == name


def test_steps_in_names() -> None:
    names = ["checkpoint-500", "global_step20", "epoch=3-step=10.ckpt", "iter_0000500", "epoch_4", "footstep9", "v2"]
    assert [step_in(name) for name in names] == [500, 20, 10, 500, None, None, None]
    assert step_in("step_3_of_step_9") is None


@pytest.mark.parametrize(("name", "epoch"), [("epoch_4", 4), ("epochs-7", 7), ("nepoch3", None), ("", None)])
def test_the_epoch_that_a_name_tells(name: str, epoch: int | None, tmp_path: Path) -> None:
    held = {f"{name or 'epoch_9'}/model.bin": (1, 1000 * 10**9, 1)}
    assert file_step(tmp_path, Unit(name, held, None)) == FileStep(None, epoch, "file")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("epoch-1-step-10", "epoch-0-step-30"), True), (("epoch-1-step-10", "epoch-1-step-30"), False),
        (("checkpoint-30", "epoch-1-step-10"), True), (("epoch_4", "epoch_3"), True), (("60", "50"), True),
        (("step=10", "step=10"), False), (("best", "step=10"), False), (("step=10", "best"), False),
    ],
)  # fmt: skip
def test_which_of_two_units_is_later(names: tuple[str, str], expected: bool) -> None:
    assert is_later(*names) is expected


def pickled(path: Path, value: Any, *, zipped: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not zipped:
        path.write_bytes(pickle.dumps(value))
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{path.stem}/data.pkl", pickle.dumps(value))


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, (EVIL,)


EVIL = "/tmp/argosy-a-pickle-was-run"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"ckpt.pt": {"model": {}, "iter_num": 20, "best_val_loss": 4.1}}, (20, None, "file")),
        ({"x.ckpt": {"epoch": 1, "global_step": 8, "state_dict": OrderedDict(a=Evil())}}, (8, 1, "file")),
        ({"checkpoint.pth.tar": {"epoch": 4, "arch": "resnet"}}, (None, 4, "file")),
        ({"ck.pt": {"trainer": {"iteration": 12}, "model": Evil()}}, (12, None, "file")),
        ({"model.pt": Evil(), "trainer_state.json": {"global_step": 40}}, (40, None, "file")),
        ({"scheduler.pt": {"step": 9}, "random_states_0.pkl": {"step": 3}}, (None, None, "file")),
        ({"state.pt": {"step": True, "epoch": -1}}, (None, None, "file")),
        ({"model_10.pt": {}, "model_20.pt": {}}, (20, None, "name")),
        ({"model_20.pt": {}}, (None, None, "file")),  # it may be called so for good
    ],
)
@pytest.mark.parametrize("zipped", [True, False])
def test_the_step_that_files_tell(
    files: dict[str, Any], expected: tuple[int | None, int | None, str], tmp_path: Path, zipped: bool
) -> None:
    for age, (name, value) in enumerate(files.items()):
        if name.endswith(".json"):
            (tmp_path / name).write_text(json.dumps(value))
        else:
            pickled(tmp_path / name, value, zipped=zipped)
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    found = file_step(tmp_path, Unit("", signature(tmp_path, ()), None))
    assert (found.step, found.epoch, found.source) == expected
    assert not Path(EVIL).exists()


NOTHING = FileStep(None, None, "file")


@pytest.mark.parametrize(
    ("known", "words", "expected"),
    [
        # (step, when it was told); the files were written from 200 to 201
        (FileStep(30, None, "name"), [(28, 100), (29, 199)], (30, "name", 30)),
        (FileStep(29, None, "name"), [(29, 100), (30, 199)], (29, "name", 29)),  # stored while the next one trains
        (FileStep(500, None, "name"), [(480, 100), (490, 199)], (500, "name", 500)),
        (FileStep(1_000_000, None, "name"), [(8, 100), (9, 199)], (9, "print", 9)),  # that counts samples
        (FileStep(20, None, "file"), [(1000, 100)], (20, "file", 1000)),  # the words do
        # Ten steps in a few milliseconds, read together; the words count as the name does.
        (FileStep(30, None, "name"), [(step, 200.04) for step in range(25, 37)], (30, "name", 30)),
        (FileStep(30, None, "name"), [(step, 150.0 + step) for step in range(25, 37)], (30, "name", 36)),
        (FileStep(500, None, "name"), [], (500, "name", None)),
        # Orbax's folders are named by a number alone, others' so by the epoch.
        (FileStep(30, None, "number"), [(29, 100), (31, 199)], (30, "name", 30)),
        (FileStep(8, None, "number"), [(299, 100), (300, 199)], (300, "print", 300)),
        (FileStep(8, None, "number"), [(300, 199)], (300, "print", 300)),
        (FileStep(30, None, "number"), [], (30, "name", None)),
        (NOTHING, [(28, 100), (29, 199)], (29, "print", 29)),
        (NOTHING, [(28, 100), (29, 300)], (28, "print", 28)),
        (NOTHING, [(5, 100), (10, 201.01)], (10, "print", 10)),  # saved, then told
        (NOTHING, [(10, 199.99), (15, 300)], (10, "print", 10)),  # told, then saved
        (NOTHING, [(10, 200.02), (11, 300)], (10, "print", 10)),  # so it was, and the word was read late
        (NOTHING, [(10, 199), (11, 200.5)], (10, "print", 10)),  # saved beside the training
        # Quick steps: 30 told, then saved beside the training; 30 saved, then told; 30 told, measured, then saved.
        (NOTHING, [(29, 199.98), (30, 199.999), (31, 200.02), (32, 200.04)], (30, "print", 30)),
        (NOTHING, [(28, 199.95), (29, 199.97), (30, 201.001), (31, 201.02)], (30, "print", 30)),
        (NOTHING, [(10, 100), (20, 101), (30, 102), (40, 202)], (30, "print", 30)),
        # Saved, then told, in two lines a step.
        (NOTHING, [(8, 197), (8, 197), (9, 199), (9, 199), (10, 201.01), (10, 201.01)], (10, "print", 10)),
        (NOTHING, [], (8, "count", None)),
        (FileStep(None, 9, "file"), [], (9, "file", None)),
    ],
)
def test_the_step_of_a_commit(known: FileStep, words: list[tuple[int, float]], expected: Any) -> None:
    clock = StepClock(7)
    for step, when in words:
        clock.tell(Word(step, when))
    label = clock.label(known, 200.0, 201.0)
    assert (label.step, label.source, label.told) == expected


def test_a_clock_that_was_set_back_costs_no_save_its_step() -> None:
    clock, after = StepClock(0), 5000.0 - 3600
    for step in range(1, 1001):
        clock.tell(Word(step, 4000.0 + step))
    for step in range(1, 11):
        clock.tell(Word(1000 + step, after + step))
    label = clock.label(NOTHING, after + 5.2, after + 5.4)
    assert (label.step, label.source) == (1005, "print")


def test_a_bar_is_believed_when_it_advances_with_the_saves() -> None:
    def labels(*saves: tuple[int, float]) -> list[tuple[int, str]]:
        clock, found = StepClock(0), []
        for number, (step, end) in enumerate(saves):
            clock.tell(Word(step, 100.0 + number, "bar", int(end)))
            found.append(clock.label(NOTHING, 100.5 + number, 100.6 + number))
            clock.committed(found[-1])
        return [(label.step, label.source) for label in found]

    assert labels((10, 40), (20, 40), (40, 40)) == [(10, "print"), (20, "print"), (40, "print")]
    assert labels((1000, 1000), (1000, 1000)) == [(1, "count"), (2, "count")]
    assert labels((4, 4), (4, 4), (4, 4)) == [(1, "count"), (2, "count"), (3, "count")]


@pytest.mark.parametrize(
    ("epoch", "words", "expected"),
    [
        (1, [(31, 100.0)], 40),
        (5, [(49, 199.9), (50, 199.99), (51, 200.01), (53, 200.04)], 50),  # quick batches: the next epoch's are told
        (5, [(59, 199.9), (61, 200.04)], 60),  # it counts epochs from 0
        (6, [(51, 199.0), (61, 200.04)], 60),  # only each epoch's first batch is told
        (12, [(101, 199.9), (111, 200.3), (120, 200.9)], 120),  # it was saved at 110 too, between two looks
    ],
)
def test_a_save_that_names_its_epoch_is_of_its_end(epoch: int, words: list[tuple[int, float]], expected: int) -> None:
    clock = StepClock(0)
    for step, when in words:
        clock.tell(Word(step, when, "batch", 0, 40 if epoch == 1 else 10))
    assert clock.label(FileStep(None, epoch, "file"), 200.0, 201.0).step == expected


@pytest.mark.parametrize(
    ("epoch", "words", "final", "expected"),
    [
        (40, [39, 40], True, 40),  # its last line was read after its last save, and the final commit was of step 39
        (40, [39, 40], False, 39),
        (40, [38, 39], True, 39),  # it prints from 0
        (30, [39, 40], True, 39),  # the best one's, not written at the end
    ],
)
def test_the_last_save_is_of_the_step_told_last(
    tmp_path: Path, epoch: int, words: list[int], final: bool, expected: int
) -> None:
    pickled(tmp_path / "state.pt", {"epoch": epoch})
    unit, now = Unit("", signature(tmp_path, ()), None), time.time()
    labels = Labelling(tmp_path, None)
    for step, when in zip(words, (now - 0.1, now + 0.08), strict=True):
        labels.tell(Word(step, when), anew=False)
    mid = labels.label(unit)
    labels.committed(unit, mid, {"state.pt": "x"}, 1)
    assert (mid.step, labels.label(unit, final=final).step) == (words[0], expected)


def test_a_first_file_that_bears_a_number_may_tell_its_step(tmp_path: Path) -> None:
    """It was taken for the step that was printed while the file was written."""
    (tmp_path / "state_000020.npz").write_bytes(b"x")
    found = file_step(tmp_path, Unit("", signature(tmp_path, ()), None), ("state_*.npz",))
    assert (found.step, found.source) == (20, "number")


@pytest.mark.parametrize("kind", ["seconds", "milliseconds", "date", "date and time", "tokens"])
@pytest.mark.parametrize("shape", ["{}", "checkpoint-{}", "model_{}.pt"])
def test_the_time_in_a_name_is_no_step(tmp_path: Path, kind: str, shape: str) -> None:
    """Of a script that prints no step such a folder was told as step 1732700000."""
    now = int(time.time())
    date = time.strftime("%Y%m%d%H%M%S")
    number = {"seconds": now - 9, "milliseconds": now * 1000, "date": int(date[:8]), "date and time": int(date)}
    files = [shape.format(number.get(kind, 1_300_000_000) + more) for more in (0, 1)]
    for age, name in enumerate(files):
        path = tmp_path / name if "." in name else tmp_path / name / "model.bin"
        pickled(path, {})
        os.utime(path, (now + age, now + age))
    unit = Unit(files[1], signature(tmp_path, ()), step_in(files[1]))
    told = {"{}": "number", "checkpoint-{}": "name", "model_{}.pt": "name"}[shape]
    expected = FileStep(1_300_000_001, None, told) if kind == "tokens" else FileStep(None, None, "file")
    assert file_step(tmp_path, unit) == expected


def saved_after(restored: Checkpoint | None, saves: list[tuple[bool, int | None]], *, moving: bool = False) -> int:
    """The count of progress after these saves: whether each holds new bytes, and the step in its name."""
    labelling = Labelling(Path("nowhere"), restored)
    for step in (21, 22) if moving else ():
        labelling.tell(Word(step, 100.0), anew=False)
    progress = 0
    for number, (new, named) in enumerate(saves):
        unit = Unit("x", {"x/y": (1, int((200 + number) * 1e9), number)}, named)
        label = labelling.label(unit)
        progress = labelling.progress(unit, label, new=new)
        labelling.committed(unit, label, {"x/y": str(number)}, progress)
    return progress


def test_where_the_run_has_been_before_is_no_progress(tmp_path: Path) -> None:
    """Of a script that reads nothing back each start renewed the budget by the saves that the one before had made."""
    restored, meta = None, dict[str, Any]()
    counts = []
    for saves in (("1", "2", "3"), ("1", "2", "3", "4"), ("1",), ("3", "5")):
        labelling = Labelling(tmp_path, restored)
        for number, text in enumerate(saves):
            content, unit = {"x": text * 64}, Unit("", {"x": (1, int((200 + number) * 1e9), number)}, None)
            for step in (number, number + 1):
                labelling.tell(Word(step, 100.0), anew=False)
            label, new = labelling.label(unit), labelling.is_new(content)
            progress = labelling.progress(unit, label, new=new, content=content)
            meta = labelling.meta(content, progress)
            labelling.committed(unit, label, content, progress)
        counts.append(progress)
        files = (ShardFile(path="x", key="data/x", size=1, sha256=saves[-1] * 64),)
        restored = Checkpoint(
            step=1, digest="d", uri="", bytes=1, final=False, generation=1, created=0.0, files=files, kind="files",
            name="n", seq=1, world_size=1, meta=meta,
        )  # fmt: skip
    assert counts == [3, 4, 4, 5]


def test_a_long_list_of_files_is_hashed_once_a_commit(tmp_path: Path) -> None:
    class Counted(dict[str, str]):
        read = 0

        def items(self) -> Any:
            self.read += 1
            return super().items()

    labelling, unit, content = Labelling(tmp_path, None), Unit("", {"x": (1, 10**9, 1)}, None), Counted(x="y")
    label = labelling.label(unit)
    progress = labelling.progress(unit, label, new=True, content=content)
    labelling.meta(content, progress)
    labelling.committed(unit, label, content, progress)
    assert (progress, content.read) == (1, 1)


@pytest.mark.parametrize(
    ("saves", "moving", "expected"),
    [
        ([(True, None)], False, 5),  # it may be the restored state, saved again
        ([(True, None)] * 3, False, 7),  # the next cannot be
        ([(True, None)], True, 6),
        ([(True, 25)], False, 6),
        ([(True, 20)], False, 5),
        ([(False, None)] * 3, True, 5),
    ],
)
def test_progress_is_new_content_from_a_later_save(saves: Any, moving: bool, expected: int) -> None:
    restored = Checkpoint(
        step=20, digest="", uri="", bytes=0, final=False, generation=1, created=0.0, files=(), kind="files", name="",
        seq=1, world_size=1, meta={"progress": 5},
    )  # fmt: skip
    assert saved_after(restored, saves, moving=moving) == expected
    assert saved_after(None, [(True, None)] * 3) == 3


@pytest.mark.parametrize(
    ("restored_files", "written", "step"),
    [
        (["state.npz"], "final.npz", 300),
        (["state_300.npz"], "final.npz", 300),
        (["state_280.npz", "state_300.npz", "final.npz"], "final.npz", 300),
        (["last.npz"], "last.npz", 301),
        (["state_280.npz", "state_300.npz"], "state_320.npz", 320),
    ],
)
def test_a_script_without_a_step_left_keeps_the_restored_step(
    restored_files: list[str], written: str, step: int, tmp_path: Path
) -> None:
    """It writes its model only, and the last commit bore a step more than there was."""
    restored = Checkpoint(
        step=300, digest="", uri="", bytes=0, final=False, generation=1, created=0.0, files=(), kind="files", name="",
        seq=1, world_size=1, meta={},
    )  # fmt: skip
    for age, name in enumerate(restored_files):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    labelling = Labelling(tmp_path, restored, Unit("", signature(tmp_path, ()), None))
    (tmp_path / written).write_bytes(b"more")
    assert labelling.label(Unit("", signature(tmp_path, ()), None)).step == step


def test_a_later_epoch_in_a_file_is_further_whatever_other_files_are_called(tmp_path: Path) -> None:
    restored = Checkpoint(
        step=4, digest="", uri="", bytes=0, final=False, generation=1, created=0.0, files=(), kind="files", name="",
        seq=1, world_size=1, meta={},
    )  # fmt: skip
    (tmp_path / "vocab_32000.txt").write_text("x")
    (tmp_path / "last.json").write_text('{"epoch": 4}')
    labelling = Labelling(tmp_path, restored, Unit("", signature(tmp_path, ()), None))
    (tmp_path / "last.json").write_text('{"epoch": 5, "loss": 1}')
    unit = Unit("", signature(tmp_path, ()), None)
    label = labelling.label(unit)
    assert (label.step, labelling.progress(unit, label, new=True)) == (5, 5)


@pytest.mark.parametrize(
    ("written", "step"),
    [
        ([("final.json", 30)], 50),
        ([("final.json", 30), ("metrics.json", 30)], 50),
        ([("last.json", 60), ("final.json", 30)], 60),
        ([("last.json", 10)], 10),
        ([("last_10.json", 10)], 10),
    ],
)
def test_the_best_model_that_is_written_at_the_end_is_no_earlier_step(
    written: list[tuple[str, int]], step: int, tmp_path: Path
) -> None:
    restored = Checkpoint(
        step=50, digest="", uri="", bytes=0, final=False, generation=1, created=0.0, files=(), kind="files", name="",
        seq=1, world_size=1, meta={},
    )  # fmt: skip
    (tmp_path / "last.json").write_text('{"step": 50}')
    os.utime(tmp_path / "last.json", (1000, 1000))
    labelling = Labelling(tmp_path, restored, Unit("", signature(tmp_path, ()), None))
    for age, (name, told) in enumerate(written):
        (tmp_path / name).write_text(f'{{"step": {told}}}')
        os.utime(tmp_path / name, (2000 + age, 2000 + age))
        if name != "last.json" or len(written) == 1:  # else both are found at one look
            unit = Unit("", signature(tmp_path, ()), None)
            labelling.committed(unit, label := labelling.label(unit), {name: "x"}, 1)
            assert label.step == step


def test_steps_that_count_anew_in_each_epoch_are_in_order(tmp_path: Path) -> None:
    """Nothing of the second epoch was committed, nor went a restart on from it."""
    for name in ("epoch-0-step-10", "epoch-0-step-30", "epoch-1-step-10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model").write_text("x")
    found = contents(tmp_path, LaunchArgs(store_uri="file:///none", name="run"))
    assert [unit.name for unit in found.units] == ["epoch-0-step-10", "epoch-0-step-30", "epoch-1-step-10"]


def test_a_half_written_checkpoint_does_not_hold_back_the_one_before(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    gang.nodes[0].save(0, 20)  # rank 1 is not there yet
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit of the older one")
    gang.nodes[0].save(1, 20)
    gang.until(lambda: gang.committed() == [10, 20], "commit")
    assert {file.path.split("/")[0] for file in gang.store.commits()[-1].files} == {"checkpoint-20"}


def test_older_checkpoints_go_along_when_asked_for(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(checkpoint_units_stored="all")
    gang.save(10)
    gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    gang.save(20)
    gang.nodes[0].save(0, 15, how="keep open")
    gang.until(lambda: len(gang.store.commits()) == 2, "commit")
    found = {file.path.split("/")[0] for file in gang.store.commits()[-1].files}
    assert found == {"checkpoint-10", "checkpoint-20"}


def test_an_early_latest_does_no_harm(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    latest, rank = gang.nodes[0].folder / "latest", gang.nodes[0].ranks[0]
    pattern = "global_step{step}/rank{rank}.json"
    gang.save(10, name=pattern)
    rank.write(latest, "global_step10")
    gang.until(lambda: len(gang.store.commits()[-1:]) == 1 and "latest" in paths(gang), "commit with its latest")
    gang.save(20, name=pattern, skip=(1,))
    rank.write(latest, "global_step20")  # as DeepSpeed does: before the other ranks are done
    time.sleep(0.6)
    assert set(gang.committed()) == {10}
    gang.nodes[0].save(1, 20, name=pattern)
    gang.until(lambda: gang.committed()[-1] == 20, "commit")
    gang.save(30, name=pattern)  # whole, but the script would still go on from the one before
    time.sleep(0.6)
    assert gang.committed()[-1] == 20
    rank.write(latest, "global_step30")
    gang.until(lambda: gang.committed()[-1] == 30, "commit")
    gang.begin()
    assert latest.read_text() == "global_step30"
    assert not (gang.nodes[0].folder / "global_step20").exists()


def paths(gang: Cluster) -> list[str]:
    return [file.path for file in gang.store.commits()[-1].files]


def test_a_marker_is_waited_for(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(checkpoint_expect=(), checkpoint_marker="DONE")
    gang.save(10)
    time.sleep(0.8)
    assert gang.store.commits() == []
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "checkpoint-10/DONE", "")
    gang.until(lambda: gang.committed() == [10], "commit")
    assert "checkpoint-10/DONE" in paths(gang)


def test_a_lone_rank_leaves_its_number_out(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(nproc=1)
    gang.save(10, name="checkpoint-{step}/rank.json")
    gang.until(lambda: gang.committed() == [10], "commit")


@pytest.mark.parametrize(
    ("first", "last"), [("training_args.bin", "trainer_state.json"), ("__0_0.distcp", ".metadata")]
)
def test_what_everybody_writes_last_is_waited_for(one_node: Callable[..., Cluster], first: str, last: str) -> None:
    gang = one_node(checkpoint_expect=())
    folder, rank = gang.nodes[0].folder / "checkpoint-10", gang.nodes[0].ranks[0]
    rank.write(folder / first, "x")
    time.sleep(0.6)
    assert gang.store.commits() == []
    rank.write(folder / last, "{}")
    gang.until(lambda: len(gang.store.commits()) == 1, "commit")
    assert sorted(paths(gang)) == sorted(f"checkpoint-10/{name}" for name in (first, last))


def test_a_log_that_stays_open_beside_the_checkpoints(one_node: Callable[..., Cluster]) -> None:
    gang = one_node()
    gang.nodes[0].ranks[0].write(gang.nodes[0].folder / "runs/events", "x", "keep open")
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    assert "runs/events" not in paths(gang)


def test_a_model_that_is_written_last_is_part_of_the_end(one_node: Callable[..., Cluster]) -> None:
    gang = one_node(checkpoint_include=("checkpoint-*/*",))
    gang.save(10)
    gang.until(lambda: gang.committed() == [10], "commit")
    for rank in gang.nodes[0].ranks:
        rank.exit()
    (gang.nodes[0].folder / "model.bin").write_text("what was trained")  # the checkpoint rests since long
    gang.nodes[0].saves.finish(final=True)
    assert "model.bin" in paths(gang)


@pytest.mark.parametrize(
    ("name", "text", "whole"),
    [
        ("a.json", '{"a": 1}', True), ("a.json", '{"a": ', False), ("a.json", '{"a": 1}\n{"a": 2}\n', True),
        ("a.json", '{"a": 1}\n{"a": ', False), ("a.json", "", False), ("a.distcp", "PK\x03", False),
        ("a.pt", "", False), ("a.distcp", "other", True), ("a.bin", "anything", True),
        ("a.pt", "PK\x03\x04 cut", False), ("basic-variant-state.json", "\x80\x05N.", True),
        ("basic-variant-state.json", "\x80\x05N", False),
    ],
)  # fmt: skip
def test_what_can_be_parsed(name: str, text: str, whole: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert looks_whole(tmp_path / name) is whole


def test_an_ended_process_does_not_run() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE)
    assert is_running(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 5
    while is_running(child.pid):
        assert time.monotonic() < deadline
    child.communicate()  # until here it was a zombie
    assert not is_running(child.pid)


def test_what_is_missing_is_said_once(
    one_node: Callable[..., Cluster], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("argosy.steps.launch.opaque.PATIENCE_SECONDS", 0.5)
    gang = one_node()
    gang.save(10, skip=(1,))
    gang.nodes[0].ranks[1].write(gang.nodes[0].folder / "checkpoint-10/other.json", json.dumps({}))
    said = ""

    def told() -> bool:
        nonlocal said
        said += capfd.readouterr().err
        return "not committed" in said

    gang.until(told, "message")
    time.sleep(0.5)
    said += capfd.readouterr().err
    assert said.count("checkpoint out/checkpoint-10 not committed: there is no rank1.json of rank 1") == 1
    assert gang.store.commits() == []


def test_files_that_never_rest_are_named_and_taken_once_they_do(
    one_node: Callable[..., Cluster], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was committed, and nobody was told."""
    monkeypatch.setattr("argosy.steps.launch.complaints.LONG_SECONDS", 0.5)
    gang = one_node()
    first, second = (gang.nodes[0].ranks[rank] for rank in (0, 1))
    gang.save(10, skip=(1,))
    second.write(gang.nodes[0].folder / "checkpoint-10/rank1.json", json.dumps({}), "keep open")
    said, rewritten = "", 0

    def told() -> bool:
        nonlocal said, rewritten
        rewritten += 1
        first.write(gang.nodes[0].folder / "checkpoint-10/rank0.json", json.dumps({"n": rewritten}))
        said += capfd.readouterr().err
        return "never rests" in said

    gang.until(told, "message")
    assert "s: out/checkpoint-10 never rests (" in said
    assert gang.store.commits() == []
    second.write(Path(), "", "close all")
    gang.until(lambda: bool(gang.store.commits()), "commit")
    assert (said + capfd.readouterr().err).count("never rests") == 1


def test_a_file_that_is_empty_with_the_time_of_the_save_before_begins_a_save_now(tmp_path: Path) -> None:
    """What a look may see while the file is opened again: the size is the new one, the time still the old one's."""
    labels, second, now = Labelling(tmp_path, None), 10**9, time.time()
    for step, ago in ((6, 50), (12, 1)):
        labels.tell(Word(step, now - ago, "batch", per_epoch=6), anew=False)
    first = Unit("", {"c.pt": (9, int((now - 40) * second), 1)}, None)
    labels.look([first])
    labels.look([first])
    labels.look([Unit("", {"c.pt": (0, int((now - 40) * second), 1)}, None)])
    assert labels.label(Unit("", {"c.pt": (9, int(time.time() * second), 1)}, None)).step == 12
