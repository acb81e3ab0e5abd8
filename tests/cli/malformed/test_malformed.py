"""A wrong input is answered by one line that names it and a remedy, and by exit code 2."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import starts


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"argosy_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


corpus = load("corpus")
CASES = [
    *corpus.CASES,
    *(corpus.toml(*case) for case in load("corpus_toml").CASES),
    *corpus.further(load("corpus_further")),
]

REMEDY = re.compile(
    r"\b(write|use|name|remove|add|see|did you mean|correct|give|save|start one|choose|raise|lower|leave|hand it over|"
    r"compile one|put it|overwrite|check|known|the \w+ are|test it|what exists|put|ways on|it has|ask for|"
    r"copy|there are|try|the verbs are|pass|run with|spell|supported|set|wanted|needed|needs)\b",
    re.IGNORECASE,
)
LONGEST_ANSWER = 1500


def lay_out(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def judge(code: int, out: str, err: str, names: tuple[str, ...]) -> None:
    assert code == 2, err or out
    assert out == ""
    assert "Traceback" not in err
    assert err.startswith("argosy: ")
    assert err.count("\n") == 1, err
    assert len(err) <= LONGEST_ANSWER, err[:300]
    missing = [name for name in names if name not in err]
    assert not missing, f"{missing} not named in: {err}"
    assert REMEDY.search(err), f"no remedy in: {err}"


def test_the_corpus_is_large_and_has_no_name_twice() -> None:
    assert len(CASES) >= 100
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_wrong_input_is_named_with_a_remedy(
    case: Any, argosy: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")  # no nvidia-smi, whatever this machine has
    lay_out(tmp_path, case.files)
    judge(*argosy(*case.argv), case.names)


SAMPLE = (
    "toml-deep",
    "toml-typo",
    "yaml-bomb",
    "yaml-deep",
    "event-deep",
    "flag-near-verb",
    "init-deep",
    "state-no-json",
)


@pytest.mark.parametrize("case", [case for case in CASES if case.id in SAMPLE], ids=lambda case: case.id)
def test_the_real_command_says_the_same(case: Any, tmp_path: Path) -> None:
    lay_out(tmp_path, case.files)
    ended = starts.argosy(tmp_path, *case.argv, env={**os.environ, "PYTHONFAULTHANDLER": "0"})
    judge(ended.returncode, ended.stdout, ended.stderr, case.names)
