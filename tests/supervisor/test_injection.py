"""What ``--inject`` accepts, what it refuses and how, and that an injection happens once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from argosy.steps.contract import env, injection
from argosy.steps.contract.errors import InputError
from argosy.steps.contract.injection import Injection, parse
from argosy.steps.runlog import RunLog, read_events
from argosy.steps.store import open_store
from argosy.steps.supervisor.faults import Faults


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kill:rank=1@step=40", Injection("kill", 1, None, 40, None)),
        ("exit:rank=0,code=3@step=1", Injection("exit", 0, None, 1, 3)),
        ("segv:rank=2@step=7", Injection("segv", 2, None, 7, None)),
        ("hang:rank=1@step=40", Injection("hang", 1, None, 40, None)),
        ("preempt:node=1@step=40", Injection("preempt", None, 1, 40, None)),
        ("node-loss:node=node-2@step=40", Injection("node-loss", None, 2, 40, None)),
        ("corrupt-shard@step=40", Injection("corrupt-shard", None, None, 40, None)),
        ("supervisor-kill@step=40", Injection("supervisor-kill", None, None, 40, None)),
        ("kill:rank=1@seconds=5", Injection("kill", 1, None, 0, None, 5)),
        ("preempt:node=1@seconds=90", Injection("preempt", None, 1, 0, None, 90)),
        ("hang:rank=1@phase=save", Injection("hang", 1, None, 0, None, phase="save")),
        ("abort:rank=1@phase=end", Injection("abort", 1, None, 0, None, phase="end")),
        ("preempt:node=1@phase=save", Injection("preempt", None, 1, 0, None, phase="save")),
        ("supervisor-kill@phase=restore", Injection("supervisor-kill", None, None, 0, None, phase="restore")),
        ("corrupt-shard@phase=save", Injection("corrupt-shard", None, None, 0, None, phase="save")),
    ],
)
def test_every_fault_is_read_and_written_back(text: str, wanted: Injection) -> None:
    assert parse(text) == wanted
    assert parse(wanted.text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "", "kill", "kill:rank=1", "kill@step=4", "kill:rank=1@step=0", "kill:rank=-1@step=3", "boom:rank=1@step=3",
        "exit:rank=1@step=3", "exit:rank=1,code=0@step=3", "exit:rank=1,code=256@step=3", "kill:node=1@step=3",
        "preempt:rank=1@step=3", "corrupt-shard:rank=1@step=3", "kill:rank=1,rank=2@step=3", "kill:rank=x@step=3",
        "kill:rank=node-1@step=3",
        "kill:rank=1@step=3 && reboot",
        "kill:rank=1@seconds=0", "kill:rank=1@seconds=1.5", "exit:rank=0,code=3@seconds=4", "kill:rank=1@minutes=3",
        "kill:rank=1@phase=9", "kill:rank=1@phase=", "kill:rank=1@step=save",
    ],
)  # fmt: skip
def test_what_is_no_injection_is_refused_with_the_syntax(text: str) -> None:
    with pytest.raises(InputError, match=r"kill:rank=1@step=40"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kill:rank=1@phase=evaluate", "unknown phase 'evaluate', there are start, restore, save, end"),
        ("exit:rank=0,code=3@phase=save", "say @step=S"),
    ],
)
def test_a_phase_that_cannot_be_struck_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse(text)


def test_a_restore_is_struck_where_there_is_one_and_the_step_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.LOCAL_DIR, str(tmp_path))
    faults = Faults([parse("kill:rank=0@phase=restore"), parse("kill:rank=0@step=40")], 1, 1, None, 5.0)
    log = RunLog(open_store(tmp_path.as_uri()), "run", "train")
    first = faults.for_node(0, restores=False)
    assert first is not None
    assert first["step"] == 40
    faults.said({**first, "phase": "", "step": 41}, log)
    second = faults.for_node(0, restores=True)
    assert second is not None
    assert second["phase"] == "restore"
    faults.after([], log, lambda: True)
    assert faults.left() == ["kill:rank=0@phase=restore"]
    faults.said({**second, "step": 20}, log)
    assert faults.left() == []


@pytest.mark.parametrize("raw", ["{", '"kill:rank=1@step=4"', "[1]", '["kill"]'])
def test_a_broken_environment_is_refused(raw: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.INJECT, raw)
    with pytest.raises(InputError, match="write FAULT"):
        injection.from_environment()


def test_an_injection_happens_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(env.LOCAL_DIR, str(tmp_path))
    monkeypatch.setenv(env.INJECT, json.dumps(["kill:rank=1@step=40", "kill:rank=1@step=80"]))
    first, second = injection.from_environment()
    assert not injection.has_fired(first)
    assert injection.mark_fired(first)
    assert not injection.mark_fired(first)
    assert injection.has_fired(first)
    assert not injection.has_fired(second)


def test_a_fault_is_told_at_the_step_it_came_after_and_not_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(env.LOCAL_DIR, str(tmp_path))
    faults = Faults([parse("kill:rank=1@step=20")], 1, 2, None, 5.0)
    store = open_store(tmp_path.as_uri())
    log = RunLog(store, "run", "train")
    told = faults.for_node(0, restores=False)
    assert told is not None
    faults.said({**told, "phase": "", "step": 23}, log)  # its rank prints no step: it goes by what the others report
    log.close()
    assert [event.fields["step"] for event in read_events(store, "run")] == [23]


def test_of_two_faults_by_time_the_earlier_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The later was given out first, and the second start was over before the earlier one's time had come."""
    monkeypatch.setenv(env.LOCAL_DIR, str(tmp_path))
    faults = Faults([parse("kill:rank=0@seconds=7"), parse("kill:rank=0@seconds=5")], 1, 1, None, 5.0)
    told = faults.for_node(0, restores=False)
    assert told is not None
    assert told["seconds"] == 5
    faults.said({**told, "step": 3}, RunLog(open_store(tmp_path.as_uri()), "run", "train"))
    assert faults.left() == ["kill:rank=0@seconds=7"]
