"""What is kept of a start that failed: how much at most, what is in it, and that it arrives when a pod goes down."""

from __future__ import annotations

import io
import itertools
import json
import os
import random
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from argosy.steps.contract.arguments import LaunchArgs
from argosy.steps.contract.channel import Assignment
from argosy.steps.evidence import cgroup, machine
from argosy.steps.evidence.bundle import FILE_BYTES, INDEX, Bundle, limit
from argosy.steps.evidence.nvml import gpus
from argosy.steps.launch.evidence import NodeEvidence
from argosy.steps.launch.identity import Identity
from argosy.steps.store import open_store


def unpacked(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {each.name: archive.extractfile(each).read() for each in archive}


@pytest.mark.parametrize("seed", range(30))
def test_no_archive_is_larger_than_its_limit(seed: int) -> None:
    dice = random.Random(seed)
    most = dice.choice([limit(1), limit(64), limit(1000), limit(100_000)])
    bundle = Bundle(most, {"pod": "p"})
    noise = dice.randbytes(3 << 20)  # cannot be compressed, so that the archive is as large as its content
    for number in range(dice.choice([3, 40, 3000])):
        size = dice.choice([1, 511, 513, 70_000, 3 << 20])
        at = dice.randrange(len(noise) - size + 1)
        bundle.add(f"{number}/{'x' * dice.randrange(200)}", noise[at : at + size])
    data = bundle.archive()
    assert len(data) <= most
    found = unpacked(data)
    index = {each["name"]: each for each in json.loads(found.pop(INDEX))["files"]}
    assert set(found) <= set(index)
    assert all(len(content) == index[name]["bytes"] <= FILE_BYTES for name, content in found.items())


def test_all_archives_of_a_start_have_a_limit_together() -> None:
    assert [limit(nodes) for nodes in (1, 8, 64, 1024)] == [8 << 20, 8 << 20, 1 << 20, 64 << 10]
    assert all(nodes * limit(nodes) <= 64 << 20 for nodes in range(1, 1025))


def test_of_a_long_file_the_end_is_kept_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"begin" + b"x" * (2 * FILE_BYTES) + b"end")
    bundle = Bundle(limit(1), {})
    bundle.add_file("log", tmp_path / "log")
    bundle.add_file("nothing", tmp_path / "missing")
    found = unpacked(bundle.archive())
    assert found["log"].endswith(b"xend")
    (file,) = json.loads(found[INDEX])["files"]
    assert file == {"name": "log", "bytes": FILE_BYTES, "left_out": FILE_BYTES + 8}


def test_infinibands_counters_and_what_changed(tmp_path: Path) -> None:
    port = tmp_path / "mlx5_0/ports/1"
    (port / "counters").mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    (port / "counters/link_downed").write_text("0\n")
    before = machine.infiniband(tmp_path)
    assert before == {"mlx5_0/ports/1/state": "4: ACTIVE", "mlx5_0/ports/1/counters/link_downed": "0"}
    (port / "counters/link_downed").write_text("1\n")
    changed = machine.changed(before, machine.infiniband(tmp_path))
    assert changed == {"mlx5_0/ports/1/counters/link_downed": {"before": "0", "after": "1"}}
    assert machine.infiniband(tmp_path / "none") == {}


NVML = """
#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { HANG return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)(unsigned long)(index + 1); return index == 1 ? 15 : 0;
}
int nvmlDeviceGetName(void *device, char *name, unsigned length) { strncpy(name, "a GPU", length); return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *told) { *told = 61; return 0; }
int nvmlDeviceGetTotalEccErrors(void *device, int kind, int life, unsigned long long *told) {
  *told = 10 * kind + life; return 0;
}
int nvmlDeviceGetRemappedRows(void *device, unsigned *a, unsigned *b, unsigned *c, unsigned *d) {
  *a = 1; *b = 2; *c = 1; *d = 0; return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *told) { told->total = 8; told->free = 3; told->used = 5; return 0; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *told) { return 3; }
"""


def library(folder: Path, hang: str = "") -> str:
    """A library with NVML's calls and a driver's answers; some calls are missing, as in an old driver."""
    path = folder / f"libnvml{len(hang)}.so"
    code = NVML.replace("HANG", hang)
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(path), "-"]
    subprocess.run(command, input=code.encode(), check=True)
    return str(path)


def test_gpus_tell_through_the_drivers_library(tmp_path: Path) -> None:
    good, lost = gpus(library(tmp_path))
    assert lost == {"index": 1, "error": 15}
    assert (good["name"], good["temperature"], good["power_milliwatts"]) == ("a GPU", 61, None)
    assert good["ecc"]["uncorrected_aggregate"] == 11
    assert good["remapped_rows"] == {"corrected": 1, "uncorrected": 2, "pending": 1, "failed": 0}
    assert good["memory_bytes"] == {"total": 8, "free": 3, "used": 5}


def test_a_driver_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    assert gpus(library(tmp_path, "sleep(30);"), 0.2) == "the driver did not answer within 0.2 s"
    assert gpus("libnvidia-ml-that-is-not-there.so") == ""


def test_the_kernels_log_or_why_it_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_text("6,1,12345678,-;NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus\n")
    assert machine.kernel_log(str(tmp_path / "kmsg")).startswith("[   12.345678] NVRM: Xid")
    assert "No such file" in machine.kernel_log(str(tmp_path / "none"))


def test_ranks_may_begin_while_stacks_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = tmp_path / "py-spy"
    spy.write_text("#!/bin/sh\n")
    spy.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    told = {"restart": 0, "attempt": 1, "node_rank": 0, "nnodes": 1, "master_addr": "", "master_port": 0, "run_id": "r",
            "workflow": "w", "generation": 1, "log_seq": 1, "resume_digest": "", "resume_step": 0}  # fmt: skip
    assignment = Assignment(dataset_digest="", args=[], **told)  # type: ignore[arg-type]
    args = LaunchArgs(store_uri=f"file://{tmp_path}/store", name="run", script="train.py")
    evidence = NodeEvidence(args, Identity("p", "node", 0, "", ""), assignment, open_store(args.store_uri))
    for rank in range(20):
        evidence.started(rank, 1)
    looked = threading.Event()

    def begin() -> None:
        for rank in itertools.count(20):
            evidence.started(rank, 1)
            if looked.wait(0.001):
                return

    hub = threading.Thread(target=begin)
    hub.start()
    try:
        evidence.look_at_stacks()
    finally:
        looked.set()
        hub.join()


@pytest.mark.parametrize("version", [1, 2])
def test_killed_for_memory_by_either_version_of_control_groups(tmp_path: Path, version: int) -> None:
    own = tmp_path / "self"
    if version == 2:
        own.write_text("0::/kubepods/pod1\n")
        (tmp_path / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")
    else:
        own.write_text("4:cpu,memory:/pod1\n0::/\n")
        (tmp_path / "memory/pod1").mkdir(parents=True)
        (tmp_path / "memory/pod1/memory.oom_control").write_text("under_oom 0\noom_kill 2\n")
    assert cgroup.oom_kills(tmp_path, own) == 2
    assert "oom_kill 2" in cgroup.facts(tmp_path, own)
    assert cgroup.oom_kills(tmp_path, tmp_path / "none") == 0
