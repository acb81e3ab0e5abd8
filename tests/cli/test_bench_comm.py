"""argosy bench-comm: a gang's own collectives over a sweep of sizes, as a table, as JSON and as a picture."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from argosy.steps.record.building import RUN_NAME, STORE_URI, build_record
from argosy.steps.record.story import goodput_sentence, headline
from argosy.steps.runlog import Event
from argosy.workflows.cli.status import ways_on
from argosy.workflows.cluster.stored_run import StoredRun
from tests.starts import argosy

RUN = """\
name = "a-run-with-a-name-that-is-quite-long-al"
script = "train.py"
[env]
HERE = "{data}"
KEPT = "yes"
[dataset]
uri = "s3://bucket/data"
[gang]
nnodes = 2
nproc_per_node = 1
[checkpoint]
mode = "opaque"
path = "out"
include = ["*"]
[evaluation]
script = "evaluate.py"
metric = "loss"
direction = "min"
"""
FACTORS = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5, "broadcast": 1.0}
"""Of two ranks."""


@pytest.fixture
def run_toml(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text(RUN)
    return path


def bench(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return argosy(path.parent, "bench-comm", path.name, *words)


@pytest.mark.torch
def test_two_nodes_are_measured(run_toml: Path) -> None:
    done = bench(run_toml, "--min-bytes", "1024", "--max-bytes", "100000", "--factor", "8", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["ranks"], told["nodes"], told["backend"], told["stopped"]) == (2, 2, "gloo", "")
    assert [(row["bytes"], row["op"]) for row in told["rows"]] == [
        (size, op) for size in (1024, 8192, 65536) for op in FACTORS
    ]
    for row in told["rows"]:
        assert 0 < row["min_us"] <= row["median_us"] <= row["p99_us"]
        algbw = row["bytes"] / (row["median_us"] * 1000)
        assert row["algbw"] == pytest.approx(algbw, rel=0.01)
        assert row["busbw"] == pytest.approx(algbw * FACTORS[row["op"]], rel=0.01)
    drawn = ElementTree.parse(told["plot"])
    lines = [each for each in drawn.iter() if each.tag.endswith("polyline")]
    assert [len(each.attrib["points"].split()) for each in lines] == [3] * 4
    logs = [path.read_text() for path in run_toml.parent.glob(".argosy/runs/*/nodes/*/pods/*/log")]
    assert logs
    assert not re.findall(r"exit barrier|Traceback|<omitting python frames>", "".join(logs))  # of torchrun's own end


@pytest.mark.torch
@pytest.mark.variant
def test_it_ends_when_its_time_is_spent_and_says_so(run_toml: Path) -> None:
    done = bench(run_toml, "-j", "1x2", "--op", "all_reduce", "--max-bytes", str(1 << 30), "--seconds", "2")
    assert done.returncode == 0, done.stderr
    assert "would have taken longer than the 2 s" in done.stderr
    assert "all_reduce            8 B" in done.stdout


def test_the_way_to_the_figures_of_a_cluster_names_the_runs_own_endpoint(run_toml: Path) -> None:
    """Without it AWS was asked for the bucket of another S3."""
    run_toml.write_text(
        RUN.replace("[env]", '[storage]\nuri = "s3://b/store"\n[env]\nAWS_ENDPOINT_URL = "http://s3:1"')
    )
    done = bench(run_toml, "-o", "bench.yaml")
    assert done.returncode == 0, done.stderr
    assert "env AWS_ENDPOINT_URL=http://s3:1 argosy checkpoint get s3://b/store/" in done.stderr


def test_the_yaml_for_a_cluster_has_the_gang_and_nothing_else_of_the_run(run_toml: Path) -> None:
    done = bench(run_toml, "--op", "all_reduce", "-o", "bench.yaml")
    assert done.returncode == 0, done.stderr
    text = (run_toml.parent / "bench.yaml").read_text()
    found = yaml.safe_load(text)
    assert found["metadata"]["generateName"] == "a-run-with-a-name-that-is-qui-bench-comm-"
    assert "--module=argosy.steps.bench_comm" in text
    assert "KEPT" in text
    for word in ("HERE", "s3://bucket", "evaluate", "train.py"):
        assert word not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--op", "all_to_none"], "--op 'all_to_none': unknown collective; there are all_reduce"),
        (["--factor", "1"], "--factor 1: sizes would not grow; write 2 or more"),
        (["--min-bytes", "0"], "--min-bytes 0: no size of a message"),
        (["--min-bytes", "9", "--max-bytes", "8"], "no sizes"),
        (["--max-bytes", str(1 << 40)], "larger than 64 GiB"),
        (["--seconds", "nan"], "--seconds nan: write 1 to 86400"),
        (["-j", "1x1"], "1 node with 1 rank exchanges nothing; write -j 2x1"),
    ],
)
def test_what_cannot_be_measured_is_refused(run_toml: Path, words: list[str], said: str) -> None:
    done = bench(run_toml, *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_another_launcher_is_refused(run_toml: Path) -> None:
    run_toml.write_text(RUN.replace("[gang]", '[gang]\nlauncher = "plain"'))
    done = bench(run_toml)
    assert (done.returncode, "collectives of torch are measured under torchrun" in done.stderr) == (2, True), (
        done.stderr
    )


def test_a_measurement_on_a_cluster_is_not_shown_as_a_training() -> None:
    """It had "Trained to step 15 of 48", a goodput, and no word of where its result lies."""
    begin = Event(0.0, "restart_began", "s", {"attempt": 1, "restart": 0, "generation": 1, "restored_step": 0})
    told = {"attempt": 1, "restart": 0, "rank": 0, "end_step": 48}
    steps = [Event(float(each), "step", "s", {**told, "step": each}) for each in range(1, 16)]
    facts = {RUN_NAME: "r-bench-comm", STORE_URI: "s3://b/store"}
    state = {"name": "r-bench-comm-x", "annotations": facts, "phase": "Succeeded", "finished": 20.0}
    record = build_record([begin, *steps, Event(16.0, "train_ended", "s", {"exit_code": 0})], state)
    assert headline(record).startswith("Measured 15 of 48 exchanges")
    assert goodput_sentence(record) == ""
    place = "s3://b/store/r-bench-comm/runs/r-bench-comm-x"
    assert ways_on(record, StoredRun("s3://b/store", "r-bench-comm", "r-bench-comm-x"))[0] == (
        f"argosy checkpoint get {place} bench",
        "result.json and the plot",
    )
