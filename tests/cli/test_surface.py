"""The command line's surface is public API: verbs, flags and JSON keys change here or nowhere."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import pytest

from argosy.workflows.cli.main import VERBS, cli

Argosy = Callable[..., tuple[int, str, str]]

PLACE = ["--kubeconfig", "--context", "-n --namespace"]
SURFACE = {
    "init": [
        "script",
        "args",
        "-o --output",
        "--name",
        "--opaque",
        "--include",
        "--resume-arg",
        "--dataset",
        "-j --ranks",
        "--force",
    ],
    "lint": [
        *["paths", "--format", "--select", "--ignore", "--level", "--fail-on", "--nccl", "--fix", "--diff", "--list"],
        "--explain",
    ],
    "import": ["files", "-o --output", "--workload", "--script", "--module", "--explain", "--force"],
    "compile": ["file", "-o --output", "--template", "--trigger", "--push", "-j --ranks", "--state-dir"],
    "run": [
        *[
            "file",
            "-j --ranks",
            "-p --parameter",
            "--event",
            "--inject",
            "--replay",
            "--name",
            "--run-id",
            "--once",
            "--force",
        ],
        *["--resume-from", "--new", "--templates", "-f --follow", "--state-dir"],
    ],
    "replay": ["run_id", "--file", "--state-dir"],
    "chaos": ["file", "--kills", "--kind", "--seed", "-j --ranks", "--state-dir"],
    "bench-comm": [
        "file",
        "--op",
        "--min-bytes",
        "--max-bytes",
        "--factor",
        "--seconds",
        "-o --output",
        "-j --ranks",
        "--state-dir",
    ],
    "watch": ["file", "--once", "--listen", *PLACE, "--state-dir"],
    "events": ["words", "--last", "--state-dir"],
    "install": [
        *["--apply", "--service-account", "--create-namespace", "--claim", "--trigger", "--storage-class", *PLACE],
    ],
    "doctor": ["file", *PLACE],
    "submit": ["file", "-p --parameter", "--template", "--detach", *PLACE],
    "supervise": ["file", "--max-restarts", "--placement-seconds", "--kubeconfig", "--context", "-n --namespace"],
    "stage": [
        *["uri", "folder", "--dry-run", "--verify", "--digest", "--include", "--exclude", "--share", "--listing"],
        *["-q --quiet", "--endpoint-url", "--region", "--profile", "--anonymous", "--requester-pays", "--ca-bundle"],
    ],
    "ls": ["store", "--limit", *PLACE, "--state-dir"],
    "status": ["run_id", *PLACE, "--state-dir"],
    "top": ["run_id", *PLACE, "--state-dir"],
    "logs": ["run_id", "-f --follow", "--rank", "--pod", "--tail", *PLACE, "--state-dir"],
    "explain": ["run_id", "--bundle", *PLACE, "--state-dir"],
    "diagnose": ["paths"],
    "report": ["run_id", "-o --output", *PLACE, "--state-dir"],
    "open": ["run_id", *PLACE, "--state-dir"],
    "stop": ["run_id", *PLACE, "--state-dir"],
    "rm": ["runs", "--checkpoints", *PLACE, "--state-dir"],
    "checkpoint list": ["run", "--all", "--state-dir"],
    "checkpoint get": ["named", "into", "--state-dir"],
    "checkpoint verify": ["run", "checkpoint", "--state-dir"],
    "checkpoint pin": ["run", "checkpoint", "--reason", "--state-dir"],
    "checkpoint unpin": ["run", "checkpoint", "--state-dir"],
    "checkpoint prune": ["run", "--keep", "--dry-run", "--state-dir"],
    "explain-resume": ["run", "--state-dir"],
    "explain-config": ["field"],
}
HEAVY = ("hera", "pydantic", "rich", "torch", "boto3", "botocore", "yaml", "jinja2", "lark", "numpy", "obstore")
HEAVY += ("kubernetes", "urllib3")


def verb(name: str) -> click.Command:
    found: click.Command | None = cli
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert isinstance(found, click.Command)
    return found


def test_the_verbs_are_frozen() -> None:
    assert list(VERBS) == list(dict.fromkeys(name.split()[0] for name in SURFACE))


@pytest.mark.parametrize("name", SURFACE)
def test_the_flags_of_a_verb_are_frozen(name: str) -> None:
    shown = [
        " ".join(parameter.opts) if isinstance(parameter, click.Option) else parameter.name
        for parameter in verb(name).params
    ]
    assert sorted(map(str, shown)) == sorted([*SURFACE[name], "--json"])


@pytest.mark.parametrize("name", SURFACE)
def test_every_verb_has_help_with_an_example(name: str, argosy: Argosy) -> None:
    code, out, err = argosy(*name.split(), "--help")
    assert (code, err) == (0, "")
    assert "Example:" in out
    assert f"argosy {name}" in out.split("Example:")[1]
    undescribed = [
        parameter.name for parameter in verb(name).params if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert not undescribed


def test_the_table_of_verbs_agrees_with_the_verbs_own_words(argosy: Argosy) -> None:
    _, out, _ = argosy("--help")
    for name, (_, line) in VERBS.items():
        assert f"{name} " in out
        assert len(line) <= 80
        own = verb(name).get_short_help_str(200).split(":")[0].rstrip(".")
        assert own.split()[0] == line.split()[0]


def test_help_imports_little_and_nothing_heavy() -> None:
    """How long it takes is a matter of benchmarks; what it may load is not."""
    probe = (
        "import sys, json\n"
        "from argosy.workflows.cli import main\n"
        "code = main.invoke(['--help'])\n"
        f"print(json.dumps([[n for n in {HEAVY!r} if n in sys.modules], len(sys.modules)]), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    heavy, count = json.loads(ended.stderr)
    assert heavy == []
    assert count <= 200


def test_a_reading_verb_starts_without_the_compiler() -> None:
    """One after the other in a process: what none of them may load no other has loaded before."""
    verbs = ["status", "top", "logs", "explain", "checkpoint list", "checkpoint verify", "explain-resume"]
    probe = (
        "import sys, json\n"
        "from argosy.workflows.cli import main\n"
        "heavy, loaded = ('hera', 'pydantic', 'torch', 'boto3', 'lark', 'rich', 'kubernetes'), {}\n"
        f"for name in {verbs!r}:\n"
        "    code = main.invoke([*name.split(), '--help'])\n"
        "    loaded[name] = [code, *(n for n in heavy if n in sys.modules)]\n"
        "print(json.dumps(loaded), file=sys.stderr)\n"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert json.loads(ended.stderr) == {name: [0] for name in verbs}


def test_the_version_is_the_packages_own(argosy: Argosy) -> None:
    from importlib.metadata import version

    assert argosy("--version") == (0, f"argosy {version('argosy')}\n", "")


def test_no_verb_shows_the_help(argosy: Argosy) -> None:
    code, out, _ = argosy()
    assert code == 0
    assert "Verbs:" in out


def test_the_exit_codes_stand_in_the_help(argosy: Argosy) -> None:
    _, out, _ = argosy("--help")
    text = " ".join(out.split())
    for said in (
        "0 done",
        "1 the run failed",
        "2 wrong input",
        "3 trained but refused",
        "interrupted: 129",
        "130",
        "143",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "run.toml", "--inject"], "Option '--inject' requires an argument; see argosy run --help"),
        (
            ["run", "run.toml", "--templates", "absent.yaml"],
            "Invalid value for '--templates': File 'absent.yaml' does not exist; see argosy run --help",
        ),
        (["top", "--once"], "No such option '--once'; see argosy top --help"),
        (["run", "run.toml", "--injct"], "No such option '--injct'. Did you mean '--inject'?; see argosy run --help"),
    ],
)
def test_a_wrong_option_is_told_where_it_is_explained(words: list[str], said: str, argosy: Argosy) -> None:
    code, _, err = argosy(*words)
    assert (code, err.strip()) == (2, f"argosy: {said}")


def test_a_closed_pipe_is_no_error() -> None:
    reader = subprocess.Popen(["head", "-c", "1"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert reader.stdin is not None
    writer = subprocess.run(
        [sys.executable, "-c", "from argosy.workflows.cli.main import main; main(['explain-config'])"],
        stdout=reader.stdin,
        stderr=subprocess.PIPE,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    reader.stdin.close()
    reader.wait()
    assert b"Traceback" not in writer.stderr
    assert b"mistake" not in writer.stderr
    assert writer.returncode == 0


CALL = [sys.executable, "-m", "argosy.workflows.cli.main"]
SAYS = (
    "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {generateName: s-}\nspec:\n  entrypoint: main\n"
    "  templates:\n  - {name: main, container: {image: x, command: [echo, said]}}\n"
)


def test_a_run_whose_output_nobody_reads_goes_on_and_says_how_it_ended(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(SAYS)
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*CALL, "run", "w.yaml"], cwd=tmp_path, stdout=writing, stderr=writing, check=False)
    (tmp_path / "f.yaml").write_text(SAYS.replace("[echo, said]", '["false"]'))
    failed = subprocess.run([*CALL, "run", "f.yaml"], cwd=tmp_path, stdout=writing, stderr=writing, check=False)
    os.close(writing)
    states = [json.loads(path.read_text())["phase"] for path in tmp_path.glob(".argosy/runs/*/state.json")]
    assert sorted(states) == ["Failed", "Succeeded"]
    assert (ended.returncode, failed.returncode) == (0, 1)


def test_a_run_that_has_ended_is_not_said_to_go_on(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(SAYS)
    assert argosy("run", "w.yaml", "--name", "w")[0] == 0
    code, _, err = argosy("run", "w.yaml", "--name", "w")
    assert (code, "workflow 'w': has run and ended Succeeded" in err, "going on" in err) == (2, True, False)


def test_a_full_disk_behind_the_output_is_said_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([*CALL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("argosy: disk_full: ")
    assert ended.stderr.count("\n") == 1
    assert "mistake" not in ended.stderr


def test_a_full_disk_behind_the_error_output_changes_no_exit_code() -> None:
    with open("/dev/full", "w") as full:
        refused = subprocess.run([*CALL, "run", "absent.toml"], stdout=full, stderr=full, check=False)
        ended = subprocess.run([*CALL, "--help"], stdout=full, stderr=full, check=False)
    assert (refused.returncode, ended.returncode) == (2, 1)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_error_and_no_file_takes_its_number(closed: str, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(SAYS)
    command = f"exec {shlex.join([*CALL, 'run', 'w.yaml'])} {closed}"
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "mistake" not in ended.stderr
    assert [log.read_text() for log in tmp_path.glob(".argosy/runs/*/nodes/*/pods/*/log")] == ["said\n"]
    states = [json.loads(path.read_text())["phase"] for path in tmp_path.glob(".argosy/runs/*/state.json")]
    assert states == ["Succeeded"]


@pytest.mark.parametrize("reversed_one", ["1</dev/null", "2</dev/null", "0>/dev/null"])
def test_a_stream_that_is_opened_the_wrong_way_round_is_as_good_as_closed(reversed_one: str, tmp_path: Path) -> None:
    command = f"exec {shlex.join([*CALL, 'ls'])} {reversed_one}"
    ended = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_names_are_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    folder = tmp_path / "für"
    folder.mkdir()
    (folder / "w.yaml").write_text(SAYS)
    latin = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    call = partial(subprocess.run, cwd=folder, env={**os.environ, **latin}, capture_output=True, check=False)
    ended = call([*CALL, "run", "w.yaml"])
    assert ended.returncode == 0, ended.stderr
    assert f"report: {folder}/.argosy/runs/".encode() in ended.stdout


@pytest.mark.parametrize(
    "address",
    ["host:9000", "http://host:abc", "https://host:99999", "http://[::1", "http:// host:9000", "http://host/a b"],
)
def test_an_address_that_is_none_is_wrong_input(address: str, argosy: Argosy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    code, _, err = argosy("checkpoint", "list", "s3://bucket/gpt/runs/gpt-abc12")
    assert (code, err) == (
        *(2, f"argosy: s3_access: AWS_ENDPOINT_URL = {address!r}: write http://host:port or https://host\n"),
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "no certificates in it"),
        (b"x\n", "no certificates in it"),
        ("", "folder"),
    ],
)
@pytest.mark.parametrize("verb", [["checkpoint", "list", "s3://bucket/gpt/runs/gpt-abc12"], ["ls", "s3://bucket/gpt"]])
def test_a_file_of_certificates_that_has_none_is_wrong_input(
    verb: list[str],
    content: bytes | str | None,
    why: str,
    argosy: Argosy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bundle = tmp_path / "ca.pem"
    if isinstance(content, bytes):
        bundle.write_bytes(content)
    elif content is not None:
        bundle.mkdir()
        why = "Is a directory"
    monkeypatch.setenv("AWS_CA_BUNDLE", str(bundle))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    code, _, err = argosy(*verb)
    remedy = "name a PEM file of the authorities to trust, or unset it for those of the system"
    assert code == 2
    assert err.startswith(f"argosy: s3_access: AWS_CA_BUNDLE = {str(bundle)!r}: {why}; {remedy}"), err


def test_a_folder_in_place_of_a_file_is_one_plain_sentence(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "run.toml").mkdir()
    for name in ("run", "compile"):
        code, _, err = argosy(name, "run.toml")
        assert code == 2
        assert err == "argosy: FILE run.toml: is a folder; name the file in it, for example run.toml/run.toml\n"
