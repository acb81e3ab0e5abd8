"""The gang on each fabric and the very bytes it compiles to. ARGOSY_REGENERATE=1 rewrites them; then read the diff."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from argosy.workflows.fabric.catalogue import profile_names
from argosy.workflows.gang.documents import gang_yaml
from tests.fabric.cases import GANGS, case

FOLDER = Path(__file__).resolve().parents[1] / "goldens" / "fabric"


def test_every_profile_has_a_case_and_every_golden_a_case() -> None:
    assert {gang["fabric"] for gang in GANGS.values()} == set(profile_names())
    if os.environ.get("ARGOSY_REGENERATE") != "1":
        assert {path.stem for path in FOLDER.glob("*.yaml")} == set(GANGS)


@pytest.mark.parametrize("name", GANGS)
def test_renders_the_committed_bytes(name: str) -> None:
    text = gang_yaml(case(name))
    path = FOLDER / f"{name}.yaml"
    if os.environ.get("ARGOSY_REGENERATE") == "1":
        path.write_text(text)
    assert text == path.read_text(), "read the difference; ARGOSY_REGENERATE=1 if it is meant"
