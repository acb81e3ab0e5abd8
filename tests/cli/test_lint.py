"""``argosy lint`` from outside: exit codes, formats, files that cannot be read, comments that excuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Argosy = Callable[..., tuple[int, str, str]]

GANG = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completionMode: Indexed
  completions: 2
  parallelism: 2
  backoffLimit: 0
  template:
    # what every node runs
    spec:
      restartPolicy: Never
      containers:
        - name: trainer
          image: registry.example/train:1.4.2
          command: [torchrun, --nnodes=2, --node-rank=$(JOB_COMPLETION_INDEX), --master-addr=train-0.train, train.py]
"""
FAULT = "REND001"


@pytest.fixture
def gang(tmp_path: Path) -> Path:
    file = tmp_path / "gang.yaml"
    file.write_text(GANG)
    return file


def only(argosy: Argosy, *args: object) -> tuple[int, list[dict[str, Any]]]:
    code, out, _ = argosy("lint", *map(str, args), "--select", f"{FAULT},LINT,YAML", "--format", "json")
    return code, json.loads(out)["findings"]


def test_a_finding_names_its_place_and_its_remedy(argosy: Argosy, gang: Path) -> None:
    code, found = only(argosy, gang)
    assert code == 1
    assert len(found) == 1
    assert {"rule", "level", "file", "line", "message", "remedy"} <= set(found[0])
    assert (found[0]["rule"], found[0]["level"], found[0]["file"], found[0]["line"]) == (FAULT, "error", str(gang), 11)


def test_the_text_shows_the_line_with_a_caret_under_the_place(argosy: Argosy, gang: Path) -> None:
    code, out, err = argosy("lint", str(gang), "--select", FAULT)
    lines = out.splitlines()
    assert code == 1
    assert lines[0].startswith(f"error[{FAULT}]: ")
    assert lines[1].strip() == f"--> {gang}:11:5"
    assert lines[3] == "11 |     spec:"
    assert lines[4] == "   |     ^^^^"
    assert "1 error in 1 file" in err


def test_github_gets_a_command_per_finding(argosy: Argosy, tmp_path: Path) -> None:
    file = tmp_path / "a,b%.yaml"
    file.write_text(GANG)
    code, out, _ = argosy("lint", str(file), "--select", FAULT, "--format", "github")
    assert code == 1
    assert out.startswith(f"::error file={tmp_path}/a%2Cb%25.yaml,line=11,col=5,endColumn=9,title={FAULT}::")
    assert len(out.splitlines()) == 1


def test_sarif_holds_the_rule_and_the_region(argosy: Argosy, gang: Path) -> None:
    _, out, _ = argosy("lint", str(gang), "--select", FAULT, "--format", "sarif")
    log = json.loads(out)
    run = log["runs"][0]
    result = run["results"][0]
    assert log["version"] == "2.1.0"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == FAULT
    assert result["level"] == "error"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 11, "startColumn": 5, "endColumn": 9}


@pytest.mark.parametrize(
    ("comment", "code", "rules"),
    [
        (f"# argosy: ignore[{FAULT}] the pods work alone", 0, []),
        ("# argosy: ignore[REND] the pods work alone", 0, []),
        (f"# argosy: ignore[{FAULT}]", 1, ["LINT001", FAULT]),
        ("# argosy: ignore because", 1, ["LINT001", FAULT]),
        ("# argosy: ignore[NOPE9] the pods work alone", 1, ["LINT002", FAULT]),
        ("# argosy: ignore[YAML002] the pods work alone", 1, [FAULT]),  # and a note
    ],
)
def test_a_comment_excuses_with_a_reason_only(
    argosy: Argosy, gang: Path, comment: str, code: int, rules: list[str]
) -> None:
    for at in ("# what every node runs", "    spec:\n      restartPolicy"):
        new = f"    {comment}\n    spec:\n      restartPolicy" if at.startswith(" ") else comment
        gang.write_text(GANG.replace(at, new))
        ended, found = only(argosy, gang)
        assert (ended, sorted(each["rule"] for each in found)) == (code, rules)
    gang.write_text(GANG.replace("    spec:\n      restart", f"    spec:  {comment}\n      restart"))
    ended, found = only(argosy, gang)
    assert (ended, sorted(each["rule"] for each in found)) == (code, rules)


def test_a_whole_file_can_be_excused(argosy: Argosy, gang: Path) -> None:
    gang.write_text(f"# argosy: ignore-file[{FAULT}] the pods work alone\n{GANG}")
    assert only(argosy, gang) == (0, [])


def test_levels_decide_what_is_shown_and_what_fails(argosy: Argosy, gang: Path) -> None:
    gang.write_text(
        GANG.replace("# what every node runs", f"# argosy: ignore[{FAULT}] alone").replace("Indexed", "NonIndexed")
    )
    code, found = only(argosy, gang, "--level", "note")
    assert (code, [each["rule"] for each in found]) == (0, ["LINT003"])
    assert only(argosy, gang) == (0, [])
    assert only(argosy, gang, "--fail-on", "note")[0] == 1


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a: [1", 1),
        (b"kind: Job\n\tx: 1\n", 2),
        (b"kind: Job\nx: \xff\n", 2),
        (b"x: {{ .Values.image }}\n", 1),
        (b"a: &a [*a]\n", 1),
        (
            b"a: &a [x,x]\nb: &b [*a,*a]\n"
            + b"".join(b"%c: &%c [*%c,*%c]\n" % (c, c, c - 1, c - 1) for c in range(99, 122)),
            1,
        ),
        (b"[" * 5000, 1),
    ],
)
def test_what_cannot_be_read_is_a_finding_and_hides_no_other_file(
    argosy: Argosy, gang: Path, data: bytes, line: int
) -> None:
    (gang.parent / "bad.yml").write_bytes(data)
    code, found = only(argosy, gang.parent)
    assert code == 1
    assert ("YAML001", line) in {(each["rule"], each["line"]) for each in found}
    assert FAULT in {each["rule"] for each in found}


@pytest.mark.parametrize(
    "text", ["", "---\n---\n", "null\n", "- 1\n- [x]\n", "kind: []\n", "kind: Job\nspec: 7\n", '{"kind": "Job"}']
)
def test_what_is_no_manifest_raises_nothing(argosy: Argosy, tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    code, _, err = argosy("lint", str(file))
    assert code in (0, 1)
    assert "mistake of ours" not in err
    assert ("nothing was looked at" in err) == ("spec" not in text)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file or folder"),
        ([], "no file"),
        (["-", "-"], "standard input"),
        (["x.yaml", "--select", "NCLL"], "--select NCLL: there is no such rule or family"),
        (["x.yaml", "--nccl", "new"], "--nccl new: is no version"),
        (["--explain", "NCCL999"], "there is no such rule"),
    ],
)
def test_wrong_use_is_exit_2(argosy: Argosy, args: list[str], told: str) -> None:
    code, _, err = argosy("lint", *args)
    assert code == 2
    assert told in err


def test_to_ignore_a_rule_that_has_gone_ends_no_check(argosy: Argosy, tmp_path: Path) -> None:
    """A CI's line outlives rules."""
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    code, _, err = argosy("lint", "--ignore", "MEM005,API999", str(tmp_path))
    assert code == 0
    assert "--ignore MEM005: there is no such rule now" in err
    assert argosy("lint", "--ignore", "MME005", str(tmp_path))[0] == 2


def test_an_empty_folder_is_wrong_use(argosy: Argosy, tmp_path: Path) -> None:
    code, _, err = argosy("lint", str(tmp_path))
    assert code == 2
    assert "no *.yaml" in err


def test_standard_input_and_hostile_names(tmp_path: Path) -> None:
    name = tmp_path / "a\x1b[31m\nb.yaml"
    name.write_text(GANG)
    run = [sys.executable, "-m", "argosy.workflows.cli.main", "lint"]
    piped = subprocess.run([*run, "-"], input=GANG.encode(), capture_output=True, timeout=60, check=False)
    assert b"--> <stdin>:11:5" in piped.stdout
    named = subprocess.run([*run, str(name)], capture_output=True, timeout=60, check=False)
    assert b"\x1b[31m" not in named.stdout


def test_lint_needs_neither_hera_nor_torch_nor_pydantic(gang: Path) -> None:
    code = (
        "import sys\nfrom argosy.workflows.cli.main import invoke\n"
        f"invoke(['lint', {str(gang)!r}])\n"
        "print([name for name in ('hera', 'torch', 'pydantic', 'numpy', 'boto3', 'rich') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip().endswith("[]")


def test_a_folder_is_searched_and_hidden_folders_are_not(argosy: Argosy, gang: Path) -> None:
    for folder in ("deep/er", ".git"):
        (gang.parent / folder).mkdir(parents=True)
        (gang.parent / folder / "x.json").write_text("{")
    (gang.parent / "notes.txt").write_text("{")
    _, found = only(argosy, gang.parent)
    assert {os.path.relpath(each["file"], gang.parent) for each in found} == {"gang.yaml", "deep/er/x.json"}


@pytest.mark.parametrize("words", [["--diff"], ["--fix", "--diff"]])
def test_a_diff_writes_nothing_and_does_not_say_that_it_mended(words: list[str], argosy: Argosy, gang: Path) -> None:
    text = GANG.replace("command:", "env: [{name: NCCL_DEBG, value: INFO}]\n          command:")
    gang.write_text(text)
    _, _, err = argosy("lint", str(gang), "--select", "NCCL008", *words)
    assert "NCCL_DEBUG" in err
    assert "\n1 would be mended; " in err
    assert gang.read_text() == text
    _, _, err = argosy("lint", str(gang), "--select", "NCCL008", "--fix")
    assert "\n1 mended; " in err
    assert gang.read_text() == text.replace("DEBG", "DEBUG")


def test_a_description_of_a_script_that_is_not_there(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('name = "gpt"\nscript = "nope.py"\n')
    code, out, _ = argosy("lint", "run.toml")
    assert (code, "error[RUN001]: script = 'nope.py': no such file" in out) == (1, True), out
    assert "run.toml:2:1" in out
    (tmp_path / "nope.py").touch()
    assert argosy("lint", "run.toml")[0] == 0
