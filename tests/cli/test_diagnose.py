"""argosy diagnose: what anybody's logs say, from files, folders and standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.trouble import ASKED_FOR_STACKS
from argosy.steps.verdict.line import Line
from argosy.workflows.cli import main
from argosy.workflows.diagnosis import excerpt as reading
from argosy.workflows.diagnosis.excerpt import excerpt
from argosy.workflows.diagnosis.remedies import remedy_of

Argosy = Callable[..., tuple[int, str, str]]

TORCHRUN = """\
[rank1]: Traceback (most recent call last):
[rank1]:   File "train.py", line 9, in <module>
[rank1]:     loss.backward()
[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.1 GiB
[rank0]:[E1130 12:13:49 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(
[rank0]: torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
"""
OURS = re.compile(r"run\.toml|\[\w+\]|\b(gang|batch|checkpoint|deadlines|retry)\.\w+|the run |restart|quarantine|-p ")
"""What stands in nobody else's files, or was done by nobody."""
_SAID_BY_US_ALONE = (Cause.FINISHED_WITHOUT_CHECKPOINT, Cause.FENCED)
PENDING = """\
Name:         trainer-0
Status:       Pending
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  12s   default-scheduler  0/3 nodes are available: 3 Insufficient nvidia.com/gpu.
"""


def told(argosy: Argosy, *arguments: str) -> dict[str, Any]:
    code, out, err = argosy("diagnose", *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_first_exception_is_the_root_and_the_rest_its_consequences(argosy: Argosy, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step 1\n" * 5000 + TORCHRUN)
    found = told(argosy, str(log))
    assert (found["cause"], found["rank"]) == ("gpu_oom", 1)
    assert found["evidence"]["file"] == str(log)
    assert found["evidence"]["line"] == 5004
    assert "CUDA out of memory" in found["evidence"]["text"]
    assert found["runner_up"]["cause"] == "nccl_timeout"
    assert 0 < found["confidence"] < 1
    assert {"nccl_timeout", "peer_lost"} <= {one["cause"] for one in found["consequences"]}


def test_of_several_files_the_earlier_time_is_the_root(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "rank-0.log").write_text("2026-01-02 10:10:00 RuntimeError: NCCL communicator was aborted on rank 0.\n")
    (tmp_path / "rank-7.log").write_text("2026-01-02 10:00:00 ConnectionResetError: [Errno 104] reset by peer\n")
    (tmp_path / "model.bin").write_bytes(b"\0" * 100)
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["rank"]) == ("peer_lost", 7)


def test_of_a_runs_folder_and_its_evidence_the_logs_are_read_and_not_what_we_made_of_them(
    argosy: Argosy, tmp_path: Path
) -> None:
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks/rank-0.log").write_text("step 25\nTraceback (most recent call last):\nKeyError: 'label'\n")
    ours = {"tail": ["Traceback (most recent call last):", "KeyError: 'label'"], "cause": "disk_full"}
    for name in ("endings.json", "verdict.json", "report.html"):
        (tmp_path / name).write_text(json.dumps(ours, indent=1))
    found = told(argosy, str(tmp_path))
    assert found["evidence"]["file"].endswith("ranks/rank-0.log")
    assert found["evidence"]["line"] == 3
    assert found["runner_up"]["cause"] != "disk_full"


def test_of_what_we_note_of_a_pods_end_no_cause_is_made(argosy: Argosy, tmp_path: Path) -> None:
    pod = tmp_path / "nodes/node-0/pods/gpt-a1-node-0-0"
    pod.mkdir(parents=True)
    (pod / "log").write_text("[rank 0] step 40 loss 0.0250\n")
    (pod / "ending.json").write_text('{"exit_code": 0, "signal": null, "time": 1795821904.2, "engine_lost": false}\n')
    (tmp_path / "channel.json").write_text('{"port": 33513, "token": "aborted"}\n')
    evidence = tmp_path / "gpt-a1/0000/gpt-a1-node-0-0"
    (evidence / "machine").mkdir(parents=True)
    (evidence / "endings.json").write_text("[]")
    (evidence / "machine/cgroup.txt").write_text(
        "memory.limit_in_bytes:\n9223372036854771712\n\nmemory.oom_control:\nunder_oom 0\noom_kill 0\n"
    )
    pods = [
        {"name": f"kill-gpt-a1-node-0-{index}", "index": index, "node": f"node-{index}", "phase": "Running",
         "reason": "", "message": "", "exit_code": None, "signal": None, "time": 0.0, "deleted": 0.0,
         "log": f"/.argosy/runs/kill-gpt-x7k2p/nodes/node-{index}/pods/kill-gpt-x7k2p-a1-node-0-{index}/log"}
        for index in range(2)
    ]  # fmt: skip
    (evidence.parent / "host.json").write_text(json.dumps({"states": pods}, indent=1))
    assert told(argosy, str(tmp_path))["evidence"] is None


def test_of_a_runs_folder_what_happened_to_others_and_what_pods_mount_is_not_read(
    argosy: Argosy, tmp_path: Path
) -> None:
    node, pod = tmp_path / "gpt-a1/0000/gpt-a1-node-0-0", tmp_path / "nodes/node-0/pods/gpt-a1-node-0-0"
    store = tmp_path / ".argosy/volumes/argosy/store/gpt/runs/gpt/log"
    for folder in (node / "machine", pod / "volumes/outputs", store):
        folder.mkdir(parents=True)
    (node / "endings.json").write_text("[]")
    (node / "machine/kernel.log").write_text("[64401.061927] python invoked oom-killer: gfp_mask=0xcc0\n")
    (pod / "volumes/outputs/checkpoint-uri").write_text("file:///mnt/argosy/store/gpt/manifests/703d.json\n")
    (store / "0000000002.json").write_text('{"kind": "commit", "manifest": "manifests/703d.json"}\n')
    (tmp_path / "node-0.tar.gz").write_bytes((node / "machine/kernel.log").read_bytes())
    told_by_torchrun = "traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
    (pod / "log").write_text(told_by_torchrun + "  exitcode  : 137 (pid: 18690)\n")
    found = told(argosy, str(tmp_path))
    assert found["cause"] == "unknown"
    assert found["runner_up"]["evidence"] is None  # a signal 9 may be that
    assert "If not that" not in argosy("diagnose", str(tmp_path))[1]
    assert found["consequences"] == []
    (node / "machine/oom-kills.txt").write_text("1 since this start began\n")
    assert told(argosy, str(tmp_path))["cause"] == "host_oom"


def test_a_run_that_succeeded_has_no_cause_of_failure(argosy: Argosy, tmp_path: Path) -> None:
    run = tmp_path / "runs/gpt-abc12"
    (run / "nodes").mkdir(parents=True)
    (run / "nodes/log").write_text("OSError: [Errno 28] No space left on device\n")
    for phase, cause in (("Failed", "disk_full"), ("Succeeded", "none")):
        (run / "state.json").write_text(json.dumps({"yaml_sha256": "ab" * 32, "phase": phase}))
        assert told(argosy, str(tmp_path))["cause"] == cause
    assert told(argosy, str(run / "nodes"))["cause"] == "disk_full"  # who names a part of it asks what failed there
    assert argosy("diagnose", str(run / "nodes"))[1].startswith(
        f"{run}: this run succeeded, what follows it got over; argosy explain tells what happened on the way\ndisk_full"
    )
    (run / "nodes/log").write_text("step 3 loss 0.5\n")
    assert "so nothing ended it" in argosy("diagnose", str(run / "nodes"))[1]
    assert told(argosy, str(run / "nodes"))["cause"] == "none"  # was unknown, exit code 75
    said = argosy("diagnose", str(tmp_path))[1]
    assert said == f"{run}: this run succeeded, so nothing ended it; argosy explain tells what happened on the way\n"
    other = tmp_path / "other.log"
    other.write_text("no rule knows it\n")  # said nothing of it
    ended = f"{run}: this run succeeded, so nothing ended it; argosy explain tells what happened on the way\n"
    assert argosy("diagnose", str(tmp_path))[1].startswith(f"{ended}No line of 1 file says what ended the training.")
    other.write_text("ValueError: Received incompatible shapes\n")  # was what the run had got over
    assert argosy("diagnose", str(run / "nodes"), str(other))[1].startswith(f"{ended}user_exception")
    assert told(argosy, str(tmp_path))["evidence"]["file"].endswith("other.log")


def test_what_we_said_and_what_a_launcher_says_is_read_for_no_other_cause(argosy: Argosy, tmp_path: Path) -> None:
    ours = (
        "argosy: user_exception at step 25: ValueError: shape (3,) != (4,); restart 1 of 5 since the last checkpoint\n"
    )
    (tmp_path / "train.log").write_text(ours)
    assert told(argosy, str(tmp_path))["cause"] == "user_exception"
    (tmp_path / "train.log").write_text(
        "E1126 13:21:33.675000 16479 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 1) "
        "local_rank: 0 (pid: 16483) of binary: /tmp/env/bin/python\nTraceback (most recent call last):\n"
        '  File "/tmp/torch/distributed/elastic/multiprocessing/errors/__init__.py", line 384, in wrapper\n'
    )
    assert told(argosy, str(tmp_path))["runner_up"]["evidence"] is None


@pytest.mark.parametrize("decided", ["restart: restart 1 of 5", "stop: 1 failure without progress (exit code 74)"])
def test_how_we_ended_a_node_is_not_what_ended_the_run(argosy: Argosy, tmp_path: Path, decided: str) -> None:
    stopped = "W1128 10:45:50.400000 10507 torch/agent/server/api.py:752] Received 15 death signal, shutting down\n"
    (tmp_path / "a-node-0.log").write_text(stopped)
    (tmp_path / "b-train.log").write_text(
        f"argosy: unknown at step 32: rank 1 on node-1 was ended by signal 9; {decided}\n"
    )
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["rank"]) == ("unknown", 1)
    with (tmp_path / "b-train.log").open("a") as log:
        log.write("argosy: stopped: the supervisor got SIGTERM\n")  # by somebody, whatever it had got over before
    assert told(argosy, str(tmp_path))["cause"] == "sigterm"


def test_what_a_run_got_over_is_not_what_ended_one_that_was_stopped(argosy: Argosy, tmp_path: Path) -> None:
    """Nor is what outweighs the word of a SIGTERM."""
    raised = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nValueError: bad sample\n'
    (tmp_path / "a-node-0.log").write_text(f"step 33\n{raised}")
    said = "argosy: user_exception at step 33: ValueError: bad sample; restart: restart 1 of 5\n"
    (tmp_path / "b-train.log").write_text(said)
    assert told(argosy, str(tmp_path))["cause"] == "user_exception"
    (tmp_path / "b-train.log").write_text(f"{said}argosy: stopped: the supervisor got SIGTERM\n")
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["exit_code"], found["runner_up"]["cause"]) == ("sigterm", 76, "user_exception")
    gave_up = "argosy: user_exception at step 40: ValueError: bad sample; stop: the same again (exit code 70)\n"
    (tmp_path / "c-train-2.log").write_text(gave_up)  # it went on, and this ended it
    assert told(argosy, str(tmp_path))["cause"] == "user_exception"
    (tmp_path / "a-reason.json").write_text('{"reason": "NodeLost"}\n')  # and a lost node outweighs most
    (tmp_path / "c-train-2.log").write_text(
        "argosy: s3_missing at step 40: dataset changed: a; stop: no (exit code 78)\n"
    )
    assert told(argosy, str(tmp_path))["cause"] == "s3_missing"


def test_the_rank_is_the_one_whose_log_says_what_we_quote(argosy: Argosy, tmp_path: Path) -> None:
    raised = [f"[rank {rank}] [rank{rank}]: OSError: [Errno 28] No space left on device: '/{rank}'" for rank in (0, 3)]
    (tmp_path / "a-node-0.log").write_text("\n".join((*raised, "")))
    said = "disk_full at step 32: OSError: [Errno 28] No space left on device: '/3'"
    (tmp_path / "b-train.log").write_text(f"argosy: {said}; stop: disk_full twice (exit code 74)\n")
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["exit_code"], found["rank"]) == ("disk_full", 74, 3)


def test_a_rank_of_torchruns_own_count_is_looked_up_in_its_table(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(
        "E1126 13:21:33.675000 16479 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: 137) "
        "local_rank: 0 (pid: 16483) of binary: /tmp/env/bin/python\n"
        "Root Cause (first observed failure):\n  rank      : 3 (local_rank: 0)\n  exitcode  : 137 (pid: 16483)\n"
    )
    assert told(argosy, str(tmp_path))["rank"] == 3
    of_another_node = "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 111)\n" + "step 40\n" * 40
    (tmp_path / "train.log").write_text(of_another_node + (tmp_path / "train.log").read_text())
    assert told(argosy, str(tmp_path))["rank"] == 3


def test_evidence_of_a_hang_names_the_rank_that_its_verdict_found_by_the_stacks(
    argosy: Argosy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restart = tmp_path / "gpt-a1/0000"
    for rank in range(2):
        (restart / f"gpt-a1-node-0-{rank}/ranks").mkdir(parents=True)
        (restart / f"gpt-a1-node-0-{rank}/ranks/rank-{rank}.log").write_text(f"step 19\n{ASKED_FOR_STACKS}\n")
    quote = "no rank made a step for 45 s; the last was step 19; rank 1 on node-1 stands at train.py:35 in <module>"
    verdict = {"cause": "hang", "rank": 1, "node": "node-1", "quote": quote}
    (restart / "verdict.json").write_text(json.dumps(verdict, indent=1))
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["rank"], found["node"]) == ("hang", 1, "node-1")
    assert found["evidence"] == {"file": str(restart / "verdict.json"), "line": 5, "text": quote}
    monkeypatch.chdir(restart / "gpt-a1-node-0-0")  # whose words come by a pipe nobody knows
    piped = CliRunner().invoke(main.cli, ["diagnose", "-", "--json"], input=f"step 19\n{ASKED_FOR_STACKS}\n")
    assert json.loads(piped.stdout)["rank"] is None
    (restart / "verdict.json").write_text(json.dumps(verdict | {"rank": None}))
    assert told(argosy, str(tmp_path))["rank"] is None


def test_of_what_we_said_of_a_run_the_last_word_is_the_verdict(argosy: Argosy, tmp_path: Path) -> None:
    """What ended it, on the rank that it names: not what another start got over, nor the pod whose log stands above."""
    (tmp_path / "run.log").write_text(
        "x-node-0 | [rank 0] step 22 loss 0.3\nx-node-0 | [torchrun]   rank      : 0 (local_rank: 0)\n"
        "x-train | argosy: hang at step 0: no first step within 12 s; restart: restart 1 of 5\n"
        "x-train | argosy: hang at step 23: no rank made a step for 12 s; rank 1 on node-2 stands at train.py:31; "
        "stop: the same hang 3 times at step 23 (exit code 74)\n"
    )
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["exit_code"], found["rank"], found["evidence"]["line"]) == ("hang", 74, 1, 4)
    (tmp_path / "run.log").write_text(
        "x-node-0 | [rank 0] step 22 loss 0.3\nx-train | argosy: hang at step 0: no first step within 12 s; stop: no\n"
    )
    assert told(argosy, str(tmp_path))["rank"] is None


@pytest.mark.parametrize(("code", "cause"), [(134, "hang"), (139, "native_crash")])
def test_the_abort_with_which_we_end_a_hang_is_not_its_cause(
    code: int, cause: str, argosy: Argosy, tmp_path: Path
) -> None:
    (tmp_path / "a.log").write_text(
        "[rank 0] step 50\n[rank 0] Fatal Python error: Aborted\n[torchrun] E1128 00:50:59.771000 18463 "
        f"torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: {code}) local_rank: 0 (pid: 9) of "
        "binary: /usr/bin/python\n"
    )
    (tmp_path / "b.log").write_text("argosy: hang at step 50: no rank made a step for 10 s; the last was step 50\n")
    assert told(argosy, str(tmp_path))["cause"] == cause


def test_the_code_beside_the_logs_is_no_log(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 25\nTraceback (most recent call last):\nKeyError: 'label'\n")
    code = tmp_path / "train.py"
    code.write_text('raise OSError(28, "No space left on device", path)\n')
    assert told(argosy, str(tmp_path))["evidence"]["file"].endswith("train.log")
    assert told(argosy, str(code))["cause"] == "disk_full"  # who names it means it


def test_what_kubectl_describes_is_read_from_standard_input() -> None:
    with CliRunner().isolation(PENDING) as (out, _, _):
        assert main.invoke(["diagnose", "-", "--json"]) == 0
        found = json.loads(out.getvalue())
    assert (found["cause"], found["evidence"]["line"]) == ("unschedulable", 6)


def test_a_manifest_is_no_log_unless_it_has_a_status(argosy: Argosy, tmp_path: Path) -> None:
    manifest = "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, resources: {limits: {memory: 1Gi}}}]}\n"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/pod.yaml").write_text(manifest)
    (tmp_path / "logs/train.log").write_text("KeyError: 'vocab'\n")
    code, _, err = argosy("diagnose", "logs/pod.yaml")
    assert code == 2
    assert "is a manifest without a status" in err
    _, out, _ = argosy("diagnose", "logs", "--json")
    assert json.loads(out)["evidence"]["file"].endswith("train.log")
    (tmp_path / "logs/pod.yaml").write_text(
        manifest + "status:\n  containerStatuses:\n  - state: {terminated: {reason: OOMKilled, exitCode: 137}}\n"
    )
    _, out, _ = argosy("diagnose", "logs/pod.yaml", "--json")
    assert json.loads(out)["cause"] == "host_oom"
    (tmp_path / "logs/events.yaml").write_text(
        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Event\n"
        "  message: 'Failed to pull image \"r/x:1\": not found'\n"
        "  reason: Failed\n  type: Warning\nkind: List\n"
    )
    code, out, err = argosy("diagnose", "logs/events.yaml", "--json")
    assert code == 0, err
    assert json.loads(out)["cause"] == "image_pull"


def test_a_log_of_somebody_elses_is_told_nothing_of_our_runs(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(
        'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nKeyError: 1\n'
    )
    _, out, _ = argosy("diagnose", "a.log")
    assert "fix the script." in out
    assert "argosy run" not in out


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_compressed_logs_are_read(pack: Callable[[bytes], bytes], argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(pack(TORCHRUN.encode()))
    assert told(argosy, str(tmp_path / "train.log"))["cause"] == "gpu_oom"
    assert told(argosy, str(tmp_path))["cause"] == "gpu_oom"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1"])
def test_a_log_is_read_however_it_is_written(encoding: str, argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes((TORCHRUN + "Größe\n").encode(encoding))
    assert told(argosy, str(tmp_path / "train.log"))["cause"] == "gpu_oom"
    assert told(argosy, str(tmp_path))["cause"] == "gpu_oom"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x28\xb5\x2f\xfd" + TORCHRUN.encode(), "zstd -d train.log"),
        (b"PK\x03\x04" + bytes(64), "is an archive"),
        (gzip.compress(b"train.log".ljust(257, b"\0") + b"ustar" + bytes(250)), "is an archive"),
        (bytes(range(256)) * 8, "is no text"),
        (gzip.compress(TORCHRUN.encode())[:-9], "its end is missing"),
        (gzip.compress(TORCHRUN.encode())[:40] + b"x" * 99, "cannot be read"),
    ],
    ids=("zstd", "zip", "tar.gz", "binary", "cut off", "corrupt"),  # gzip's bytes tell when they were made
)
def test_what_is_no_log_is_refused_and_not_called_silent(
    data: bytes, said: str, argosy: Argosy, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_bytes(data)
    code, out, err = argosy("diagnose", "train.log")
    assert (code, out) == (2, "")
    assert said in err
    with CliRunner().isolation() as (_, told_there, _), (tmp_path / "train.log").open() as sys.stdin:
        assert main.invoke(["diagnose", "-"]) == 2
        assert said.replace("train.log", "the standard input") in told_there.getvalue().decode()


@pytest.mark.parametrize("before", [bytes(8000), b"BZh is how bzip2 begins\n"])
def test_a_log_with_a_hole_or_with_a_packers_letters_in_front_is_read(
    before: bytes, argosy: Argosy, tmp_path: Path
) -> None:
    (tmp_path / "train.log").write_bytes(before + b"\n" + TORCHRUN.encode())
    assert told(argosy, "train.log")["cause"] == "gpu_oom"


def test_a_person_is_told_what_to_do(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(TORCHRUN)
    code, out, _ = argosy("diagnose", str(tmp_path / "train.log"))
    assert code == 0
    assert "gpu_oom on rank 1" in out
    assert "What to do:" in out
    assert "Taken for consequences:" in out


def test_logs_that_say_nothing_are_not_guessed_at(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("step 1 loss=2.0\nstep 2 loss=1.9\n")
    found = told(argosy, str(tmp_path))
    assert (found["cause"], found["evidence"], found["confidence"]) == ("unknown", None, 0.0)


def test_a_file_that_is_not_there_is_a_mistake_of_the_caller(argosy: Argosy, tmp_path: Path) -> None:
    code, _, err = argosy("diagnose", str(tmp_path / "absent.log"))
    assert code == 2
    assert "there is no such file or folder" in err


def test_lines_keep_their_numbers_over_chunks_and_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 10_000)
    lines = [f"step {number} loss=1.0" for number in range(20_000)]
    for number in range(7, 20_000, 5):
        lines[number] = "ConnectionResetError: [Errno 104] Connection reset by peer"
    found: list[Line] = excerpt(io.BytesIO("\n".join(lines).encode()), "a.log")
    assert len(found) == reading.HEAD_LINES + reading.TAIL_LINES
    assert all(line.text == lines[line.number - 1] for line in found)
    assert found[-1].number > 19_990


def test_how_a_file_ended_is_read_whatever_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 10_000)
    lines = [f"nothing that a rule knows, line {number}" for number in range(5_000)]
    found: list[Line] = excerpt(io.BytesIO("\n".join(lines).encode()), "a.log")
    assert [line.number for line in found] == list(range(4_961, 5_001))
    assert all(line.text == lines[line.number - 1] for line in found)


@pytest.mark.parametrize("cause", [each for each in Cause if each not in _SAID_BY_US_ALONE])
def test_a_remedy_speaks_of_nothing_that_only_our_runs_have(cause: Cause) -> None:
    assert not OURS.search(remedy_of(cause)), remedy_of(cause)


def test_of_a_run_that_was_stopped_by_hand_no_node_is_said_to_be_lost(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(
        "[    5.7 s] checkpoint: step 20 (b0c6594ffde3, 37 B in 0.032 s)\n"
        "[    5.8 s] stopping: what runs has up to 120 s to end, and is killed at once by Ctrl-C once more\n"
        "plain-bzldp: Interrupted\n  Trained to step 31 on 1 node × 1 rank in 1 attempt, 1 step lost.\n"
        "  stopped by SIGINT; run it again to resume\n  attempt 1: ended at step 31, sigterm: exit code 76\n"
    )
    _, out, _ = argosy("diagnose", "run.log")
    assert out.startswith("sigterm (exit code 76"), out
