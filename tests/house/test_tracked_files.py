"""What is committed names no package host and no path of one machine, and holds no binaries."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Written so that this file does not match itself.
FORBIDDEN = re.compile(
    rb"pyp[i]\.org|python[h]osted|proxy\.gol[a]ng|sum\.gol[a]ng|registry\.npm[j]s|crate[s]\.io|deb\.deb[i]an\.org"
    rb"|maven\.apach[e]|/wor[k]/|/far[m]/|/roo[t]/"
)


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [ROOT / name.decode() for name in listing.split(b"\0") if name]


def test_no_host_and_no_machine_path() -> None:
    hits = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        if path.is_file()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if FORBIDDEN.search(line)
    ]
    assert hits == []


def test_no_binaries() -> None:
    assert [path.name for path in tracked() if path.is_file() and b"\0" in path.read_bytes()[:4096]] == []
