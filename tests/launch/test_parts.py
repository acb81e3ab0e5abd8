"""Launch's parts without processes of torch: printed progress, whole files, code archives, the channel's client."""

from __future__ import annotations

import io
import json
import math
import os
import struct
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from argosy.steps.code import unpack
from argosy.steps.contract import env as names
from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.contract.errors import InputError, StepError
from argosy.steps.contract.layout import code_key
from argosy.steps.data.cache.root import CacheRoot
from argosy.steps.data.manifest import DataObject, DatasetManifest
from argosy.steps.gang.pod_states import pod_state
from argosy.steps.launch.channel_client import ChannelAway, ChannelClient
from argosy.steps.launch.environment import rank_environment
from argosy.steps.launch.identity import Identity
from argosy.steps.launch.prepare import preflight_command
from argosy.steps.launch.progress_lines import ProgressLines, compile_pattern
from argosy.steps.launch.whole_files import looks_whole, matching, open_for_writing, proves_itself, signature
from argosy.steps.store import open_store
from argosy.steps.store.base import ObjectStore

if TYPE_CHECKING:
    from tests.launch.conftest import Gang


BAR = " 50%|#####     | {}/{} [00:01<00:09,  9.9it/s]"


def read_all(*printed: str) -> list[tuple[int, str, float | None]]:
    lines = ProgressLines()
    told = [record for line in printed if (record := lines.read(line))]
    return [(record["step"], record["kind"], record.get("loss")) for record in told]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("step 10 loss 2.3", {"step": 10, "loss": 2.3, "kind": "line"}),
        ("step 10/200 | loss: 2.3e-1", {"step": 10, "loss": 0.23, "end_step": 200, "kind": "line"}),
        ("iter 10: loss 2.3, time 5 ms", {"step": 10, "loss": 2.3, "kind": "line"}),
        ("Epoch 1 step 10 loss=2.3", {"step": 10, "loss": 2.3, "kind": "line"}),
        ("[rank0] global_step=10, train_loss=2.3", {"step": 10, "loss": 2.3, "kind": "line"}),
        ("{'step': 10, 'loss': '2.3'}", {"step": 10, "loss": 2.3, "kind": "line"}),
        ("Epoch 3: loss 0.5", {"step": 3, "loss": 0.5, "kind": "epoch"}),
        ("step 1 loss 0.0", {"step": 1, "loss": 0.0, "kind": "line"}),
        ("step 9: loss infers nothing", None),
        ("step 9 loss=-inf", {"step": 9, "loss": -math.inf, "kind": "line"}),
        (BAR.format(10, 100), {"step": 10, "end_step": 100, "kind": "bar"}),
        ("Epoch 3: " + BAR.format(2, 4), {"step": 14, "kind": "bar", "per_epoch": 4}),  # Lightning
        ("Epoch 2/5: " + BAR.format(2, 4), {"step": 6, "end_step": 20, "kind": "bar", "per_epoch": 4}),
        (
            "Epoch: [3][ 1/40]\tTime 0.1 (0.1)\tLoss 7.0e+00 (7.0e+00)",  # the imagenet example
            {"step": 121, "loss": 7.0, "kind": "batch", "per_epoch": 40},
        ),
        ("Train: 2 [  50/100 ( 50%)]  Loss: 6.9 (6.9)", {"step": 250, "loss": 6.9, "kind": "batch", "per_epoch": 100}),
        ("[10/100] loss=2.3", {"step": 10, "end_step": 100, "loss": 2.3, "kind": "epoch"}),
        ("2026-01-02 [INFO] [10/100] mse 0.5", {"step": 10, "end_step": 100, "loss": 0.5, "kind": "epoch"}),
        ("iter 10 mse 0.5", {"step": 10, "loss": 0.5, "kind": "line"}),
        ("[1/4] shards read", None),
        ("[0/4] loss 2.3", None),  # a rank of so many
        ("[2/25][50/391] loss 2.3", None),
        ("eval [3/10] loss 2.3", None),
        ("[3/10] val loss 2.3", None),
        ("[3/10] loss 0.5 val loss 2.3", {"step": 3, "end_step": 10, "loss": 0.5, "kind": "epoch"}),
        ("[3/10] val_mse 2.3", None),
        ("Map: 100%|##########| 1000/1000 [00:00<00:00, 9000 examples/s]", None),
        ("Loading weights: 100%|##########| 41/41 [00:00<00:00]", None),
        (BAR.format(0, 40), None),  # Hugging Face draws it before it has resumed
        ("loading 10 files", None),
        ("stepping stone", None),
        ("epoch 3 loss_D -0.4 loss_G 0.7", {"step": 3, "loss": -0.4, "kind": "epoch"}),
        (
            # DCGAN of pytorch/examples
            "[2/25][50/391] Loss_D: 0.4100 Loss_G: 2.1000 D(x): 0.7",
            {"step": 441, "end_step": 9775, "loss": 0.41, "kind": "batch", "per_epoch": 391},
        ),
        ("completed_steps: 10 train_loss=2.3", {"step": 10, "loss": 2.3, "kind": "line"}),
        (
            # Lightning where rich is installed
            "Epoch 5/5  ━━━━━━━━━━ 10/10 0:00:01 • 0:00:00 9.73it/s train_loss: 0.020",
            {"step": 60, "end_step": 60, "loss": 0.02, "kind": "bar", "per_epoch": 10},
        ),
        ("Epoch 0/5 ━━━━━ 0/10 0:00:00 • 0:00:00 0.00it/s", None),
        ("Epoch 2/-2 ━━╸━━━ 4/10 0:00:01 • 0:00:00 9.73it/s", {"step": 24, "kind": "bar", "per_epoch": 10}),
        ("first step 3 of the manual", None),
    ],
)
def test_progress_that_scripts_print(line: str, found: dict[str, Any] | None) -> None:
    assert ProgressLines().read(line) == found


def test_a_loss_that_is_no_number_is_told() -> None:
    assert math.isnan(ProgressLines().read("Iteration 7, loss = nan")["loss"])


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        # Per epoch the steps begin anew: they are counted on. What goes back without an epoch is not told.
        (
            [f"Epoch {i // 5} step {i % 5} loss 1.0" for i in range(1, 12)],
            [(i, "line", 1.0) for i in range(1, 12)],
        ),
        (["step 5 loss 1", "step 3 loss 1", "step 6 loss 1"], [(5, "line", 1.0), (6, "line", 1.0)]),
        # Words win over a bar that came first, and the loss in a line of its own is the bar's.
        ([BAR.format(7, 9), "step 1 loss 2"], [(7, "bar", None), (1, "line", 2.0)]),
        ([BAR.format(2, 9), "{'loss': '4.3', 'epoch': '0.5'}", BAR.format(2, 9)], [(2, "bar", None), (2, "bar", 4.3)]),
        (  # Hugging Face before 5: a bare number of epochs; an evaluation's loss and the summary are no loss of a step
            [
                BAR.format(2, 9),
                "{'loss': 4.3, 'epoch': 0.5}",
                BAR.format(3, 9),
                "{'eval_loss': 9.0, 'epoch': 1}",
                "{'train_runtime': 1.0, 'train_loss': 8.0, 'epoch': 1.0}",
                BAR.format(4, 9),
            ],
            [(2, "bar", None), (3, "bar", 4.3), (4, "bar", None)],
        ),
        # A bar that had ended before any loss was told counted what was prepared; an evaluation's bar does not.
        (
            [BAR.format(9, 9), BAR.format(1, 40), BAR.format(2, 40)],
            [(9, "bar", None), (1, "bar", None), (2, "bar", None)],
        ),
        ([BAR.format(8, 9), BAR.format(1, 4), BAR.format(9, 9)], [(8, "bar", None), (9, "bar", None)]),
        # Keras before 3 and since; a bar of another length is an evaluation's, and fit may be called again.
        (
            [
                "Epoch 1/2",
                "1/4 [======>.......................] - ETA: 10s - loss: 5.8450\b\b\b",
                "4/4 [==============================] - 5s 457ms/step - loss: 4.6942 - val_loss: 3.8606",
                "Epoch 2/2",
                "3/4 ━━━━━━━━━━━━━━━━━━━━ 0s 119ms/step - loss: 3.4642",
                "1/2 [==============>...............] - ETA: 0s - loss: 3.0519",
                "Epoch 1/2",
                "2/4 ━━━━━━━━━━━━━━━━━━━━ 0s 119ms/step - loss: 2.4642",
            ],
            [(1, "bar", 5.845), (4, "bar", 4.6942), (7, "bar", 3.4642), (10, "bar", 2.4642)],
        ),
        # What may be epochs is read only until steps are told.
        (["[1/9] loss 3", "step 40 loss 2", "[2/9] loss 1"], [(1, "epoch", 3.0), (40, "line", 2.0)]),
        # A bar of each epoch.
        ([BAR.format(n, 2) for n in (1, 2, 1, 2)], [(n, "bar", None) for n in (1, 2, 3, 4)]),
    ],
)
def test_progress_keeps_its_kind(printed: list[str], told: list[Any]) -> None:
    assert read_all(*printed) == told


@pytest.mark.parametrize(
    ("first", "restored", "step"),
    [
        ("Epoch [0/6] [0/10]", 0, 1), ("Epoch [1/6] [1/10]", 0, 1), ("Epoch [1/6] [0/10]", 20, 1),
        ("Epoch [3/6] [0/10]", 30, 31), ("Epoch [4/6] [0/10]", 30, 31), ("Epoch [4/6] [5/10]", 30, 35),
        # A checkpoint within an epoch, which begins anew, and which goes on.
        ("Epoch [4/6] [1/10]", 35, 31), ("Epoch [3/6] [1/10]", 35, 31), ("Epoch [4/6] [6/10]", 35, 36),
        ("Epoch [1/6] [1/10]", 5, 1),
    ],
)  # fmt: skip
def test_epochs_and_batches_are_counted_from_where_they_begin(first: str, restored: int, step: int) -> None:
    found = ProgressLines(restored=restored).read(f"{first} loss: 0.5")
    assert found is not None
    assert (found["step"], found["end_step"]) == (step, 60)


@pytest.mark.parametrize("page", ["7" * 65536, " " * 65536], ids=["digits", "spaces"])
def test_a_page_without_an_end_of_line_holds_no_rank_up(page: str) -> None:
    began = time.process_time()
    assert read_all(page, "step 1 loss 0.5 " + page) == [(1, "line", 0.5)]
    assert time.process_time() - began < 3  # ten seconds and more, were all of it looked at


def test_a_step_at_the_end_of_a_long_line_is_read() -> None:
    """A record of many metrics with sorted names; and no number that was cut is one."""
    norms = {f"grad/layer{index}": 0.125 for index in range(300)}
    assert read_all(json.dumps({**norms, "loss": 0.5, "step": 10}, sort_keys=True)) == [(10, "line", 0.5)]
    assert read_all("x" * 2036 + " loss 1 step 1234" + " x" * 2048) == []


def test_own_pattern() -> None:
    lines = ProgressLines(r"it=(?P<step>\d+) L=(?P<loss>\S+)")
    assert lines.read("it=5 L=1.25") == {"step": 5, "loss": 1.25, "kind": "own"}
    assert lines.read("step 6 loss 1.0") is None
    for wrong in ("(", r"it=(\d+)"):
        with pytest.raises(InputError, match="progress_pattern"):
            compile_pattern(wrong)


def test_whole_files(tmp_path: Path) -> None:
    good = tmp_path / "a.pt"
    with zipfile.ZipFile(good, "w") as target:
        target.writestr("data", b"x" * 1000)
    assert looks_whole(good)
    raw = good.read_bytes()
    for cut in range(5, len(raw), 97):
        (tmp_path / "torn.pt").write_bytes(raw[:cut])
        assert not looks_whole(tmp_path / "torn.pt")
    header = json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}).encode()
    whole = struct.pack("<Q", len(header)) + header + bytes(16)
    for cut, expected in ((len(whole), True), (len(whole) - 1, False), (20, False), (0, False)):
        (tmp_path / "a.safetensors").write_bytes(whole[:cut])
        assert looks_whole(tmp_path / "a.safetensors") is expected
    of_another = b'{"w":{"data_offsets":[0,null]}}'
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(of_another)) + of_another)
    assert not looks_whole(tmp_path / "a.safetensors")
    with (tmp_path / "a.safetensors").open("wb") as misnamed:  # its header would be half a terabyte
        misnamed.write(struct.pack("<Q", 1 << 39))
        misnamed.truncate(1 << 40)
    assert not looks_whole(tmp_path / "a.safetensors")
    several_disks = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 2) + struct.pack("<4s4H2LH", b"PK\x05\x06", *[0] * 7)
    (tmp_path / "b.pt").write_bytes(b"PK\x03\x04" + several_disks)
    assert not looks_whole(tmp_path / "b.pt")
    assert not proves_itself(tmp_path / "b.pt")
    (tmp_path / "plain.json").write_text("{}")
    assert looks_whole(tmp_path / "plain.json")
    assert not looks_whole(tmp_path / "missing")


def test_matching_takes_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.pt", "sub/b.pt", "c.txt"):
        (tmp_path / name).write_text("x")
    (tmp_path / "link.pt").symlink_to("/etc/passwd")
    (tmp_path / "gone.pt").symlink_to("none.pt")
    (tmp_path / "last.pt").symlink_to("sub/b.pt")
    assert matching(tmp_path, ("*.pt",)) == ["a.pt"]
    assert matching(tmp_path, ("*.pt", "last.pt", "gone.pt", "link.pt")) == ["a.pt", "last.pt"]
    (tmp_path / "last.pt").unlink()
    assert matching(tmp_path, ("**/*.pt",)) == ["a.pt", "sub/b.pt"]
    assert matching(tmp_path, ()) == ["a.pt", "c.txt", "sub/b.pt"]
    assert matching(tmp_path / "none", ()) == []
    assert set(signature(tmp_path, ())) == {"a.pt", "c.txt", "sub/b.pt"}


def test_a_file_open_for_writing_in_a_child_is_seen(tmp_path: Path) -> None:
    code = "import sys; f = open(sys.argv[1], sys.argv[2]); print(flush=True); sys.stdin.read()"
    (tmp_path / "f").write_text("x")
    (tmp_path / "last").symlink_to("f")
    for mode, expected in (("a", {"f", "last"}), ("r", set())):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "f"), mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        assert open_for_writing(tmp_path, ["f", "last"]) == expected
        child.communicate()
        assert not open_for_writing(tmp_path, ["f"])


def archive(files: dict[str, str], links: dict[str, str] | None = None) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as target:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            target.addfile(info, io.BytesIO(text.encode()))
        for name, to in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, to
            target.addfile(info)
    return raw.getvalue()


def pushed(tmp_path: Path, data: bytes) -> tuple[ObjectStore, str]:
    import hashlib

    store = open_store(f"file://{tmp_path}/store")
    digest = hashlib.sha256(data).hexdigest()
    store.put(code_key("run", digest), data)
    return store, digest


def test_code_is_unpacked_once(tmp_path: Path) -> None:
    store, digest = pushed(tmp_path, archive({"train.py": "print(1)", "pkg/mod.py": "x = 1"}))
    into = tmp_path / "workspace"
    unpack(store, "run", digest, into)
    assert (into / "train.py").read_text() == "print(1)"
    assert (into / "pkg" / "mod.py").read_text() == "x = 1"
    assert sorted(path.name for path in into.iterdir()) == [".argosy-code", "pkg", "train.py"]
    (into / "out.txt").write_text("the script's own")
    store.delete(code_key("run", digest))
    unpack(store, "run", digest, into)  # done already: the store is not needed
    assert (into / "out.txt").exists()


def test_code_killed_on_the_way_is_done_again(tmp_path: Path) -> None:
    store, digest = pushed(tmp_path, archive({"train.py": "new", "pkg/mod.py": "new"}))
    into = tmp_path / "workspace"
    # What a kill may leave: a part folder, some entries moved, no marker.
    (into / ".argosy-code-part-1" / "files").mkdir(parents=True)
    (into / "pkg").mkdir()
    (into / "pkg" / "stale.py").write_text("old")
    unpack(store, "run", digest, into)
    assert sorted(path.relative_to(into).as_posix() for path in into.rglob("*") if path.is_file()) == [
        ".argosy-code",
        "pkg/mod.py",
        "train.py",
    ]


def test_bad_code_is_refused_before_anything_is_there(tmp_path: Path) -> None:
    into = tmp_path / "workspace"
    store, digest = pushed(tmp_path, archive({"a.py": "x"}))
    store.put(code_key("run", digest), archive({"evil.py": "x"}))
    with pytest.raises(StepError, match="not unpacked") as caught:
        unpack(store, "run", digest, into)
    assert caught.value.code == 78
    for data in (
        archive({"../evil.py": "x"}),
        archive({"a": "x"}, {"link": "/etc"}),
        b"no archive",
        archive({"a": "x" * 9999})[:80],
    ):
        store, digest = pushed(tmp_path, data)
        with pytest.raises(StepError) as caught:
            unpack(store, "run", digest, into)
        assert (caught.value.cause, caught.value.code) == ("config_or_rbac", 78)
    with pytest.raises(StepError) as caught:
        unpack(store, "run", "0" * 64, into)
    assert caught.value.cause == "s3_missing"
    assert "nobody stored it, or it was deleted since" in caught.value.quote  # what status and explain show
    assert list(into.iterdir()) == []
    assert not (tmp_path / "evil.py").exists()


def assignment(**changes: Any) -> Assignment:
    values: dict[str, Any] = {
        "restart": 2, "attempt": 3, "node_rank": 0, "nnodes": 2, "master_addr": "127.0.0.1", "master_port": 1,
        "run_id": "gpt run/1", "workflow": "w", "generation": 5, "log_seq": 9, "resume_digest": "ab" * 32,
        "resume_step": 40, "dataset_digest": "", "args": [], **changes,
    }  # fmt: skip
    return Assignment(**values)


def test_what_is_enforced_is_checked_before_every_start_of_the_ranks() -> None:
    args = LaunchArgs(store_uri="file:///s", name="gpt", script="t.py")
    assert preflight_command(args, assignment(restart=0)) == []
    warned, enforced = replace(args, preflight="warn"), replace(args, preflight="enforce")
    assert preflight_command(warned, assignment(restart=0))[-3:] == ["--mode=warn", "--floor=0", "--"]
    assert preflight_command(warned, assignment(restart=1)) == []
    assert "--mode=enforce" in preflight_command(enforced, assignment(restart=1))


def test_environment_of_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        names.CHANNEL_TOKEN: "secret", names.CHANNEL_URL: "http://x:1", names.LIFELINE_FD: "9",
        "WANDB_RUN_ID": "mine", "MY_OWN": "1", "PYTHONUNBUFFERED": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    args = LaunchArgs(store_uri="file:///s", name="gpt", micro_batch_size=4, accumulation_steps=2, learning_rate=0.1)
    environ = rank_environment(args, assignment(), data_path="/d", data_uri="s3://b/d")
    assert {names.CHANNEL_TOKEN, names.CHANNEL_URL, names.LIFELINE_FD} & set(environ) == set()
    expected = {
        names.RUN_ID: "gpt run/1", names.RUN_URI: "file:///s/gpt/runs/gpt run/1", names.ATTEMPT: "3",
        names.RESTART: "2", names.GENERATION: "5", names.LOG_SEQ: "9", names.RESUME_DIGEST: "ab" * 32,
        names.RESUME_STEP: "40", names.DATA_PATH: "/d", names.DATA_URI: "s3://b/d", names.MICRO_BATCH: "4",
        names.ACCUMULATION: "2", names.LEARNING_RATE: "0.1", "WANDB_RUN_ID": "mine", "WANDB_RESUME": "allow",
        "MY_OWN": "1", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    assert {name: environ.get(name) for name in expected} == expected
    assert names.EFFECTIVE_BATCH not in environ
    elastic = replace(args, accumulation_steps=2, effective_batch_size=4 * 2 * 6)
    for nnodes, steps in ((6, "2"), (4, "3"), (3, "4")):
        environ = rank_environment(elastic, replace(assignment(), nnodes=nnodes), data_path="", data_uri="")
        assert (environ[names.ACCUMULATION], environ[names.EFFECTIVE_BATCH]) == (steps, "48")
    monkeypatch.delenv("WANDB_RUN_ID")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    environ = rank_environment(args, assignment(), data_path="", data_uri="")
    assert environ["WANDB_RUN_ID"] == "gpt-run-1"
    assert environ["OMP_NUM_THREADS"] == "7"


def test_a_pod_counts_those_of_the_parts_before_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"training.kubeflow.org/replica-index": "2", "argosy.dev/first-index": "1"}
    pod = {"metadata": {"name": "g-worker-2", "labels": labels}, "status": {"phase": "Running"}}
    assert pod_state(pod, index="training.kubeflow.org/replica-index").index == 3
    monkeypatch.setenv(names.CHANNEL_URL, "http://here")
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "2")
    assert Identity.from_environment().index == 2
    monkeypatch.setenv(names.FIRST_INDEX, "1")
    assert Identity.from_environment().index == 3
    monkeypatch.setenv(names.FIRST_INDEX, "one")
    with pytest.raises(InputError, match="ARGOSY_FIRST_INDEX = 'one'"):
        Identity.from_environment()


def test_channel_errors_are_told_apart(make_gang: Callable[[int], Gang]) -> None:
    with pytest.raises(InputError, match="channel url"):
        ChannelClient("https://x", "t")
    gang = make_gang(1)
    assert ChannelClient(gang.endpoint.url, "t").own_address() == "127.0.0.1"
    nobody = ChannelClient("http://127.0.0.1:9", "t")
    with pytest.raises(ChannelAway):
        nobody._post("/v1/report", b"{}", 1.0)
    client = ChannelClient(gang.endpoint.url, gang.endpoint.token)
    with pytest.raises(ChannelAway, match="400"):
        client._post("/v1/report", b"{}", 1.0)
    client.close()


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        ([], "script, module"),
        (["--script=a.py", "--module=b"], "script, module"),
        (["--script=a.py", "--launcher=mpi"], "launcher"),
        (["--script=a.py", "--checkpoint-mode=opaque"], "checkpoint_path"),
        (["--script=a.py", "--checkpoint-mode=opaque", "--checkpoint-path=../x"], "checkpoint_path"),
        (["--script=a.py", "--checkpoint-mode=opaque", "--checkpoint-path=."], "checkpoint_include"),
        (["--script=a.py", "--progress-pattern=("], "progress_pattern"),
        (["--script=a.py"], names.CHANNEL_URL),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(argv: list[str], word: str) -> None:
    environ = {key: value for key, value in os.environ.items() if not key.startswith("ARGOSY_")}
    done = subprocess.run(
        [sys.executable, "-m", "argosy.steps.launch", "--store-uri=file:///s", "--name=x", *argv],
        env=environ, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert word in done.stderr
    assert len(done.stderr.splitlines()) == 1


READS_DATA = """
import os, pathlib
root = pathlib.Path(os.environ["ARGOSY_DATA_PATH"])
files = sorted(p.name for p in root.rglob("*.bin"))
print("FILES", os.environ["RANK"], *files, flush=True)
"""


def gang_with_data(make_gang: Callable[[int], Gang], folder: Path) -> tuple[Gang, DatasetManifest]:
    """Two nodes whose ranks read six files of 1,000 bytes."""
    source = open_store(f"file://{folder}/source")
    for number in range(6):
        source.put(f"shard-{number}.bin", bytes([number]) * 1000)
    objects = [DataObject(info.key, info.size, info.etag, info.version) for info in source.list("")]
    manifest = DatasetManifest.of(source.uri, objects)
    gang = make_gang(2)
    open_store(gang.store_uri).put(f"run/datasets/{manifest.digest}.json", manifest.to_bytes())
    for index in range(2):
        (gang.workspace(index) / "train.py").write_text(READS_DATA)
    return gang, manifest


def test_nodes_with_one_cache_fetch_once_and_hold_it_while_they_train(
    make_gang: Callable[[int], Gang], tmp_path: Path
) -> None:
    gang, manifest = gang_with_data(make_gang, tmp_path)
    cache = tmp_path / "cache"
    cache.mkdir()
    for index in range(2):
        (gang.root(index) / "argosy" / "cache").symlink_to(cache)
        with (gang.workspace(index) / "train.py").open("a") as script:
            script.write(f"import pathlib; leases = pathlib.Path({str(cache)!r}, '.argosy-cache/leases')\n")
            script.write("print('LEASES', *sorted(p.name.split('.')[1] for p in leases.iterdir()), flush=True)\n")
    with CacheRoot(cache) as opened:
        for workflow in ("run-abc", "another"):
            opened.book(manifest.digest, workflow, f"the stage step of {workflow}", 600.0)
    gang.start(script="train.py", launcher="plain", staging="node", cache_path="/argosy/cache")
    gang.assign(0, dataset_digest=manifest.digest)
    gang.until(lambda: set(gang.phases().values()) == {"finished"}, 60, "end")
    said = [line for pod in gang.pods for line in pod.text().splitlines()]
    assert sum("FILES" in line and line.count(".bin") == 6 for line in said) == 2
    assert sum("LEASES" in line and "use" in line for line in said) == 2
    assert sorted(event["fetched_bytes"] for event in gang.events("staged")) == [0, 6000]
    assert [path.name for path in cache.iterdir() if path.name != ".argosy-cache"] == [manifest.digest]
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]
    assert list((cache / ".argosy-cache" / "leases").iterdir()) == []
    with CacheRoot(cache) as opened:
        assert [one.who for one in opened.bookings()] == ["the stage step of another"]


def test_each_node_stages_its_own_share(make_gang: Callable[[int], Gang], tmp_path: Path) -> None:
    gang, manifest = gang_with_data(make_gang, tmp_path)
    gang.start(script="train.py", launcher="plain", staging="node", layout="sharded")
    gang.assign(0, dataset_digest=manifest.digest)
    gang.until(lambda: set(gang.phases().values()) == {"finished"}, 60, "end")
    lines = [line for pod in gang.pods for line in pod.text().splitlines() if "FILES" in line]
    shares = [line.split()[4:] for line in sorted(lines)]
    assert all(shares)
    assert sorted(name for share in shares for name in share) == [f"shard-{number}.bin" for number in range(6)]
    assert {event["node"] for event in gang.events("staged")} == {"node-0", "node-1"}
    assert sum(event["fetched_bytes"] for event in gang.events("staged")) == 6000
    gang.order("exit", 0)
    assert gang.exit_codes() == [0, 0]
