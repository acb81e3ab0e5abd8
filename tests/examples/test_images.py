"""What can be known of the Dockerfiles without a container builder; they are not built here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ["step", "trainer"]


def instructions(name: str) -> list[str]:
    text = (ROOT / "images" / f"{name}.Dockerfile").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [line for line in lines.splitlines() if line.strip()]


def copied(name: str) -> list[str]:
    lines = [line.split() for line in instructions(name) if line.startswith("COPY ") and "--from" not in line]
    return [source for words in lines for source in words[1:-1]]


@pytest.mark.parametrize("name", NAMES)
def test_the_base_can_be_pinned_and_is_the_only_one(name: str) -> None:
    lines = instructions(name)
    assert re.fullmatch(r"ARG BASE=[\w./-]+:[\w.-]+", lines[0])
    assert "latest" not in lines[0]
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${BASE}"}


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_as_a_number_and_without_entry_point(name: str) -> None:
    lines = instructions(name)
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 1000:1000"
    assert not [line for line in lines if line.startswith(("ENTRYPOINT", "CMD"))]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_copied_exists_and_is_not_ignored(name: str) -> None:
    ignore = (ROOT / "images" / f"{name}.Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    for source in copied(name):
        assert (ROOT / source).exists()
        assert source in allowed or f"{Path(source).parent}/*{Path(source).suffix}" in allowed
    assert {"argosy", "steps", "workflows", "pyproject.toml"} <= set(copied(name))  # the links and their targets


@pytest.mark.parametrize("name", NAMES)
def test_third_parties_are_installed_with_hashes(name: str) -> None:
    installs = [part for line in instructions(name) for part in line.split(";") if "pip install" in part]
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--no-deps" in installs[1]
    assert "argosy-*.whl" in installs[1]


def test_the_step_image_has_no_torch_and_no_hera() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements/step.txt").read_text(), re.MULTILINE))
    assert {"obstore", "boto3", "pyyaml"} <= locked
    # pydantic comes with the Kubernetes client; none of our steps imports it (.importlinter).
    assert not locked & {"torch", "hera", "click", "rich"}
