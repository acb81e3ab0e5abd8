"""docs/fabrics.md names every profile, parameter, section and source."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from argosy.workflows.fabric.catalogue import known_profile, profile_names
from argosy.workflows.fabric.profile import SECTIONS
from tests.fabric.cases import env_of, run_on

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fabrics.md"


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_has_its_row(name: str) -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{name}` |")]
    for parameter in known_profile(name).parameters:
        assert f"**{parameter.name}**" in row if parameter.required else parameter.name in row


def test_every_source_is_listed_with_its_day() -> None:
    text = PAGE.read_text()
    for name in profile_names():
        for source in known_profile(name).sources.values():
            (row,) = [line for line in text.splitlines() if line.startswith(f"| <{source.url}> | {source.date} |")]
            assert name in row


def test_the_form_is_described() -> None:
    text = PAGE.read_text()
    for section in (*SECTIONS, "parameters"):
        assert f"`[[{section}]]`" in text


def test_the_example_of_ones_own_works() -> None:
    blocks = [block.partition("```")[0] for block in PAGE.read_text().split("```toml\n")[1:]]
    run = run_on({"fabric_profile": tomllib.loads(blocks[1])})
    assert env_of(run)["NCCL_IB_SL"] == "3"
    assert env_of(run_on(tomllib.loads(blocks[0])["gang"] | {"nnodes": 2}))["NCCL_NET"] == "Libfabric"
