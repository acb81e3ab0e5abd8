"""The code of docs/states.md runs, twice: from scratch, then from what the first run saved."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

DOC = Path(__file__).parents[2] / "docs/states.md"


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.S)
    assert len(blocks) == 3
    script = tmp_path / "page.py"
    script.write_text(
        "\n".join([*blocks, *blocks[:2], "print(f'went on at {first}')", "dist.destroy_process_group()\n"])
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ARGOSY_")}
    environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    environ |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "went on at 11"
