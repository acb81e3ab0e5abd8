"""Artifacts with a key of their own: packed and unpacked as Argo's executor does it, in a folder and in an S3."""

# ruff: noqa: E501  (YAML reads better in one line)

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import boto3
import pytest

from argosy.steps.contract.errors import InputError
from argosy.workflows.engine.api import RunOptions, check, run
from tests.engine.conftest import Outcome, workflow
from tests.s3.moto import moto

MAKE = "- {name: make, outputs: {artifacts: [{name: f, path: /tmp/f, %s}]}, container: {image: i, command: [sh, -c, '%s']}}"
USE = (
    "- {name: use, inputs: {artifacts: [{name: g, path: /tmp/g, %s}]}, container: {image: i, command: [sh, -c, '%s']}}"
)
MAIN = "- {name: main, steps: [[{name: a, template: make}], [{name: b, template: use}]]}"
FILE, FOLDER = "echo body > /tmp/f", "mkdir -p /tmp/f/in; echo one > /tmp/f/a; echo two > /tmp/f/in/b"
READS_FILE, READS_FOLDER = "test $(cat /tmp/g) = body", "test $(cat /tmp/g/a)$(cat /tmp/g/in/b) = onetwo"


@pytest.fixture(scope="module")
def s3() -> Iterator[tuple[str, Any]]:
    keys = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    with moto() as endpoint:
        client = boto3.client("s3", endpoint_url=endpoint, **keys)
        client.create_bucket(Bucket="models")
        yield endpoint.removeprefix("http://"), client


def _location(endpoint: str, key: str) -> str:
    secrets = "accessKeySecret: {name: store, key: id}, secretKeySecret: {name: store, key: secret}"
    return f"s3: {{endpoint: '{endpoint}', bucket: models, insecure: true, {secrets}, key: '{key}'}}"


def _run(templates: list[str], folder: Path) -> Outcome:
    return Outcome(run(workflow("\n".join([*templates, MAIN])), RunOptions(state_dir=folder, workflow_name="wf")))


@pytest.mark.parametrize("archive", ["", "archive: {none: {}}, ", "archive: {zip: {}}, "])
@pytest.mark.parametrize(("made", "read"), [(FILE, READS_FILE), (FOLDER, READS_FOLDER)])
@pytest.mark.parametrize("where", ["folder", "s3"])
def test_what_a_step_stores_another_reads(
    where: str, made: str, read: str, archive: str, s3: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOSY_SECRET_STORE_ID", "id")
    monkeypatch.setenv("ARGOSY_SECRET_STORE_SECRET", "secret")
    key = f"{{{{workflow.name}}}}/{tmp_path.name}"
    location = archive + (_location(s3[0], key) if where == "s3" else f"s3: {{key: '{key}'}}")
    found = _run([MAKE % (location, made), USE % (location, read)], tmp_path)
    assert found.phase == "Succeeded", (found["[1].b"].message, found.log("[1].b"))


def test_a_tarball_is_known_by_its_content(
    s3: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARGOSY_SECRET_STORE_ID", "id")
    monkeypatch.setenv("ARGOSY_SECRET_STORE_SECRET", "secret")
    data = BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as tar:
        for name, text in (("a", b"one"), ("in/b", b"two")):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, BytesIO(text))
    s3[1].put_object(Bucket="models", Key="given", Body=data.getvalue())
    found = _run([MAKE % ("optional: true", "true"), USE % (_location(s3[0], "given"), READS_FOLDER)], tmp_path)
    assert found.phase == "Succeeded", found["[1].b"].message


def test_a_damaged_archive_is_said(s3: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_SECRET_STORE_ID", "id")
    monkeypatch.setenv("ARGOSY_SECRET_STORE_SECRET", "secret")
    s3[1].put_object(Bucket="models", Key="torn", Body=b"\x1f\x8b torn")
    use = USE % ("archive: {tar: {}}, " + _location(s3[0], "torn"), "true")
    found = _run([MAKE % ("optional: true", "true"), use], tmp_path)
    assert (found["[1].b"].phase, "artifact g failed to load: cannot be unpacked" in found["[1].b"].message) == (
        "Error",
        True,
    )


def test_an_unreachable_store_fails_the_pod_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_SECRET_STORE_ID", "id")
    monkeypatch.setenv("ARGOSY_SECRET_STORE_SECRET", "secret")
    use = USE % (_location("127.0.0.1:1", "k"), "true")
    found = _run([MAKE % ("optional: true", "true"), use], tmp_path)
    assert found["[1].b"].phase == "Error"
    assert found["[1].b"].message.startswith("init: Error (exit code 64): artifact g failed to load: ")


def test_a_key_cannot_leave_the_repository(tmp_path: Path) -> None:
    found = _run([MAKE % ("s3: {key: ../../out}", FILE), USE % ("optional: true", "true")], tmp_path)
    assert found["[0].a"].message == "wait: Error (exit code 64): key '../../out' has an empty, '.' or '..' part"
    assert not list(tmp_path.rglob("out"))


def test_a_secret_that_nothing_stands_for_is_said_before_anything_starts(tmp_path: Path) -> None:
    document = workflow(
        "\n".join([USE % (_location("host:1", "k"), "true"), "- {name: main, steps: [[{name: b, template: use}]]}"])
    )
    with pytest.raises(InputError) as refused:
        check(document, RunOptions(state_dir=tmp_path))
    assert "templates.use.inputs.artifacts[0].s3: set ARGOSY_SECRET_STORE_ID in the engine's environment" in str(
        refused.value
    )
