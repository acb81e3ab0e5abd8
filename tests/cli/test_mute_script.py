"""A script whose steps nobody can read shows by its saves how far it came."""

from __future__ import annotations

import json
from pathlib import Path

from tests.starts import argosy

SCRIPT = """
import json, sys, time
from pathlib import Path
state, out = Path(sys.argv[1]), Path("out")
out.mkdir(exist_ok=True)
if (out / "checkpoint-20.json").exists():
    (out / "checkpoint-40.json").write_text(json.dumps({"step": 40}))
else:
    (out / "checkpoint-20.json").write_text(json.dumps({"step": 20}))
    while not list(state.rglob("log/0000000002.json")):
        time.sleep(0.1)
    raise KeyError("sample_0031")
"""
COUNTED = """
import json, sys, time
from pathlib import Path
state, out = Path(sys.argv[1]), Path("out")
out.mkdir(exist_ok=True)
last = out / "checkpoint-last.json"
for turn in range(json.loads(last.read_text())["turn"] + 1 if last.exists() else 1, 4):
    last.write_text(json.dumps({"turn": turn}))
    while not list(state.rglob(f"log/000000000{turn + 1}.json")):
        time.sleep(0.1)
    if turn == 2:
        time.sleep(60)
"""
BROKEN = """
import os, sys
from pathlib import Path
state, last = Path(sys.argv[1]), Path("out/checkpoint-last.json")
last.parent.mkdir(exist_ok=True)
saved = len(list(state.rglob("log/*.json")))
last.write_text('{"noise": "%s"}' % os.urandom(8).hex())
while len(list(state.rglob("log/*.json"))) == saved:
    pass
raise KeyError("sample_0031")
"""
FRAME = """\
    print("Epoch 3/3 ━━━━━━━━━━━━━━━━ 10/10 0:00:01 • 0:00:00 9.73it/s train_loss: 0.020")
"""
"""What Lightning prints where rich is installed and no terminal is, at its end."""
TAKEN_OVER = """
    while sum('"kind":"supervisor"' in each.read_text().replace(" ", "") for each in state.rglob("ledger/*.json")) < 2:
        time.sleep(0.1)
    raise KeyError"""
RUN = """
name = "mute"
script = "train.py"
args = [{state}]
[gang]
nnodes = 1
launcher = "plain"
[checkpoint]
mode = "opaque"
path = "out"
include = ["checkpoint-*.json"]
"""


def ran(folder: Path, script: str, *options: str) -> tuple[int, str]:
    """Its exit code, and all that was printed."""
    (folder / "train.py").write_text(script)
    (folder / "run.toml").write_text(RUN.replace("{state}", json.dumps(str(folder / ".argosy"))))
    done = argosy(folder, "run", "run.toml", *options)
    return done.returncode, done.stdout + done.stderr


def test_an_exception_after_a_save_is_not_one_before_the_first_step(tmp_path: Path) -> None:
    code, told = ran(tmp_path, SCRIPT)
    assert code == 0, told
    assert "attempt 1: ended at step 20: user_exception" in told
    assert "goodput: not known" in told
    explained = argosy(tmp_path, "explain").stdout
    assert "Attempt 1 began from scratch and reached step 20." in explained
    assert "Attempt 2 began from step 20" in explained
    assert "and reached step 40. Every rank ended well" in explained
    listed = argosy(tmp_path, "ls", "--json").stdout
    assert [(each["step"], each["goodput"]) for each in json.loads(listed)["runs"]] == [(40, None)]


def test_who_takes_a_run_over_knows_what_was_saved_before(tmp_path: Path) -> None:
    code, told = ran(
        tmp_path, SCRIPT.replace("\n    raise KeyError", TAKEN_OVER), "--inject", "supervisor-kill@seconds=5"
    )
    assert "injected: supervisor-kill" in told
    assert "attempt 1: ended at step 20: user_exception" in told
    assert code == 0, told


def test_a_fault_goes_by_the_saves_where_no_step_is_told_in_time(tmp_path: Path) -> None:
    script = SCRIPT.replace('    (out / "checkpoint-40', FRAME + '    (out / "checkpoint-40')
    code, told = ran(
        tmp_path, script.replace('raise KeyError("sample_0031")', "time.sleep(60)"), "--inject", "kill:rank=0@step=20"
    )
    assert code == 0, told
    assert "injected: kill (rank 0, after step 20)" in told
    assert "attempt 2: from step 20" in told
    assert "training: step 40 of 40, loss 0.02" in told
    assert "goodput: not known: one step was read" in told


def test_a_fault_goes_by_counted_saves_where_neither_output_nor_files_tell_a_step(tmp_path: Path) -> None:
    code, told = ran(tmp_path, COUNTED, "--inject", "kill:rank=0@step=2")
    assert code == 0, told
    assert "injected: kill (rank 0, after step 2)" in told
    assert "attempt 1: ended at step 2: unknown: rank 0" in told
    assert "attempt 2: from step 2" in told


def test_a_bug_of_a_script_whose_steps_nobody_reads_stops_at_its_third_time(tmp_path: Path) -> None:
    code, told = ran(tmp_path, BROKEN)
    assert code == 1, told
    assert "attempt 3: ended" in told
    assert "attempt 4" not in told
    explained = argosy(tmp_path, "explain").stdout
    assert "the same user_exception 3 times in a row, each after 1 save" in explained
    assert "No step was read on 1 node" in explained
