"""The pods' logs, as they come, each line after the name of its pod."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.steps.cluster.api import Api
from argosy.steps.cluster.containers import main_container
from argosy.steps.cluster.logs import Reader, container_state

LEAVING_SECONDS = 5.0
"""After the gang's end, for lines that are still on the way."""


class RankLogs:
    """Prints the logs of one gang's pods."""

    def __init__(self, api: Api, gang: str) -> None:
        self._api, self._gang = api, gang
        self._readers: dict[str, threading.Thread] = {}

    def follow(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """Begin to print the logs of pods that have started since."""
        for pod in pods:
            name, container = pod["metadata"]["name"], main_container(pod)
            if name in self._readers or not {"running", "terminated"} & {*container_state(pod, container)}:
                continue
            # Without the gang's name and the random ending: workers-0-1.
            prefix = name.removeprefix(f"{self._gang}-").rpartition("-")[0] or name
            reader = Reader(self._api, name, container, _Printed(prefix))
            self._readers[name] = threading.Thread(target=reader.run, name=f"log-{name}", daemon=True)
            self._readers[name].start()

    def finish(self) -> None:
        """Wait a moment for the lines that were written last."""
        deadline = time.monotonic() + LEAVING_SECONDS
        for thread in self._readers.values():
            thread.join(max(0.0, deadline - time.monotonic()))


class _Printed:
    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def __call__(self, line: str) -> None:
        # One write: lines of several pods must not mix.
        sys.stdout.write(f"[{self._prefix}] {line}\n")
        sys.stdout.flush()
