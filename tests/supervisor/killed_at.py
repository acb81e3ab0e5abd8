"""The train step, SIGKILLed the moment a durable write has been made: ``killed_at.py PATTERN ARGS...``.

PATTERN is searched in ``put KEY DATA`` (an object), ``record PATH`` (a file of the host) and ``output NAME``.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from argosy.steps.contract.arguments import TrainArgs
from argosy.steps.gang import nodes, processes
from argosy.steps.outputs import step_main
from argosy.steps.store.files import FileStore
from argosy.steps.supervisor import record as outputs
from argosy.steps.train import train

PATTERN = re.compile(sys.argv[1], re.DOTALL)


def written(what: str) -> None:
    """Die here if this is the place."""
    if PATTERN.search(what):
        os.kill(os.getpid(), signal.SIGKILL)


def watch_writes() -> None:
    """Let every write of the supervisor pass :func:`written` once it is durable."""
    store, keep, tell = FileStore._store, nodes.write_record, outputs.write_output

    def stored(self: FileStore, key: str, data: Any, publish: Any) -> tuple[str, int]:
        done = store(self, key, data, publish)
        written(f"put {key} {data.decode(errors='replace') if isinstance(data, bytes) else ''}")
        return done

    def recorded(path: Path, record: dict[str, Any], *, private: bool = False) -> None:
        keep(path, record, private=private)
        written(f"record {path}")

    def told(name: str, value: str | int | float) -> None:
        tell(name, value)
        written(f"output {name}")

    FileStore._store = stored  # type: ignore[method-assign]
    nodes.write_record = processes.write_record = recorded  # type: ignore[attr-defined]
    outputs.write_output = told  # type: ignore[attr-defined]


watch_writes()
sys.exit(step_main(TrainArgs, train, sys.argv[2:]))
