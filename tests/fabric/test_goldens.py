"""What a fabric changes in a gang's very bytes. ARGOSY_REGENERATE=1 rewrites it; then read the diff of the diffs.

The bytes of a gang without a fabric are those of ``tests/goldens/*.yaml``: with them each of these is the whole text.
"""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

import pytest

from argosy.workflows.fabric.catalogue import profile_names
from argosy.workflows.gang.documents import gang_yaml
from tests.fabric.cases import GANGS, bare, case

FOLDER = Path(__file__).resolve().parents[1] / "goldens" / "fabric"


def test_every_profile_has_a_case_and_every_golden_a_case() -> None:
    assert {gang["fabric"] for gang in GANGS.values()} == set(profile_names())
    if os.environ.get("ARGOSY_REGENERATE") != "1":
        assert {path.stem for path in FOLDER.glob("*.diff")} == set(GANGS)


@pytest.mark.parametrize("name", GANGS)
def test_changes_the_committed_bytes(name: str) -> None:
    without, text = (gang_yaml(run).splitlines(keepends=True) for run in (bare(name), case(name)))
    changed = "".join(list(unified_diff(without, text, n=1))[2:])
    path = FOLDER / f"{name}.diff"
    if os.environ.get("ARGOSY_REGENERATE") == "1":
        path.write_text(changed)
    assert changed == path.read_text(), "read the difference; ARGOSY_REGENERATE=1 if it is meant"
