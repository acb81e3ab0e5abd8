"""The whole chain, as a stranger would run it: the demo, and the same run with everything in S3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from tests.s3.moto import moto

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = str(Path(sys.executable).parent / "argosy")


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy, so that nobody's own runs are touched."""
    ignored = shutil.ignore_patterns(".argosy", "__pycache__")
    return Path(shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=ignored))


def test_the_demo_shows_what_it_promises(examples: Path) -> None:
    command = [sys.executable, "-m", "examples.demo"]
    done = subprocess.run(command, cwd=examples.parent, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "FAILED" not in done.stdout
    assert done.stdout.count("   ok: ") == 11


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket on a real HTTP server of this machine."""
    with moto() as endpoint:
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket="argosy-chain")
        yield "s3://argosy-chain"


@pytest.mark.variant
def test_data_checkpoints_and_pointer_in_s3(examples: Path, bucket: str) -> None:
    folder = examples / "stdlib-gpt"
    description = (folder / "run.toml").read_text()
    description = description.replace("file:///mnt/argosy", bucket).replace('"60"', '"20"').replace("4.0 ", "8.0 ")
    storage = f'[storage]\nuri = "{bucket}/store"\n\n[dataset]'
    (folder / "run.toml").write_text(description.replace("[dataset]", storage, 1))
    prepare = [sys.executable, "prepare.py", "--out", f"{bucket}/datasets/stdlib-gpt", "--limit-mb", "2"]
    subprocess.run(prepare, cwd=folder, check=True, capture_output=True, timeout=60)
    command = [ARGOSY, "run", "run.toml", "--json", "--inject", "kill:rank=1@step=15"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=dict(os.environ))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert [attempt["signal"] for attempt in told["attempts"]] == [9, None]
    assert told["attempts"][1]["restored_step"] == 10
    assert told["promoted_digest"] == told["evaluated_digest"] == told["checkpoint_digest"] != ""
