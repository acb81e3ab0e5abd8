"""What a terminal's encoding lacks is shown by its number, and ends no verb."""

from __future__ import annotations

import os
import subprocess
import sys


def test_letters_that_the_encoding_lacks_are_escaped() -> None:
    program = "from argosy.workflows.cli.standard_streams import prepare; prepare('run'); print('step é日 1')"
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, check=True)
    assert done.stdout == b"step \xe9\\u65e5 1\n"
