"""What a stranger was told in a third hour with the verbs, and what it has to be."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from argosy.steps.record.building import COMMAND
from argosy.workflows.handle.handle import find


@pytest.mark.parametrize("verb", ["rm", "stop", "status", "logs", "explain", "report", "replay", "checkpoint list"])
def test_the_name_of_a_variable_that_is_not_set_means_no_run(verb: str, story, argosy) -> None:
    folder = story.finish("Succeeded", 10.0)
    code, _, err = argosy(*verb.split(), "")
    assert (code, "RUN_ID ''" in err, "gpt-abc12" in err) == (2, True, True), err
    assert (folder / "state.json").is_file()


def test_from_python_an_empty_name_means_no_run_either(story) -> None:
    story.finish("Succeeded", 10.0)
    with pytest.raises(Exception, match="name = ''"):
        find("", state_dir=story.state_dir)


def test_of_a_run_in_a_store_the_evidence_is_fetched_by_its_uri(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    story.at(9.0, "restart_ended", attempt=1, restart=0, cause="unknown", exit_code=1, rank=0, node="node-0", quote="")
    story.at(9.1, "bundle", attempt=1, restart=0, prefix="gpt/runs/gpt-abc12/bundle", files=2, bytes=100)
    story.finish("Failed", 10.0)
    assert "(argosy explain gpt-abc12 --bundle DIR)" in argosy("explain")[1]
    uri = f"file://{story.state_dir}/volumes/argosy/gpt/runs/gpt-abc12"
    assert f"(argosy explain {uri} --bundle DIR)" in argosy("explain", uri)[1]


def test_a_run_that_may_go_on_says_how_long_that_is_thought(story, tell, argosy) -> None:
    tell.killed_and_resumed(story)
    story.finish("Succeeded", 130.0)
    root = story.state_dir / "volumes" / "argosy" / "gpt/runs/gpt-abc12"
    assert argosy("rm", "gpt-abc12")[0] == 0
    story.store.put("gpt/runs/gpt-abc12/alive/train", json.dumps({"time": time.time()}).encode())
    code, _, err = argosy("rm", root.as_uri(), "--checkpoints")
    assert (code, "a run that has ended gives none for 3 min" in err) == (2, True), err


def test_a_missing_module_is_installed_where_the_run_was_started(story, tell, argosy) -> None:
    tell.begin(story)
    story.at(8.0, "restart_began", attempt=1, restart=0, restored_step=0)
    quote = "ModuleNotFoundError: No module named 'transformers'"
    ended = {"cause": "import_error", "exit_code": 1, "rank": 0, "node": "node-0", "quote": quote}
    story.at(9.0, "restart_ended", attempt=1, restart=0, **ended)
    story.at(9.1, "train_ended", cause="import_error", exit_code=78)
    story.node("train", 4.0, 9.2, "Failed", exitCode=78)
    folder = story.finish("Failed", 10.0)
    state = json.loads((folder / "state.json").read_text())
    state["annotations"] = {**state.get("annotations", {}), COMMAND: "argosy run run.toml"}
    (folder / "state.json").write_text(json.dumps(state))
    assert "Install the module into the environment that argosy was started from" in argosy("explain")[1]


def test_what_is_missing_is_made_by_the_verb_that_makes_it(argosy, tmp_path: Path) -> None:
    assert "write one with: argosy compile run.toml -o " in argosy("run", str(tmp_path / "workflow.yaml"))[2]
    assert "write one with: argosy init train.py" in argosy("run", str(tmp_path / "run.toml"))[2]


def test_no_run_of_this_machine_is_advised_for_a_script_in_an_image(argosy, tmp_path: Path) -> None:
    file, out = tmp_path / "run.toml", tmp_path / "w.yaml"
    file.write_text('name = "gpt"\nscript = "/app/train.py"\ncode = ""\n')
    code, _, err = argosy("compile", str(file), "-o", str(out))
    assert (code, "argosy run" in err, "argo submit" in err) == (0, False, True), err


@pytest.mark.parametrize(
    ("faulty", "said"),
    [
        (["--once", "--force"], "leave one of them out"),
        (["--inject", "kill:rank=0@seconds=abc"], "'abc' after seconds= is no whole number from 1"),
        (["--inject", "kill:rank=0@step=0"], "'0' after step= is no whole number from 1"),
        (["--inject", "kill:rank=0@step=-1"], "'-1' after step= is no whole number from 1"),
        (["--inject", "kill:rank=0@step=²"], "'²' after step= is no whole number from 1"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words_that_fit_it(faulty: list[str], said: str, argosy, tmp_path) -> None:
    (tmp_path / "run.toml").write_text('name = "gpt"\nscript = "train.py"\n')
    code, _, err = argosy("run", str(tmp_path / "run.toml"), *faulty)
    assert (code, said in err) == (2, True), err


def test_a_schedule_that_is_wrong_is_named_once(argosy, tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    dataset = '[dataset]\nuri = "s3://lake/corpus"\n'
    file.write_text(
        f'name = "gpt"\nscript = "train.py"\n{dataset}[trigger]\non = "schedule"\nschedule = "99 * * * *"\n'
    )
    assert argosy("compile", str(file))[2].count("schedule = '99") == 1


def test_what_is_pushed_to_this_machine_is_not_on_a_cluster(argosy, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "run.toml").write_text('name = "gpt"\nscript = "train.py"\n')
    where = ["--state-dir", str(tmp_path / "state")]
    code, _, err = argosy("compile", str(tmp_path / "run.toml"), "--push", *where, "-o", str(tmp_path / "w.yaml"))
    assert (code, "(on this machine: a cluster's own volume lacks it)" in err) == (0, True), err
