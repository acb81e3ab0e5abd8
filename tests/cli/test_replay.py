"""``argosy run --replay RUN``: the failures of a run happen again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import InputError
from argosy.steps.record.building import build_record
from argosy.steps.record.facts import RunRecord
from argosy.steps.record.injected import Injected
from argosy.steps.record.meaning import meaning
from argosy.steps.runlog import Event
from argosy.workflows.cli.replay import replayed
from argosy.workflows.cli.replaying import taken
from tests.cli.test_chaos import RUN, SCRIPT
from tests.starts import argosy


def record(*failures: dict[str, object]) -> RunRecord:
    """Of a gang of two nodes with two ranks each, each start of which failed."""
    events = [Event(0.0, "gang_created", "train", {"attempt": 1, "gang": "g", "nnodes": 2, "nproc_per_node": 2})]
    for number, failure in enumerate(failures):
        where = {"attempt": 1, "restart": number}
        events += [
            Event(1.0 + number, "restart_began", "train", {**where, "restored_step": 0}),
            Event(1.5 + number, "restart_ended", "train", {**where, "last_step": 7, **failure}),
        ]
    return build_record(events, {"name": "w"})


@pytest.mark.parametrize(
    ("failure", "fault"),
    [
        ({"cause": "unknown", "signal": 9, "rank": 3, "node": "ip-10-0-0-9"}, "kill:rank=3@step=7"),
        ({"cause": "host_oom", "rank": 1}, "kill:rank=1@step=7"),
        ({"cause": "native_crash", "signal": 11, "rank": 2}, "segv:rank=2@step=7"),
        ({"cause": "native_crash", "signal": 6, "rank": 2}, "abort:rank=2@step=7"),
        ({"cause": "shm_exhausted", "rank": 2}, "bus:rank=2@step=7"),
        ({"cause": "sigterm", "signal": 15, "rank": 1}, "term:rank=1@step=7"),
        ({"cause": "hang", "signal": 6, "rank": 0}, "hang:rank=0@step=7"),
        ({"cause": "hang", "rank": 0}, "hang:rank=0@step=7"),
        ({"cause": "preempted_evicted", "node": "node-1", "exit_code": 75}, "preempt:node=1@step=7"),
        ({"cause": "preempted_evicted", "node": "ip-10-0-0-9", "signal": 9}, "node-loss:node=0@step=7"),
        ({"cause": "checkpoint_corrupt", "node": "node-1"}, "corrupt-shard@step=7"),
        ({"cause": "image_pull", "last_step": 0}, "kill:rank=0@phase=start"),
    ],
)
def test_each_failure_is_a_fault(failure: dict[str, object], fault: str) -> None:
    assert [each.text for each in replayed(record(failure))] == [fault]


def test_a_supervisor_is_killed_again_though_no_start_failed() -> None:
    told = record()
    kill = Injected(3.0, "supervisor-kill", None, "", 30, "supervisor-kill@step=30")
    assert [each.text for each in replayed(replace(told, injected=(kill,)))] == ["supervisor-kill@step=30"]


@pytest.mark.parametrize(
    ("failure", "asked"),
    [
        ({"cause": "unknown", "signal": 9, "rank": 1}, "kill:rank=1@seconds=5"),
        ({"cause": "user_exception", "exit_code": 3, "rank": 1}, "exit:rank=1,code=3@step=4"),
        ({"cause": "unknown", "signal": 9, "rank": 0}, "corrupt-shard@step=4"),
        ({"cause": "preempted_evicted", "node": "node-1"}, "node-loss:node=1@phase=save"),
    ],
)
def test_what_was_injected_is_injected_again_as_it_was_asked_for(failure: dict[str, Any], asked: str) -> None:
    fault = Injected(
        1.2, asked.partition(":")[0].partition("@")[0], failure.get("rank"), failure.get("node", ""), 7, asked
    )
    told = record(failure)
    assert [each.text for each in replayed(replace(told, injected=(fault,)))] == [asked]


def test_an_older_runs_log_does_not_tell_how_a_fault_was_asked_for() -> None:
    told = record({"cause": "unknown", "signal": 9, "rank": 1})
    faults = (Injected(1.2, "kill", 1, "", 7, ""), Injected(1.3, "supervisor-kill", None, "", 30, ""))
    again = [each.text for each in replayed(replace(told, injected=faults))]
    assert again == ["kill:rank=1@step=7", "supervisor-kill@step=30"]
    # Nor whose it was: it is no reason for an end that names neither rank nor node.
    nobodys = replace(record({"cause": "unknown", "signal": 9}), injected=(replace(faults[0], rank=None),))
    assert meaning(nobodys, 0).startswith("The process was killed from outside")


def test_all_that_was_injected_into_one_start_happens_again_and_what_ended_another_rank() -> None:
    asked = ["hang:rank=3@step=4", "kill:rank=0@step=4"]
    faults = tuple(
        Injected(1.2, text.partition(":")[0], int(text.partition("rank=")[2][0]), "", 4, text) for text in asked
    )
    told = replace(record({"cause": "unknown", "signal": 9, "rank": 0}), injected=faults)
    assert [each.text for each in replayed(told)] == asked
    told = replace(record({"cause": "unknown", "signal": 9, "rank": 1}), injected=faults)
    assert [each.text for each in replayed(told)] == ["kill:rank=1@step=7", *asked]


@pytest.mark.parametrize("suffix", ["toml", "yaml"])
def test_what_another_file_has_no_parameter_for_is_not_given_again(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "run.toml").write_text(RUN.format(args=""))
    assert argosy(tmp_path, "compile", "run.toml", "-o", "run.yaml").returncode == 0
    file = tmp_path / f"run.{suffix}"
    assert taken(file, ("dataset-uri=s3://bucket/a", 'args=["80"]')) == ('args=["80"]',)
    assert capsys.readouterr().err == f"not given again, {file} has no such parameter: dataset-uri=s3://bucket/a\n"


def test_what_the_script_does_by_itself_is_not_replayed() -> None:
    raised = {"cause": str(Cause.USER_EXCEPTION), "rank": 1}
    assert len(replayed(record(raised, {"cause": "unknown", "signal": 9, "rank": 1}))) == 1
    with pytest.raises(InputError, match="no failure of it can be caused from outside"):
        replayed(record(raised))
    with pytest.raises(InputError, match="nothing of it failed, so there is nothing to let happen again"):
        replayed(record())


@pytest.mark.torch
def test_a_run_is_broken_as_another_was(tmp_path: Path) -> None:
    """With the arguments that it was given: without them this one ends before the step of the failure."""
    (tmp_path / "train.py").write_text(SCRIPT.replace("80", "int((sys.argv + ['16'])[1])"))
    (tmp_path / "run.toml").write_text(RUN.format(args="").partition("[evaluation]")[0])
    first = run(tmp_path, "--inject", "kill:rank=1@step=20", "-p", 'args=["80"]', "--run-id", "its-own")
    done = argosy(tmp_path, "replay", str(first["workflow"]), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    again = dict(json.loads(done.stdout))
    assert again["yaml_sha256"] == first["yaml_sha256"]
    assert "is another" not in done.stderr
    assert again["workflow"] != first["workflow"]
    for found in (first, again):
        assert (found["phase"], found["last_step"]) == ("Succeeded", 80)
        assert [(each["cause"], each["signal"], each["rank"]) for each in found["attempts"]] == [
            ("unknown", 9, 1), (None, None, None),
        ]  # fmt: skip


def test_a_run_of_a_store_needs_its_yaml(tmp_path: Path) -> None:
    done = argosy(tmp_path, "replay", f"file://{tmp_path}/store/gpt/runs/gpt-1")
    assert done.returncode == 2
    assert "name it: --file workflow.yaml" in done.stderr


def run(folder: Path, *words: str) -> dict[str, Any]:
    done = argosy(folder, "run", "run.toml", "--new", "--json", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout))
