"""Wrong inputs to all verbs: links in a circle, folders for files, broken runs and stores, odd names and numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

RUN = 'name = "r"\nscript = "train.py"\n'
VERBS_OF_A_FILE = ("run", "compile", "submit", "chaos", "bench-comm")
VERBS_OF_A_RUN = ("status", "logs", "explain", "report", "explain-resume")
NO_RUN = "no run here"
"""A machine without runs is told so before the name is looked at."""
PLACES = {
    "loop.toml": "a link to itself",
    "folder.toml": "a folder",
    "nul.toml": "bytes that are no text",
    "long.toml": "a name that is no description",
    "gone/run.toml": "nothing",
}
CASES: dict[str, tuple[tuple[str, ...], str]] = {
    **{f"{verb} {place}": ((verb, place), place) for verb in VERBS_OF_A_FILE for place in PLACES},
    **{f"{verb} an unknown run": ((verb, "nope-1x"), NO_RUN) for verb in VERBS_OF_A_RUN},
    **{f"{verb} a name with a folder": ((verb, "../../etc"), "argosy: ") for verb in VERBS_OF_A_RUN},
    **{f"{verb} an unknown flag": ((verb, "good.toml", "--bogus=1"), "--bogus") for verb in ("run", "compile", "lint")},
    "init a link to itself": (("init", "loop.py"), "loop.py"),
    "init a folder": (("init", "folder.toml"), "folder.toml"),
    "init a device": (("init", "/dev/null", "-o", "x.toml"), "/dev/null"),
    "init into a folder": (("init", "train.py", "-o", "folder.toml"), "folder.toml"),
    "init below a file": (("init", "train.py", "-o", "train.py/run.toml"), "train.py"),
    "init into proc": (("init", "train.py", "-o", "/proc/run.toml"), "/proc/run.toml"),
    "init a folder above": (("init", "train.py", "--opaque", "../x"), "../x"),
    "init no folder": (("init", "train.py", "--opaque", " "), "--opaque"),
    "init ranks of nothing": (("init", "train.py", "-j", "0x0"), "0x0"),
    "init ranks in words": (("init", "train.py", "-j", "two"), "two"),
    "init ranks below zero": (("init", "train.py", "-j", "-1x2"), "-1x2"),
    "init a name in capitals": (("init", "train.py", "--name", "GPT"), "GPT"),
    "init a name of marks": (("init", "train.py", "--name", "é💥"), "é💥"),
    "init data of an unknown store": (("init", "train.py", "--dataset", "ftp://h/x"), "ftp://h/x"),
    "init data that are not there": (("init", "train.py", "--dataset", "nowhere"), "nowhere"),
    "run ranks of many": (("run", "good.toml", "-j", "99999999999x1"), "99999999999x1"),
    "run a fault without a kind": (("run", "good.toml", "--inject", "kill"), "kill"),
    "run a fault at no step": (("run", "good.toml", "--inject", "kill:rank=0@step=-5"), "-5"),
    "run a fault of a rank in words": (("run", "good.toml", "--inject", "kill:rank=one@step=5"), "one"),
    "run an event that is a folder": (("run", "good.toml", "--event", "folder.toml"), "folder.toml"),
    "run an event that is no JSON": (("run", "good.toml", "--event", "train.py"), "train.py"),
    "run as a name of marks": (("run", "good.toml", "--run-id", "ä/ö"), "ä/ö"),
    "run again what is not there": (("run", "good.toml", "--replay", "nope-1x"), NO_RUN),
    "chaos kills below zero": (("chaos", "good.toml", "--kills", "-3"), "-3"),
    "chaos kills in words": (("chaos", "good.toml", "--kills", "many"), "many"),
    "compile into a folder": (("compile", "good.toml", "-o", "folder.toml"), "folder.toml"),
    "compile below a file": (("compile", "good.toml", "-o", "train.py/x.yaml"), "train.py"),
    "explain-config a typo": (("explain-config", "gang.nnode"), "gang.nnode"),
    "explain-config an empty word": (("explain-config", "."), "."),
    "lint a link to itself": (("lint", "loop.toml"), "loop.toml"),
    "lint nothing": (("lint", "gone"), "gone"),
    "diagnose nothing": (("diagnose", "gone.log"), "gone.log"),
    "diagnose a link to itself": (("diagnose", "loop.toml"), "loop.toml"),
    "stage from an unknown store": (("stage", "gopher://x/y", "data"), "gopher://x/y"),
    "stage from an empty bucket name": (("stage", "s3://", "data"), "s3://"),
    "stage into a file": (("stage", "file:///etc", "train.py"), "train.py"),
    "stage a share of nothing": (("stage", "file:///etc", "data", "--share", "3/2"), "3/2"),
    "stage a share in words": (("stage", "file:///etc", "data", "--share", "a/b"), "a/b"),
    "checkpoint list of no run": (("checkpoint", "list", "nope-1x"), NO_RUN),
    "checkpoint list of a cluster's": (("checkpoint", "list", "nope-1x"), "STORE/NAME/runs/nope-1x"),
    "checkpoint get of no run": (("checkpoint", "get", "nope-1x", "out"), NO_RUN),
    "checkpoint verify of no run": (("checkpoint", "verify", "nope-1x"), NO_RUN),
    "import a link to itself": (("import", "loop.toml"), "loop.toml"),
    "import a folder of nothing": (("import", "gone"), "gone"),
    "watch nothing": (("watch", "gone/run.toml"), "gone/run.toml"),
    "stop an unknown run": (("stop", "nope-1x"), NO_RUN),
    "rm an unknown run": (("rm", "nope-1x"), NO_RUN),
    "a cluster without a kubeconfig": (
        ("status", "x", "-n", "team"),
        "kubeconfig = '/gone/config': No configuration found; set KUBECONFIG",
    ),
    "a verb of marks": (("ünïcode",), "ünïcode"),
}


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\ntorch.save({'step': 1}, 'out/a.pt')\n")
    (tmp_path / "good.toml").write_text(RUN)
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "nul.toml").write_bytes(b"\xff\xfe\x00name")
    (tmp_path / "long.toml").write_text("x" * 100_000)
    for name in ("loop.toml", "loop.py"):
        (tmp_path / name).symlink_to(name)
    return tmp_path


def test_there_are_sixty() -> None:
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_it_is_named_in_a_line(
    name: str, argosy: Callable[..., tuple[int, str, str]], laid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/gone/config")
    argv, named = CASES[name]
    code, out, err = argosy(*argv)
    assert "Traceback" not in out + err
    assert "mistake of ours" not in err
    assert code == 2, out + err
    assert named in err, err
