"""The page of what the engine supports is made from the engine, and the engine knows no field that Argo has not."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "engine_support.py"))


def test_the_page_is_fresh() -> None:
    assert (ROOT / "docs" / "engine-support.md").read_text() == SCRIPT["page"](), "run scripts/engine_support.py"


@pytest.mark.parametrize(("title", "type_name", "fields"), SCRIPT["ROWS"], ids=lambda value: str(value)[:30])
def test_every_field_is_argos(title: str, type_name: str, fields: dict[str, object]) -> None:
    assert set(fields) <= set(SCRIPT["fields_of"](type_name)), title
