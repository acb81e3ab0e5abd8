"""The library itself: without a GPU it reads its settings, finds its interface, and writes its log."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from argosy.steps.contract.causes import Cause
from argosy.steps.launch.nccl_logs import choose_logs
from argosy.steps.nccl.effective import effective_environment
from argosy.steps.nccl.observed import ObservedTransport, Observer
from argosy.steps.verdict.evidence import read_lines

pytestmark = pytest.mark.torch
ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print(library.ncclGetUniqueId(ctypes.create_string_buffer(128)))
"""


@pytest.fixture(scope="module")
def nccl() -> Path:
    for name in ("nvidia-nccl-cu13", "nvidia-nccl-cu12"):
        try:
            files = metadata.files(name) or []
        except metadata.PackageNotFoundError:
            continue
        return next(Path(str(file.locate())) for file in files if file.name.startswith("libnccl.so"))
    pytest.skip("no NCCL is installed with torch")


def ask(nccl: Path, folder: Path, conf: str = "", **environ: str) -> ObservedTransport:
    """What a process says that begins to use NCCL, in files that launch chooses."""
    (folder / "nccl.conf").write_text(conf)
    given = {"NCCL_CONF_FILE": str(folder / "nccl.conf"), **environ}
    logs = choose_logs(effective_environment(given), folder, folder)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    command = [sys.executable, "-c", ASK, str(nccl)]
    subprocess.run(command, env={**kept, **given, **logs.variables}, check=True, capture_output=True)
    observer = Observer()
    for lines in logs.new_lines():
        observer.feed(lines)
    return observer.seen


def test_it_writes_where_launch_looks(nccl: Path, tmp_path: Path) -> None:
    folder = tmp_path / "50% [of] %h"
    folder.mkdir()
    seen = ask(nccl, folder, NCCL_SOCKET_IFNAME="lo")
    assert seen.lines >= 3
    assert seen.environment["NCCL_SOCKET_IFNAME"] == "lo"
    assert len(seen.hosts) == 1
    assert seen.warnings == []


def test_what_stops_it_is_known(nccl: Path, tmp_path: Path) -> None:
    seen = ask(nccl, tmp_path, NCCL_SOCKET_IFNAME="nosuch0")
    assert seen.warnings == ["Bootstrap : no socket interface found"]
    assert seen.symptoms == {"no-interface": "Bootstrap : no socket interface found"}
    log = next(tmp_path.glob("nccl.*.log")).read_text()
    said = read_lines(log.splitlines())
    assert said is not None
    assert said.cause == Cause.NCCL_NETWORK_INIT


@pytest.mark.parametrize(
    "conf",
    [
        "NCCL_SOCKET_IFNAME=lo\n",
        "NCCL_SOCKET_IFNAME=lo",
        "NCCL_SOCKET_IFNAME==lo\n",
        "# NCCL_SOCKET_IFNAME=eth9\nNCCL_SOCKET_IFNAME=lo\n",
        " NCCL_SOCKET_IFNAME=lo\n",
        " # NCCL_SOCKET_IFNAME=eth9\n",
        "NCCL_SOCKET_IFNAME=lo # the loopback\n",
        "NCCL_SOCKET_IFNAME=lo\nNCCL_SOCKET_IFNAME=eth9\n",
        'NCCL_SOCKET_IFNAME="lo"\n',
        "export NCCL_SOCKET_IFNAME=lo\n",
        "\n\nNCCL_SOCKET_IFNAME=\n",
        "NCCL_SOCKET_IFNAME\n",
    ],
)
def test_a_file_of_settings_means_what_we_say_it_means(conf: str, nccl: Path, tmp_path: Path) -> None:
    seen = ask(nccl, tmp_path, conf)
    said = {each.name: each for each in effective_environment({"NCCL_CONF_FILE": str(tmp_path / "nccl.conf")})}
    ours = said["NCCL_SOCKET_IFNAME"].value.strip() if "NCCL_SOCKET_IFNAME" in said else ""
    assert seen.environment.get("NCCL_SOCKET_IFNAME", "") == ours


def test_the_environment_wins_over_the_file(nccl: Path, tmp_path: Path) -> None:
    seen = ask(nccl, tmp_path, "NCCL_SOCKET_IFNAME=nosuch0\n", NCCL_SOCKET_IFNAME="lo")
    assert (seen.environment["NCCL_SOCKET_IFNAME"], seen.warnings) == ("lo", [])
