"""``argosy lint`` of one manifest and of a thousand, beside reading the same files with the YAML library alone."""

from __future__ import annotations

import sys
from itertools import cycle, islice
from pathlib import Path

from argosy.workflows.lint.page import page
from argosy.workflows.lint.rule import RULES
from argosy.workflows.lint.rules import load
from benchmarks.paired import Comparison, Contender, compare

ARGOSY = str(Path(sys.executable).parent / "argosy")
_READ = (
    "import sys, pathlib, yaml\n"
    "for file in pathlib.Path(sys.argv[1]).iterdir(): list(yaml.load_all(file.read_bytes(), Loader=yaml.CSafeLoader))"
)


def manifests(folder: Path, count: int) -> Path:
    """``count`` files: the good and the bad examples of all rules' pages, one after the other."""
    load()
    texts = [
        example.text
        for name in sorted(RULES)
        if not name.startswith("YAML")  # what cannot be parsed costs nothing
        for example in (*page(name).bad, *page(name).good)
        if example.language == "yaml"
    ]
    folder.mkdir()
    for number, text in enumerate(islice(cycle(texts), count)):
        (folder / f"{number:04d}.yaml").write_text(text)
    return folder


def lint_one(scratch: Path, rounds: int) -> Comparison:
    """One file; the bar of 0.25 s is absolute."""
    folder = manifests(scratch / "manifests", 400)
    largest = max(folder.iterdir(), key=lambda file: file.stat().st_size)
    return compare(
        f"argosy lint of one file ({largest.stat().st_size} bytes; bar 0.25 s)",
        [
            Contender("argosy lint", [ARGOSY, "lint", str(largest)], scratch, codes=(0, 1)),
            Contender("python -c pass", [sys.executable, "-c", "pass"], scratch),
        ],
        rounds=rounds,
    )


def lint_thousand(scratch: Path, rounds: int) -> Comparison:
    """A thousand files; the bar of 6 s is absolute."""
    folder = manifests(scratch / "manifests", 1000)
    return compare(
        "argosy lint of 1,000 files (bar 6 s)",
        [
            Contender("argosy lint", [ARGOSY, "lint", "--format", "json", str(folder)], scratch, codes=(0, 1)),
            Contender("reading the YAML", [sys.executable, "-c", _READ, str(folder)], scratch),
        ],
        rounds=rounds,
    )
