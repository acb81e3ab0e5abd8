"""Evaluation: the script sees verified bytes or does not run; its number is recorded or its failure is quoted."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.checkpoint.store import CheckpointStore
from argosy.steps.contract.arguments import EvaluateArgs
from argosy.steps.contract.layout import code_key, run_prefix
from tests.launch.committing import committed_folder

FILES = {"model.pt": b"weights" * 1000, "deep/config.json": b"{}"}


def committed(pods: Any, tmp_path: Path, workflow: str = "wf-1") -> str:
    folder = tmp_path / f"out-{workflow}"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        os.utime(folder / name, (1, 1))
    checkpoints = CheckpointStore(pods.store, run_prefix("run", workflow))
    claim = checkpoints.claim("test")
    return committed_folder(checkpoints, claim, 40, folder, list(FILES), final=True).digest


def coded(pods: Any, script: str) -> str:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        entry = tarfile.TarInfo("eval.py")
        entry.size = len(script.encode())
        archive.addfile(entry, io.BytesIO(script.encode()))
    digest = hashlib.sha256(raw.getvalue()).hexdigest()
    pods.store.put(code_key("run", digest), raw.getvalue())
    return digest


def evaluate(pods: Any, tmp_path: Path, source: str, **given: Any) -> Any:
    usual = {"checkpoint_digest": committed(pods, tmp_path), "metric": "bpb", "code_digest": coded(pods, source)}
    return pods.run(EvaluateArgs, **usual | {"script": "eval.py"} | given)


GOOD = """
import json, os, sys
from pathlib import Path
model = Path(os.environ["ARGOSY_CHECKPOINT_PATH"], "model.pt").read_bytes()
data = sorted(str(path.name) for path in Path(os.environ["ARGOSY_DATA_PATH"]).glob("*.txt"))
print("evaluating", sys.argv[1:], data)
metrics = {"bpb": len(model) / 3, "files": len(data), "run": os.environ["ARGOSY_RUN_ID"]}
Path(os.environ["ARGOSY_METRICS_PATH"]).write_text(json.dumps(metrics))
"""


def test_metric_is_recorded(any_pods: Any, tmp_path: Path, write: Callable[..., None]) -> None:
    uri = any_pods.store_uri.rsplit("/", 1)[0] + "/held-out"
    write(uri, {"a.txt": b"1", "b.txt": b"2"})
    told = evaluate(any_pods, tmp_path, GOOD, arg=("--split", "val"), dataset_uri=uri)
    assert told.code == 0, told.err
    assert float(told.outputs["metric"]) == 7000 / 3
    assert "evaluating ['--split', 'val'] ['a.txt', 'b.txt']" in told.out
    record = any_pods.json(told.outputs["report-uri"].removeprefix(any_pods.store_uri + "/"))
    assert any_pods.json("run/runs/wf-1/alive/uid-wf-1.json")["time"] <= record["time"], "the claim was kept alive"
    assert (record["metric"], record["value"], record["step"]) == ("bpb", 7000 / 3, 40)
    assert record["metrics"] == {"bpb": 7000 / 3, "files": 2, "run": "wf-1"}
    assert len(record["dataset_digest"]) == 64
    (event,) = any_pods.events("wf-1", "evaluated")
    assert event.fields["value"] == 7000 / 3


def test_held_out_data_in_a_cache_are_fetched_once_and_held(
    pods: Any, tmp_path: Path, write: Callable[..., None]
) -> None:
    uri, cache = f"{tmp_path.as_uri()}/held-out", tmp_path / "volume"
    write(uri, {"a.txt": b"1", "b.txt": b"22"})
    pods.env["ARGOSY_MOUNTS"] = json.dumps({"/argosy/cache": str(cache)})
    script = f"{GOOD}\nprint('LEASES', *(each.name.split('.')[1] for each in Path({str(cache)!r}).glob('.*/leases/*')))"
    for number, workflow in enumerate(("wf-1", "wf-2")):
        digest, code = committed(pods, tmp_path, workflow), coded(pods, script)
        given = {"checkpoint_digest": digest, "code_digest": code, "dataset_uri": uri, "cache_path": "/argosy/cache"}
        told = pods.run(EvaluateArgs, workflow, metric="bpb", script="eval.py", **given)
        assert told.code == 0, told.err
        assert f"held-out data: 3 bytes, {0 if number else 3} fetched" in told.out
        assert "evaluating [] ['a.txt', 'b.txt']" in told.out
        assert "LEASES use" in told.out
    assert list(cache.glob(".argosy-cache/leases/*")) == []
    record = pods.json(told.outputs["report-uri"].removeprefix(pods.store_uri + "/"))
    assert (cache / record["dataset_digest"]).is_dir()


def test_evaluated_again_in_the_same_pod_the_last_wins(pods: Any, tmp_path: Path) -> None:
    root = str(tmp_path / "pod")
    digest = committed(pods, tmp_path)
    for number in (1.5, 2.5):
        script = f"import os; open(os.environ['ARGOSY_METRICS_PATH'], 'w').write('{{\"bpb\": {number}}}')"
        told = pods.run(
            EvaluateArgs, root=root, checkpoint_digest=digest, metric="bpb", code_digest=coded(pods, script),
            script="eval.py",
        )  # fmt: skip
        assert (told.code, told.outputs["metric"]) == (0, repr(number)), told.err
    assert pods.json(f"run/runs/wf-1/evaluation/{digest}.json")["value"] == 2.5


def test_a_damaged_checkpoint_never_reaches_the_script(pods: Any, tmp_path: Path) -> None:
    digest = committed(pods, tmp_path)
    (shard,) = [info.key for info in pods.store.list("run/runs/wf-1/data") if info.size == 7000]
    pods.store.put(shard, b"weightz" * 1000)
    told = pods.run(
        EvaluateArgs, checkpoint_digest=digest, metric="bpb", code_digest=coded(pods, "print('SCRIPT RAN')"),
        script="eval.py",
    )  # fmt: skip
    assert (told.code, told.outputs) == (72, {})
    assert "checkpoint_corrupt" in told.err
    assert "SCRIPT RAN" not in told.out


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("raise ValueError('bad shape 7')", 70, "user_exception: the evaluation script ended with exit code 1: Val"),
        ("import sys; sys.exit(3)", 70, "ended with exit code 3"),
        ("import nonexistent_module", 78, "import_error"),
        ("pass", 70, "wrote no metrics"),
        ("W('not json')", 70, "not JSON"),
        ("W('[1]')", 70, "the metrics are a list"),
        ("W('{}')", 70, "have no 'bpb', they have nothing"),
        ("W('{\"loss\": 1}')", 70, "have no 'bpb', they have loss"),
        ("W('{\"bpb\": NaN}')", 70, "metric 'bpb' is nan, not a finite number"),
        ("W('{\"bpb\": Infinity}')", 70, "not a finite number"),
        ("W('{\"bpb\": true}')", 70, "not a finite number"),
        ("W('{\"bpb\": \"2\"}')", 70, "not a finite number"),
        ("W('{\"bpb\": 1' + '0' * 400 + '}')", 70, "not a finite number"),
        ("W('{\"bpb\": ' + ' ' * 2000000 + '1}')", 70, "larger than"),
    ],
)  # fmt: skip
def test_failures_are_quoted(script: str, code: int, said: str, pods: Any, tmp_path: Path) -> None:
    head = "import os\ndef W(text): open(os.environ['ARGOSY_METRICS_PATH'], 'w').write(text)\n"
    told = evaluate(pods, tmp_path, head + script)
    assert (told.code, told.outputs) == (code, {}), told.err
    assert said in told.err
    assert list(pods.store.list("run/runs/wf-1/evaluation")) == []


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ({"script": ""}, 2, "exactly one"),
        ({"module": "x"}, 2, "exactly one"),
        ({"checkpoint_digest": "newest"}, 2, "64 hex digits"),
        ({"checkpoint_digest": "0" * 64}, 78, "checkpoint_mismatch"),
        ({"script": "other.py"}, 78, "no script 'other.py'"),
        ({"code_digest": "0" * 64}, 78, "s3_missing"),
        ({"dataset_uri": "file:///nowhere"}, 78, "is empty"),
    ],
)
def test_wrong_evaluation_is_one_clear_line(
    given: dict[str, str], code: int, said: str, pods: Any, tmp_path: Path
) -> None:
    told = evaluate(pods, tmp_path, GOOD, **given)
    assert (told.code, told.err.count("\n"), told.outputs) == (code, 1, {})
    assert said in told.err


HANGS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(f"{os.getpid()} {child.pid}")
print("still thinking", flush=True)
time.sleep(600)
"""


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def all_gone(note: Path) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if all(gone(int(pid)) for pid in note.read_text().split()):
            return True
    return False


def test_a_script_that_hangs_is_ended_with_its_children(pods: Any, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    told = evaluate(pods, tmp_path, HANGS, timeout_seconds=2, arg=(str(note),))
    assert told.code == 77
    assert "deadline_exceeded: the script did not end within 2 s [still thinking]" in told.err
    assert all_gone(note)


def test_sigterm_ends_the_script_too(pods: Any, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    given = {"checkpoint_digest": committed(pods, tmp_path), "metric": "bpb", "code_digest": coded(pods, HANGS)}
    child, root = pods.start(EvaluateArgs, script="eval.py", arg=(str(note),), **given)
    while child.poll() is None and len(note.read_text().split() if note.exists() else ()) < 2:
        pass
    child.send_signal(signal.SIGTERM)
    told = pods.finish(child, root)
    assert (told.code, json.loads(told.termination)["cause"]) == (76, "sigterm")
    assert all_gone(note)
