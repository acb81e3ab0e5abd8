"""A rank whose disk is full, in words that name none: a small tmpfs in a mount namespace of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from argosy.steps.contract.channel import Ending
from argosy.steps.verdict.judgement import judge

FILLS = """
import errno, json, os, sys
from pathlib import Path
from argosy.steps.launch.rank_output import RankOutput
output, words = RankOutput(1, Path(sys.argv[1])), b"step 3 loss 1.0"
try:
    with open("weights", "wb") as file:
        file.write(bytes(int(sys.argv[2])))
except OSError as error:
    words = f"OSError: {error}".encode()
output.feed(words + b"\\n")
output.finish()
print(json.dumps(list(output.tail)))
"""
SAYS = """
import json, sys
from pathlib import Path
from argosy.steps.launch.rank_output import RankOutput
output = RankOutput(1, Path(sys.argv[1]))
output.feed(b"[Errno 28] No space left on device\\n")
output.finish()
print(json.dumps(list(output.tail)))
"""


@pytest.mark.parametrize("size", [4 << 20, 1 << 10])
def test_the_disk_that_is_full_is_named(tmp_path: Path, size: int) -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here: a full disk cannot be made")
    small = tmp_path / "scratch"
    small.mkdir()
    script = 'mount -t tmpfs -o size=2m none "$1" && cd "$1" && exec "$2" -c "$3" "$4" "$5"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(small), sys.executable]
    ran = subprocess.run([*command, FILLS, str(tmp_path), str(size)], capture_output=True, text=True, check=True)
    tail = json.loads(ran.stdout.splitlines()[-1])
    if size < 2 << 20:
        assert tail == ["step 3 loss 1.0"]
        return
    verdict = judge(
        [
            Ending(
                rank=1, node="node-0", pod="pod-0", time=1.0, exit_code=1, signal=None, stopped=False, tail=tuple(tail)
            )
        ],
        [],
        [],
    )
    assert verdict.cause == "disk_full"
    assert verdict.quote.startswith(f"argosy: the disk is full that holds {small}: ")
    assert f"[rank 1] {verdict.quote}\n" in ran.stdout


@pytest.mark.parametrize(
    "then", ['cd "$1" && rmdir "$1"', 'mount -t tmpfs -o size=0,nr_inodes=1,ro none "$1" && cd "$1"']
)
def test_a_folder_that_is_gone_or_that_nobody_may_write_to_is_not_named(tmp_path: Path, then: str) -> None:
    """The first ended the rank's shim with a traceback, of the second it was said that its disk is full."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        pytest.skip("no user namespaces here")
    folder = tmp_path / "scratch"
    folder.mkdir()
    command = ["unshare", "-rm", "sh", "-c", f'{then} && exec "$2" -c "$3" "$4"', "sh", str(folder), sys.executable]
    ran = subprocess.run([*command, SAYS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout.splitlines()[-1]) == ["[Errno 28] No space left on device"]
