"""status, explain, logs and report, from the outside: a folder on disk in, text and files out."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from argosy.steps.checkpoint.log import CommitLog
from argosy.steps.claims import ClaimLog, RunClaim
from argosy.steps.code import unpack
from argosy.steps.contract.errors import StepError
from argosy.steps.record.building import COMMAND, build_record
from argosy.steps.record.remedy import what_to_do
from argosy.steps.runlog import RunLog
from argosy.steps.store import open_store
from argosy.workflows.cli.rm import _remove_run
from argosy.workflows.cli.run_folder import RunFolder
from argosy.workflows.cli.written import write_whole
from argosy.workflows.code import pack
from argosy.workflows.handle.handle import find
from tests.s3 import S3Server

SUMMARY_KEYS = [
    *["phase", "message", "interrupted", "silent_since", "unwritten", "run_id", "name", "workflow"],
    *["yaml_sha256", "store_uri"],
    *["attempts", "last_step"],
    *["checkpoint_digest", "evaluated_digest", "promoted_digest", "metric", "metric_name", "gate", "admission"],
    *["goodput", "transport", "lost_steps", "waited", "slow_ranks", "spares", "streamed", "report"],
]
ATTEMPT_KEYS = ["attempt", "gang", "restart", "cause", "signal", "exit_code", "node", "rank"]
ROW_KEYS = ["run", "run_id", "phase", "step", "end_step", "loss", "tokens_per_second", "nodes", "restarts", "goodput"]
ROW_KEYS += ["started", "ended", "seconds", "silent_since"]
ATTEMPT_KEYS += ["restored_step", "last_step", "quote"]


@pytest.fixture
def promoted(story, tell) -> Path:
    tell.killed_and_resumed(story)
    tell.judged(story)
    return story.finish("Succeeded", 130.0)


def test_status_says_where_the_run_stands(promoted, argosy) -> None:
    code, out, _ = argosy("status")
    assert code == 0
    assert out.startswith("gpt-abc12: Promoted, 2 min 10 s\n")
    for said in ("step 200 of 200", "attempt 1: ended at step 47", "signal 9 (SIGKILL)", "10 commits", "production ->"):
        assert said in out
    assert "\nNext:\n  argosy report gpt-abc12 " in out


def test_of_a_run_whose_store_does_not_answer_it_says_what_the_engine_knows(
    promoted, argosy, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = promoted / "state.json"
    state = json.loads(path.read_text())
    state["annotations"]["argosy.dev/store-uri"] = "s3://bucket/argosy"
    path.write_text(json.dumps(state))
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_PROFILE", "absent")
    code, out, err = argosy("status")
    assert code == 0
    assert out.startswith("gpt-abc12: Succeeded, 2 min 10 s\n")
    assert (
        "warning: only what the engine says, its event log cannot be read here: cannot open s3://bucket/argosy" in err
    )
    assert "Training has not begun" not in out
    assert "How far it came stands in its event log alone." in out
    code, _, err = argosy("report")
    assert (code, "its event log cannot be read here: cannot open s3://bucket/argosy" in err) == (0, True), err
    assert "How far it came stands in its event log alone." in (promoted / "report.html").read_text()


def test_status_and_report_say_what_was_streamed_and_waited_for(story, tell, argosy, tmp_path) -> None:
    tell.killed_and_resumed(story)
    read = {"bytes": 3 << 20, "fetched_bytes": 4 << 20, "requests": 7, "refetched": 1}
    for rank, waited in ((0, 1.5), (1, 12.25)):
        story.at(100.0, "streamed", node=f"node-{rank}", rank=rank, waited_seconds=waited, **read)
    story.finish("Succeeded", 130.0)
    said = "6.0 MiB of samples by 2 ranks, 8.0 MiB fetched in 14 requests, 2 of them again; rank 1 on node-1 waited "
    _, out, _ = argosy("status")
    assert f"\n  streamed: {said}longest, 12.2 s\n" in out
    assert "went into steps that were kept, 10.0% into waiting for data" in out
    assert "into waiting for data" in argosy("explain")[1]
    argosy("report", "-o", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert f"<dt>data streamed</dt><dd>{said}longest, 12.2 s</dd>" in page
    assert "bar-waiting" in page
    assert "waiting for data" in page


def test_who_is_slow_what_is_kept_and_what_was_passed_over(story, tell, argosy, tmp_path) -> None:
    tell.killed_and_resumed(story)
    told = {"rank": 3, "node": "node-1", "step": 150, "score": 6.2, "seconds": 0.15, "others": 0.1}
    story.at(100.0, "slow_rank", attempt=1, restart=1, **told)
    story.at(100.0, "skipped", first=20, last=22)
    story.at(101.0, "bundle", attempt=1, restart=0, prefix="gpt/runs/x", files=3, bytes=2048)
    story.finish("Succeeded", 130.0)
    said = "rank 3 on node-1 works 1.5 times as long as the others in a step"
    assert f"\n  slow: {said}" in argosy("status")[1]
    explained = argosy("explain")[1]
    assert f"Slow: {said}" in explained
    assert "The data of steps 20 to 22 were passed over." in explained
    assert "Evidence of its nodes: 2.0 KiB packed (argosy explain gpt-abc12 --bundle DIR)." in explained
    (slow,) = json.loads(argosy("status", "--json")[1])["slow_ranks"]
    assert (slow["rank"], slow["node"], slow["others_seconds"]) == (3, "node-1", 0.1)
    argosy("report", "-o", str(tmp_path / "page.html"))
    assert f"Slow: {said}" in (tmp_path / "page.html").read_text()
    code, _, err = argosy("explain", "--bundle", str(tmp_path / "kept"))
    assert code == 2
    assert "no evidence was kept" in err


def test_evidence_beside_the_code_of_a_run_is_no_code_and_takes_none_away(story, tell, argosy, tmp_path) -> None:
    tell.killed_and_resumed(story)
    story.finish("Failed", 130.0)
    story.store.put("gpt/runs/gpt-abc12/attempts/gpt-a1/bundle/0000/host.json", b'{"cpus": 2}')
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("")
    for folder in ("code/evidence", "code"):
        assert argosy("explain", "--bundle", str(tmp_path / folder))[0] == 0
        assert (tmp_path / folder / "gpt-a1/0000/host.json").exists()
        assert pack(tmp_path / "code").files == ("train.py",)


def test_explain_tells_of_a_supervisor_that_was_lost(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(20.0, "injected", fault="supervisor-kill", step=12, asked="supervisor-kill@step=12")
    refused = 'main: Error (exit code 75): {"cause":"s3_access","exit_code":75,"message":"write s3://b/x: 403"}'
    for name, began, ended, more in (
        ("train(0)", 4.0, 20.5, {"phase": "Failed", "exitCode": 137, "message": "Error (exit code 137)"}),
        ("train(1)", 21.0, 30.0, {"phase": "Failed", "exitCode": 137, "message": "Error (exit code 137)"}),
        ("train(2)", 31.0, 40.0, {"phase": "Failed", "exitCode": 75, "message": refused}),
        ("train(3)", 41.0, 50.0, {"phase": "Failed", "message": "The node was low on resource: memory. "}),
        ("train(4)", 51.0, 90.0, {}),
    ):
        story.node(name, began, ended, templateName="train", **more)
    story.finish("Succeeded", 91.0)
    told = [line for line in argosy("explain")[1].splitlines() if "supervisor" in line]
    assert told == [
        "The supervisor was lost after 16.5 s (exit code 137, on purpose); train (try 2) took over.",
        "The supervisor was lost after 9.0 s (exit code 137); train (try 3) took over.",
        # Only Argo knew: "so nothing says how it ended" was all that was told.
        "The supervisor ended: s3_access: write s3://b/x: 403; train (try 4) took over.",
        "The supervisor was lost after 9.0 s (The node was low on resource: memory); train (try 5) took over.",
    ]


def test_json_has_exactly_the_public_keys(promoted, argosy) -> None:
    for verb in ("status", "report"):
        _, out, _ = argosy(verb, "--json")
        found = json.loads(out)
        assert list(found) == SUMMARY_KEYS
        assert all(list(each) == ATTEMPT_KEYS for each in found["attempts"])
    assert found["promoted_digest"] == found["evaluated_digest"] == found["checkpoint_digest"] == "c8" * 32
    assert (found["metric"], found["metric_name"]) == (3.412, "bits_per_byte")
    assert found["attempts"][0]["signal"] == 9
    assert found["attempts"][1]["restored_step"] == 40


def test_a_run_is_found_by_its_id_too(story, tell, argosy) -> None:
    folder = story.finish("Running", None)
    state = json.loads((folder / "state.json").read_text())
    state["parameters"]["run-id"] = "nightly"
    (folder / "state.json").write_text(json.dumps(state))
    code, out, _ = argosy("status", "nightly", "--json")
    assert (code, json.loads(out)["run_id"]) == (0, "nightly")
    for verb in ("status", "ls", "stop"):
        assert "gpt-abc12 (run id nightly)" in argosy(verb)[1], verb


def test_a_runs_own_name_comes_before_another_that_went_on_under_it(story, argosy) -> None:
    folder = story.finish("Failed", 60.0)
    later = folder.with_name("gpt-later")
    shutil.copytree(folder, later)
    state = json.loads((folder / "state.json").read_text())
    state |= {"name": "gpt-later", "started": state["started"] + 100, "phase": "Running", "finished": None}
    state["parameters"]["run-id"] = folder.name
    (later / "state.json").write_text(json.dumps(state))
    _, out, _ = argosy("status", folder.name, "--json")
    assert json.loads(out)["workflow"] == folder.name
    code, out, err = argosy("rm", folder.name)
    assert (code, folder.exists(), later.exists()) == (0, False, True), out + err


def test_a_run_whose_folder_is_gone_is_removed_from_its_store(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.node("train", 0, 130)
    story.finish("Succeeded", 130.0)
    root = story.state_dir / "volumes" / "argosy"
    kept = root / "gpt/runs/gpt-other/events/a"
    kept.parent.mkdir(parents=True)
    kept.write_text("{}")
    assert argosy("rm", "gpt-abc12")[0] == 0
    uri = f"file://{root}/gpt/runs/gpt-abc12"
    code, _, err = argosy("rm", uri)
    assert (code, "--checkpoints removes that" in err) == (2, True), err
    story.store.put("gpt/runs/gpt-abc12/summary.json", b'{"phase": "Succeeded"}')
    beat = root / "gpt/runs/gpt-abc12/alive/train"
    beat.parent.mkdir()
    beat.write_text(json.dumps({"time": time.time()}))
    code, _, err = argosy("rm", uri, "--checkpoints")
    assert (code, "its last sign of life is" in err) == (2, True), err
    beat.write_text(json.dumps({"time": time.time() - 200}))
    code, out, err = argosy("rm", uri, "--checkpoints")
    assert (code, out.startswith("removed gpt-abc12 and "), f"argosy ls file://{root} " in out) == (0, True, True), err
    assert [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()] == [
        "gpt/runs/gpt-other/events/a"
    ]


@pytest.mark.parametrize(
    ("state", "age", "code"), [("running", 30, 2), ("running", 1000, 0), ("failed", 30, 0), ("", 30, 2), ("", 1000, 0)]
)
def test_checkpoints_with_which_another_workflow_goes_on_stay(
    state: str, age: int, code: int, story, tell, argosy
) -> None:
    """A run that had failed was removed with the checkpoints of the one that went on from them, on another cluster."""
    tell.killed_and_resumed(story)
    folder, prefix, now = story.finish("Failed", 130.0), "gpt/runs/gpt-abc12", story.now + 5000
    story.now = now
    if state:
        story.store.put(f"{prefix}/admission/u-2.json", b'{"key": "k", "workflow": "gpt-later"}')
        claim = RunClaim("gpt-later", "u-2", "gpt-abc12", state, now - age, 900.0)
        assert ClaimLog(story.store, "gpt", "k").append(1, claim)
    else:
        story.store.put(f"{prefix}/alive/u-2.json", json.dumps({"time": now - age}).encode())
    if code == 2:
        told, _, err = argosy("checkpoint", "prune", folder.name, "--keep", "1")
        assert (told, "goes on with it, and pruning would take the run away" in err) == (2, True), err
    told, _, err = argosy("rm", folder.name, "--checkpoints")
    assert (told, "goes on with its checkpoints" in err, folder.exists()) == (code, code == 2, code == 2), err
    assert bool(list(story.store.list(f"{prefix}/events"))) == (code == 2)
    if state and code == 2:
        story.store.put(f"{prefix}/summary.json", b'{"phase": "Failed"}')
        uri = f"file://{story.state_dir}/volumes/argosy/{prefix}"
        told, _, err = argosy("rm", uri, "--checkpoints")
        assert (told, "workflow gpt-later goes on with it" in err) == (2, True), err


def test_a_workflow_that_was_killed_here_goes_on_with_nothing(story, tell, argosy) -> None:
    """It was said of it that it had not ended, and to stop what no longer ran, as long as its claim had a lease."""
    tell.killed_and_resumed(story)
    folder = story.finish("Succeeded", 130.0)
    story.store.put("gpt/runs/gpt-abc12/admission/u-2.json", b'{"key": "k", "workflow": "gpt-killed"}')
    claim = RunClaim("gpt-killed", "u-2", "gpt-abc12", "running", time.time() - 30, 900.0)
    assert ClaimLog(story.store, "gpt", "k").append(1, claim)
    for name, state in (("gpt-killed", '{"uid": "u-2", "phase": "Running"}'), ("gpt-torn", "{")):
        (folder.parent / name).mkdir()
        (folder.parent / name / "state.json").write_text(state)
    told, _, err = argosy("rm", folder.name, "--checkpoints")
    assert (told, folder.exists()) == (0, False), err


def test_calls_that_write_one_file_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    """They shared the file beside it: one ended with "no such file", as if the folder were not there."""
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: write_whole(tmp_path / "report.html", b"x" * 100_000), range(200)))
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == {"report.html": 100_000}


def test_who_names_a_link_writes_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "to.yaml").touch()
    (tmp_path / "link.yaml").symlink_to("to.yaml")
    write_whole(tmp_path / "link.yaml", b"x")
    assert ((tmp_path / "link.yaml").is_symlink(), (tmp_path / "to.yaml").read_bytes()) == (True, b"x")


def test_calls_that_remove_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    """Each removed what the others had put aside, and told of a mistake of ours."""
    runs = [RunFolder(tmp_path / "runs" / f"gpt-{number}", tmp_path) for number in range(24)]
    for run in runs:
        (run.path / "nodes").mkdir(parents=True)
        for number in range(100):
            (run.path / "nodes" / f"log{number}").touch()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(_remove_run, [*runs, *runs[:4]]))
    assert not list(tmp_path.glob("r*/*"))


@pytest.mark.parametrize(("age", "code"), [(30, 2), (1000, 0)])
def test_a_run_whose_next_pod_waits_for_a_node_is_not_removed(age: int, code: int, story, argosy) -> None:
    """Nobody's heart beats between two steps: what it had was removed, and it went on."""
    uri = f"file://{story.state_dir}/volumes/argosy/gpt/runs/gpt-abc12"
    event = json.dumps({"time": time.time() - age, "kind": "admission", "decision": "admit"})
    story.store.put("gpt/runs/gpt-abc12/events/admit-1/00000001.jsonl", f"{event}\n".encode())
    told, _, err = argosy("rm", uri, "--checkpoints")
    assert (told, "it has not ended, and was last heard of" in err) == (code, code == 2), err


def test_what_is_removed_is_asked_for_its_signs_of_life_once(argosy, monkeypatch) -> None:
    at, old = "gpt/runs/gpt-abc12", time.time() - 5000
    with S3Server(("lake",)) as server:
        for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "b", "ENDPOINT_URL": server.endpoint}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        store = open_store("s3://lake")
        store.put(f"{at}/alive/u-1.json", json.dumps({"time": old}).encode())
        event = json.dumps({"time": old, "kind": "admission", "decision": "start"})
        store.put(f"{at}/events/admit-1/00000001.jsonl", f"{event}\n".encode())
        began = len(server.requests)
        code, _, err = argosy("rm", f"s3://lake/{at}", "--checkpoints")
        seen = server.requests[began:]
        asked = [each for each in seen if each.operation == "GetObject" and each.path.endswith("alive/u-1.json")]
    assert (code, len(asked)) == (0, 1), err


def test_a_wrong_value_is_mended_where_it_stands_and_not_by_other_keys(story, argosy) -> None:
    said = "AWS_ENDPOINT_URL = 'host:9000': write http://host:port or https://host"
    message = json.dumps({"cause": "s3_access", "exit_code": 2, "message": said})
    story.node("snapshot", 0, 1, "Failed", message=message, exitCode=2)
    story.finish("Failed", 2.0)
    _, out, _ = argosy("explain")
    assert "failed at the step snapshot, with exit code 2 for s3_access" in out or "s3_access" in out, out
    assert "What to do: mend the value that this line names, in run.toml" in out
    assert "credentials" not in out


def test_a_step_that_ended_without_a_word_has_no_line_to_mend(story, argosy) -> None:
    """As Go's runtime ends Argo's executor, when its pod is taken away again and again."""
    story.node("snapshot", 0, 1, "Failed", message="main: Error (exit code 2)", exitCode=2)
    story.finish("Failed", 2.0)
    assert "this line names" not in argosy("explain")[1]


@pytest.mark.parametrize("sign", ["event", "beat", "commit"])
@pytest.mark.parametrize(("age", "silent"), [(600, False), (4000, True)])
def test_a_run_that_died_without_a_word_does_not_run_for_ever(age, silent, sign, story, tell, argosy) -> None:
    """A power cut ends all that could write down the end: the store alone had said "Running" for ever."""
    tell.killed_and_resumed(story)
    story.log.close()
    root, at = story.state_dir / "volumes" / "argosy", "gpt/runs/gpt-abc12"
    story.now += 5000
    line = {"time": story.now, "kind": "admission", "decision": "start"}
    if sign == "event":
        story.store.put(f"{at}/events/admit-1/00000001.jsonl", f"{json.dumps(line)}\n".encode())
    elif sign == "commit":  # of ranks whose supervisor was evicted, and has no node yet
        log = CommitLog(story.store, at)
        log.writer(log.claim("first")).append(kind="commit", step=200, digest="a" * 64)
    else:  # of a supervisor whose gang waits in a queue
        story.store.put(f"{at}/alive/u-1.json", json.dumps(line).encode())
    story.now += age
    if silent and sign == "beat":
        story.store.put(f"{at}/log/0000000001.json", b"damaged")
    code, out, err = argosy("status", f"file://{root}/{at}")
    said = json.loads(argosy("status", f"file://{root}/{at}", "--json")[1])
    row = json.loads(argosy("ls", f"file://{root}", "--json")[1])["runs"][0]
    table = argosy("ls", f"file://{root}")[1]
    assert code == 0, err
    if not silent:
        assert out.startswith("gpt-abc12: Running, "), out
        assert (said["silent_since"], row["silent_since"], row["phase"]) == (None, None, "Running")
        return
    assert out.startswith("gpt-abc12: Silent for 1 h 06 min\n"), out
    assert "  Nothing was heard of it since 20" in out
    assert "argosy submit run.toml -p run-id=gpt-abc12 " in out
    assert "argosy run run.toml --run-id gpt-abc12 " in out
    assert "  Silent for 1 h 06 min  200/200 " in table, table
    assert (said["phase"], row["phase"]) == ("Silent", "Silent")
    assert said["silent_since"].endswith(" UTC")
    assert datetime.fromisoformat(row["silent_since"]).timestamp() == pytest.approx(line["time"], abs=1)
    assert find(f"file://{root}/{at}").phase == "Silent"
    assert "its end is not recorded: it died, or" in argosy("explain", f"file://{root}/{at}")[1]


def test_a_local_run_that_was_left_is_not_looked_for_on_a_cluster(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.at(130.0, "admission", decision="start", reason="taken over", local=True)
    story.log.close()
    story.now += 5000
    _, out, _ = argosy("status", f"file://{story.state_dir}/volumes/argosy/gpt/runs/gpt-abc12")
    assert "its end is not recorded: it was interrupted, or died, on the machine that ran it." in out
    assert "argosy run run.toml --run-id gpt-abc12 " in out
    assert "cluster" not in out


@pytest.mark.parametrize("end", ["/gpt/runs/..", "/gpt/runs/.", "/./runs/gpt-abc12", "//runs/gpt-abc12", "/gpt/runs"])
def test_a_uri_that_names_no_run_is_wrong_input(end: str, story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    code, _, err = argosy("rm", f"file://{story.state_dir}/volumes/argosy{end}", "--checkpoints")
    assert (code, "no place of a run; it ends in /NAME/runs/RUN_ID" in err) == (2, True), err


def test_a_promoted_run_is_not_removed_from_its_store_either(promoted, story, argosy) -> None:
    story.store.put("gpt/runs/gpt-abc12/summary.json", b'{"phase": "Succeeded"}')
    uri = f"file://{story.state_dir}/volumes/argosy/gpt/runs/gpt-abc12"
    code, _, err = argosy("rm", uri, "--checkpoints")
    assert (code, "pointer 'production' was moved to a checkpoint of it" in err) == (2, True), err


def test_the_table_has_the_step_that_status_has(story, tell, argosy) -> None:
    """The last step that a script prints need not be the one that it saves last."""
    tell.killed_and_resumed(story)
    facts = {"digest": tell.digest(203), "bytes": 1, "seconds": 0.1, "generation": 3, "final": True}
    story.at(126.1, "checkpoint_committed", step=203, **facts)
    story.finish("Succeeded", 132.0)
    step = json.loads(argosy("ls", "--json")[1])["runs"][0]["step"]
    assert step == json.loads(argosy("status", "--json")[1])["last_step"]


def test_a_pointer_that_went_back_is_not_said_to_be_promoted(promoted, story, tell, argosy) -> None:
    with RunLog(story.store, f"gpt/runs/{story.workflow}", "promote") as log:
        story.now += 1
        log.append("promoted", pointer="production", digest=tell.digest(180), previous=tell.digest(200), rollback=True)
    assert f"  went back: production -> {tell.digest(180)[:12]}\n" in argosy("status")[1]


def test_two_runs_of_one_id_in_a_store_are_two_rows(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    with RunLog(story.store, f"other/runs/{story.workflow}", "train") as other:
        other.append("restart_began", attempt=1, restart=0, generation=1, restored_step=0)
        other.append("step", attempt=1, restart=0, rank=0, step=7, loss=1.0)
    rows = json.loads(argosy("ls", f"file://{story.state_dir}/volumes/argosy", "--json")[1])["runs"]
    assert sorted(row["step"] for row in rows) == [7, 200]


def test_the_end_is_the_one_that_the_latest_start_trains_to(story, tell, argosy) -> None:
    """Another description may go on under a run's id: to another end, or to one that it does not tell."""
    tell.killed_and_resumed(story)
    story.at(127.0, "restart_began", attempt=3, restart=0, generation=4, restored_step=200)
    story.at(128.0, "step", attempt=3, restart=0, rank=0, step=210, loss=1.0)
    story.finish("Succeeded", 130.0)
    assert "training: step 210, loss 1" in argosy("status")[1]
    assert " 210  " in argosy("ls")[1]


def test_a_run_that_nobody_runs_is_not_called_running(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.at(128.0, "gang_created", attempt=3, gang="gpt-abc12-g3", nnodes=2, nproc_per_node=2, excluded=[])
    story.at(130.0, "restart_began", attempt=3, restart=0, generation=4, restored_step=200)
    story.steps(3, 0, 201, 210, 150.0)
    story.node("train(1)", 127.0, 127.0, phase="Pending", finishedAt=None)
    story.finish("Running", None)
    _, out, _ = argosy("ls", "--json")
    (row,) = json.loads(out)["runs"]
    _, said, _ = argosy("status")
    assert row["phase"] == "Interrupted"
    assert "Interrupted" in said
    assert row["step"] == 210
    assert "of 2 min 29 s" in said  # and not of what there was when training was stopped
    assert "reached step 210. It was cut off together with its supervisor" in argosy("explain")[1]
    assert argosy("report")[0] == 0
    report = (story.state_dir / "runs" / story.workflow / "report.html").read_text()
    assert '">cut off</span>' in report
    assert '">running</span>' not in report
    assert 'class="bar-step bar-bad"' not in report  # nothing failed
    assert "steps done again or lost" in report  # a step that is lost need not have been done again


def test_a_list_for_programs_holds_numbers_and_times_and_no_texts(promoted, argosy) -> None:
    for verb in ("ls", "top"):
        _, out, _ = argosy(verb, "--json")
        (row,) = json.loads(out)["runs"]
        assert list(row) == ROW_KEYS
        assert all(isinstance(row[key], int | float) for key in ("step", "nodes", "restarts", "goodput", "seconds"))
        assert datetime.fromisoformat(row["started"]) <= datetime.fromisoformat(row["ended"])
        assert row["run_id"]


def test_explain_tells_cause_loss_and_way_on(promoted, argosy) -> None:
    _, out, _ = argosy("explain")
    assert "argosy explain" not in out  # which has just been typed
    assert "no record of the machine" not in out  # it was injected
    for said in (
        "Attempt 1 began from scratch and reached step 47.",
        "    | rank 1 on node-0 was ended by signal 9",
        "Injected on purpose: kill (rank 1, node-0, after step 47).",
        "Lost: 7 steps. Started again on the same pods after 1.0 s, from step 40, the newest verified checkpoint",
        "The node was taken away",
        "Started again on a new gang",
        "production now points to c8c8c8c8c8c8.",
    ):
        assert said in out


def test_a_kill_beside_an_injected_one_was_not_on_purpose(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, generation=1, restored_step=0)
    story.steps(1, 0, 1, 30, 12.0)
    story.at(20.0, "injected", fault="hang", rank=1, step=9, asked="hang:rank=1@step=9")
    killed = {"cause": "unknown", "signal": 9, "rank": 0, "node": "node-0", "quote": "q", "last_step": 30}
    story.at(30.0, "restart_ended", attempt=1, restart=0, **killed)
    story.finish("Failed", 40.0)
    out = argosy("explain")[1]
    assert "The process was killed from outside, and no record of the machine says by whom." in out
    assert "Injected on purpose: hang (rank 1, after step 9)." in out


def test_explain_of_a_refused_run_says_that_nothing_moved(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    tell.judged(story, "refuse")
    story.finish("Succeeded", 130.0)
    _, out, _ = argosy("explain")
    assert "The gate said refuse: 3.412 is worse than the floor 3." in out
    assert "The pointer did not move." in out
    assert "What to do: train longer" in out


@pytest.mark.parametrize(
    ("cause", "raised"),
    [
        ("unknown", "raise retry.max_same_failure or retry.max_restarts in"),
        ("preempted_evicted", "raise retry.max_preemptions in"),
        ("dataloader_worker_killed", ""),  # one restart, whatever retry says
    ],
)
def test_explain_names_the_limit_that_ended_it_and_none_that_would_not_help(story, tell, argosy, cause, raised) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(9.0, "restart_ended", attempt=1, restart=0, cause=cause, rank=0, node="node-0", quote="x")
    story.at(9.1, "budget", cause=cause, spent=2, limit=1)
    story.at(9.1, "train_ended", cause=cause, exit_code=74)
    story.node("train", 4.0, 9.2, "Failed", exitCode=74)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert ("It gave up after 2 such failures" in out) == bool(raised)
    assert raised in out


def test_a_rank_that_alone_was_told_to_stop_is_no_pod_that_was(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(9.0, "restart_ended", attempt=1, restart=0, cause="sigterm", signal=15, rank=1, node="node-0", quote="x")
    story.at(9.5, "restart_began", attempt=1, restart=1, restored_step=0)
    story.finish("Succeeded", 10.0)
    _, out, _ = argosy("explain")
    assert "The process was told to stop by itself, or by somebody who did not tell its pod." in out
    assert "A pod was told" not in out


def test_explain_of_a_failed_run_says_what_to_do(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    quote = "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"
    story.at(
        9.0, "restart_ended", attempt=1, restart=0, cause="gpu_oom", exit_code=1, rank=0, node="node-0", quote=quote
    )
    story.at(9.1, "train_ended", cause="gpu_oom", exit_code=70)
    story.node("train", 4.0, 9.2, "Failed", exitCode=70)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert f"    | {quote}" in out
    assert "failed at the step train, with exit code 70" in out
    assert "What to do: Lower batch.micro_batch_size" in out


def test_a_clock_that_was_set_back_turns_nothing_round(story, tell, argosy) -> None:
    """Of a run that had trained to its end it was said that training had not begun."""
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    story.steps(1, 0, 1, 20, 9.0)
    story.steps(1, 0, 21, 40, -3600.0)
    story.at(-3580.0, "train_ended", cause="none", exit_code=0)
    story.finish("Succeeded", -3570.0)
    _, out, _ = argosy("status")
    assert "Trained to step 40 of 200" in out
    assert "training: step 40 of 200" in out
    assert " 40/200 " in argosy("ls")[1]


def test_a_code_archive_that_was_deleted_is_stored_again(story, tell, argosy, tmp_path) -> None:
    """The quote said to submit with argosy, the advice below it that a pinned dataset had changed."""
    with pytest.raises(StepError) as caught:
        unpack(open_store(f"file://{tmp_path}/empty"), "gpt", "ab" * 32, tmp_path / "code")
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    where = {"attempt": 1, "restart": 0, "rank": 0, "node": "node-0"}
    story.at(9.0, "restart_ended", **where, cause=str(caught.value.cause), exit_code=78, quote=caught.value.quote)
    story.at(9.1, "train_ended", cause="s3_missing", exit_code=78)
    story.node("train", 4.0, 9.2, "Failed", exitCode=78)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert "| the code archive file:///" in out
    assert "is not there: nobody stored it, or it was deleted since\n" in out
    assert re.search(r"What to do: argosy (run|submit) .*packs the code and stores it again, and goes on", out)
    assert "it was pinned" not in out


@pytest.mark.parametrize("message", ["workflow shutdown with strategy:  Stop", ""])
def test_a_run_that_was_stopped_is_gone_on_with_and_no_log_is_to_be_read(message: str, story, tell, argosy) -> None:
    """Its advice was the log of a step that nobody had named; after argo retry no step has failed."""
    tell.begin(story)
    if message:
        story.node("train", 4.0, 9.2, "Failed", message=message)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert "What to do: Nothing was saved; start it again: `argosy " in out
    assert "run-id" in out


def test_a_run_of_which_only_the_store_is_left_was_not_stopped_for_that(story, tell, argosy) -> None:
    """Which step failed is not in the store; that nobody says it is no word of a stop."""
    tell.begin(story)
    story.finish("Failed", 10.0)
    root = story.state_dir / "volumes" / "argosy"
    (root / "gpt/runs/gpt-abc12/summary.json").write_text('{"workflow": "gpt-abc12", "phase": "Failed"}')
    _, out, _ = argosy("explain", f"file://{root}/gpt/runs/gpt-abc12")
    assert "What to do: the store does not say at which step it failed" in out
    assert "start it again" not in out


def test_a_workflow_of_which_argo_began_no_step_is_told_so() -> None:
    """Its advice was to look into the store, which has nothing, for the step that failed, of which there was none."""
    said = "invalid spec: templates.main.tasks.training failed to resolve {{workflow.parameters.run-id}}"
    state = {"name": "w", "namespace": "research", "phase": "Failed", "message": said, "annotations": {}, "nodes": []}
    assert "`argo lint FILE -n research`" in "".join(what_to_do(build_record([], state)))


def test_a_time_limit_of_argos_is_said_to_be_one(story, tell, argosy) -> None:
    """The advice was a log in which nothing stands."""
    tell.begin(story)
    said = "Pod was active on the node longer than the specified deadline"
    story.node("train", 4.0, 9.2, "Failed", exitCode=143, message=said)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert "What to do: a time limit of the Workflow or of this step (activeDeadlineSeconds" in out


def test_a_quota_that_argos_own_containers_do_not_meet_is_whose_it_is(story, tell, argosy) -> None:
    """The advice was `argosy doctor`, which is not shown these containers."""
    tell.begin(story)
    said = 'pods "r-1" is forbidden: failed quota: team: must specify limits.memory for: init,wait'
    story.node("snapshot", 4.0, 4.0, "Error", message=said)
    story.finish("Failed", 10.0)
    _, out, _ = argosy("explain")
    assert "What to do: a quota asks every container for a limit, and Argo's own have none" in out


@pytest.mark.parametrize("typed", ["argosy run jobs/run.toml", ""])  # chaos, and older runs, have none
def test_advice_names_the_file_as_it_was_typed_once(typed: str, story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(9.0, "train_ended", cause="deadline_exceeded", exit_code=73)
    story.node("train", 4.0, 9.2, "Failed", exitCode=73)
    state = story.finish("Failed", 10.0) / "state.json"
    told = json.loads(state.read_text())
    told["annotations"] = {**told.get("annotations", {}), COMMAND: typed}
    state.write_text(json.dumps(told))
    _, out, _ = argosy("explain")
    assert f"`{typed or 'argosy run run.toml'} --run-id " in out
    assert "jobs/jobs" not in out


def test_a_duplicate_says_why_it_did_not_start(story, argosy) -> None:
    reason = "workflow gpt-first has already succeeded with this run and dataset"
    story.at(1.0, "admission", decision="duplicate", reason=reason, key="k")
    story.finish("Succeeded", 2.0)
    _, out, _ = argosy("status")
    assert "Not started: duplicate" in out
    assert reason in out


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails on what a strict reader would stumble over."""

    VOID = frozenset({"meta", "br", "line", "rect", "path", "circle", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read_page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.open == []
    return page


def test_the_report_is_one_static_page(promoted, argosy, tmp_path) -> None:
    code, out, _ = argosy("report", "-o", "r.html")
    assert code == 0
    assert "report: r.html" in out
    page = read_page(tmp_path / "r.html")
    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    raw = (tmp_path / "r.html").read_text()
    assert "http" not in raw
    assert "url(" not in raw
    assert "@import" not in raw
    assert page.tags.count("polyline") == 5  # three kept curves, two lost ones
    assert "prefers-color-scheme: dark" in raw
    assert "width=device-width" in raw


def test_the_report_of_a_run_leaves_a_pipe_what_it_was(promoted, argosy, tmp_path) -> None:
    """As root ``argosy report -o /dev/null`` put a page in place of the device."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert argosy("report", "-o", str(pipe))[0] == 0
        assert pipe.is_fifo()
        assert os.read(reader, 20).startswith(b"<!doctype html>")
    finally:
        os.close(reader)


def test_the_report_is_written_into_the_runs_folder(promoted, argosy) -> None:
    _, out, _ = argosy("report", "--json")
    assert json.loads(out)["report"] == str(promoted / "report.html")
    assert (promoted / "report.html").exists()
    assert not list(promoted.glob(".report*"))


def test_nothing_a_run_says_becomes_markup(story, argosy) -> None:
    evil = "</title><script>alert(1)</script><b onload=x>{{7*7}}"
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=1, nproc_per_node=1, excluded=[evil])
    story.at(1.0, "restart_began", attempt=1, restart=0, restored_digest=evil, restored_step=1)
    story.at(3.0, "step", attempt=1, restart=0, rank=0, step=2, loss=1.0)
    story.at(4.0, "step", attempt=1, restart=0, rank=0, step=3, loss=2.0)
    story.at(5.0, "restart_ended", attempt=1, restart=0, cause=evil, node=evil, quote=evil, last_step=3)
    story.at(6.0, "gated", decision=evil, reason=evil, metric=evil, value=1.0, floor=evil)
    story.node(evil, 0.0, 7.0, evil, message=evil)
    folder = story.finish("Failed", 8.0, evil)
    assert argosy("report")[0] == 0
    page = read_page(folder / "report.html")
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "{{7*7}}" in "".join(page.text)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed"])
def test_a_report_exists_at_every_moment(phase, story, argosy) -> None:
    folder = story.finish(phase, None)
    assert argosy("report")[0] == 0
    read_page(folder / "report.html")


def test_a_report_of_a_long_run_stays_small(story, argosy) -> None:
    story.at(0.0, "gang_created", attempt=1, gang="g", nnodes=64, nproc_per_node=8)
    for restart in range(300):
        story.at(restart * 100.0, "restart_began", attempt=1, restart=restart, restored_step=restart * 40)
        story.steps(1, restart, restart * 40 + 1, restart * 40 + 45, restart * 100.0 + 1, 1.0)
        ended = {"cause": "unknown", "signal": 9, "rank": 0, "last_step": restart * 40 + 45}
        story.at(restart * 100.0 + 50, "restart_ended", attempt=1, restart=restart, **ended)
        story.at(
            restart * 100.0 + 49, "checkpoint_committed", step=restart * 40 + 40, digest=f"{restart:064x}", bytes=1
        )
    folder = story.finish("Running", None)
    assert argosy("report")[0] == 0
    assert (folder / "report.html").stat().st_size < 1_000_000
    assert re.search(r"8 h \d+ min\s*wall time so far", " ".join(read_page(folder / "report.html").text))


def write_log(folder: Path, pod: str, text: str) -> Path:
    log = folder / "nodes" / "node-0" / "pods" / pod / "log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.write(text)
    return log


def test_logs_show_every_pod_and_choose_ranks(promoted, argosy) -> None:
    write_log(promoted, "train-0", "starting\n[rank 0] loss 3\n[rank 1] loss 4\nno end")
    write_log(promoted, "gate-1", "decision\n")
    _, out, _ = argosy("logs")
    assert "train-0 | [rank 0] loss 3\n" in out
    assert "train-0 | no end\n" in out
    assert "gate-1 | decision\n" in out
    assert argosy("logs", "--rank", "1")[1] == "train-0 | [rank 1] loss 4\n"
    assert argosy("logs", "--pod", "gate")[1] == "gate-1 | decision\n"
    assert argosy("logs", "--pod", "gone")[2].startswith("no lines of pods named 'gone' in ")
    assert argosy("logs", "--pod", "train", "--tail", "1")[1] == "train-0 | no end\n"
    assert "no lines" not in argosy("logs", "--tail", "0")[2]
    lines = json.loads(argosy("logs", "--json", "--rank", "0")[1])["lines"]
    assert lines == [{"pod": "train-0", "rank": 0, "text": "[rank 0] loss 3"}]
    (promoted / "state.json").write_text("{")  # as a disk that is full leaves it
    assert "train-0 | no end\n" in argosy("logs", "--pod", "train")[1]


def test_a_folder_that_is_given_as_a_store_is_told_its_option(argosy) -> None:
    code, _, err = argosy("ls", "/runs/.argosy")
    assert code == 2
    assert "or name a folder with --state-dir" in err


def test_followed_logs_end_with_the_run(story, tmp_path) -> None:
    folder = story.finish("Running", None)
    write_log(folder, "p", "one\ntw")
    command = [sys.executable, "-m", "argosy.workflows.cli.main", "logs", "-f"]
    # Nobody runs it: it was stopped.
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=30).stdout == b"p | one\np | tw\n"
    lock = (folder / "engine.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    with (
        lock,
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader,
    ):
        assert reader.stdout is not None
        guard = threading.Timer(30, reader.kill)
        guard.start()
        assert reader.stdout.readline() == "p | one\n"
        write_log(folder, "p", "o\n")
        assert reader.stdout.readline() == "p | two\n"
        write_log(folder, "q", "late")
        state = json.loads((folder / "state.json").read_text())
        (folder / "state.part").write_text(json.dumps({**state, "phase": "Succeeded"}))
        (folder / "state.part").replace(folder / "state.json")
        began = time.monotonic()
        assert reader.stdout.read() == "q | late\n"
        assert reader.wait() == 0
        guard.cancel()
        assert time.monotonic() - began < 15


def test_the_next_commands_find_a_run_whose_folder_is_elsewhere(promoted, argosy, tmp_path, monkeypatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    _, out, _ = argosy("status", "--state-dir", "../.argosy")
    command = next(line for line in out.splitlines() if line.startswith("  argosy explain")).split("#")[0].split()
    assert argosy(*command[1:])[0] == 0


def test_of_evidence_that_its_store_refused_it_is_not_said_that_no_start_failed(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    assert "though a start failed: argosy logs tells" in argosy("explain", "--bundle", "b")[2]


def test_what_an_earlier_workflow_of_the_run_was_judged_is_not_said_of_this_one(story, tell) -> None:
    tell.killed_and_resumed(story)
    tell.judged(story, "refuse")
    assert story.record("Succeeded").refused
    story.at(140.0, "gang_created", attempt=3, gang="gpt-abc12-g3", nnodes=2, nproc_per_node=2, excluded=[])
    story.at(141.0, "restart_began", attempt=3, restart=0, generation=4, restored_step=200, restored_digest="c8" * 32)
    story.at(142.0, "train_ended", cause="none", exit_code=0, checkpoint_digest="c8" * 32)
    record = story.record("Failed", 150.0)
    assert (record.evaluation, record.gate, record.refused) == (None, None, False)
