"""Canaries in every place a run gets credentials from: they reach the script, and no file that the run leaves."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.starts import argosy

pytestmark = pytest.mark.torch
TRAIN = """\
import json, os, pathlib, sys
assert os.environ["API_KEY"] and os.environ["AWS_SECRET_ACCESS_KEY"], "the credentials did not arrive"
pathlib.Path("out").mkdir(exist_ok=True)
for step in range(1, 4):
    print(f"step {step} loss {1 / step}", flush=True)
pathlib.Path("out/state.json").write_text("{}")
if not os.environ.get("ARGOSY_RESUME_STEP", "0").strip("0") and os.environ["ARGOSY_RESTART"] == "0":
    sys.exit("ConnectionResetError: the first restart fails so that there is a verdict")
"""
RUN = """\
name = "secretive"
script = "train.py"
secrets = ["creds"]
[checkpoint]
mode = "opaque"
path = "out"
include = ["state.json"]
[evaluation]
script = "judge.py"
metric = "loss"
direction = "min"
floor = 9.0
[notify]
webhook_secret = "hook"
[retry]
backoff_seconds = 0.1
"""
JUDGE = """\
import json, os
assert os.environ["API_KEY"]
json.dump({"loss": 1}, open(os.environ["ARGOSY_METRICS_PATH"], "w"))
"""


@pytest.fixture
def webhook() -> Iterator[tuple[int, list[str]]]:
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            paths.append(self.path + self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port, paths
    server.shutdown()
    thread.join()
    server.server_close()


def test_no_canary_in_anything_a_run_leaves(tmp_path: Path, webhook: tuple[int, list[str]]) -> None:
    port, told = webhook
    canaries = {name: uuid.uuid4().hex for name in ("key", "aws", "hook")}
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "run.toml").write_text(RUN)
    environ = {
        **os.environ,
        "ARGOSY_SECRET_CREDS_API_KEY": canaries["key"],
        "AWS_SECRET_ACCESS_KEY": canaries["aws"],
        "AWS_ACCESS_KEY_ID": "id",
        "ARGOSY_SECRET_HOOK_URL": f"http://127.0.0.1:{port}/{canaries['hook']}",
    }

    def said_by(*words: str) -> str:
        done = argosy(tmp_path, *words, env=environ)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    said = said_by("run", "run.toml", "-p", "run-id=r1")
    said += "".join(said_by(verb) for verb in ("status", "explain", "logs", "report"))
    said += said_by("compile", "run.toml")
    assert [path for path in told if canaries["hook"] in path], "the webhook was not called"
    assert json.loads(said_by("status", "--json"))["phase"] == "Succeeded"
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"state.json", "workflow.yaml", "report.html", "channel.json", "log"} <= {path.name for path in files}
    for name, canary in canaries.items():
        assert canary not in said, name
        assert canary not in "".join(told).replace(f"/{canary}", ""), name
        assert [str(path) for path in files if canary.encode() in path.read_bytes()] == [], name
