"""What containers write, through the API."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from argosy.steps.cluster.api import READ_SECONDS, Api, ApiAway, ApiError
from argosy.steps.cluster.kinds import POD
from argosy.steps.contract.errors import StepError

LOOK_SECONDS = 1.0
QUIET_SECONDS = 60.0
"""A connection that was silent for so long is made again: a proxy may have forgotten it."""


def log_path(api: Api, pod: str) -> str:
    """Where the log of ``pod`` is."""
    return f"{POD.path(api.namespace, pod)}/log"


def last_lines(api: Api, pod: str, container: str, lines: int | None, *, seconds: float = READ_SECONDS) -> list[str]:
    """The last ``lines`` (None: all) that it has written so far; none of one that has not started or is gone, or where
    nothing comes for so many ``seconds``.
    """
    query = {"container": container, **({} if lines is None else {"tailLines": str(lines)})}
    try:
        found = api.text(log_path(api, pod), query, seconds=seconds).split("\n")
    except (ApiError, ApiAway):
        return []
    return found if found[-1] else found[:-1]


def container_state(pod: Mapping[str, Any], container: str) -> Mapping[str, Any]:
    """``running``, ``waiting`` or ``terminated``; empty before the kubelet has seen the pod."""
    listed = pod.get("status", {}).get("containerStatuses") or []
    return next((each.get("state", {}) for each in listed if each.get("name") == container), {})


class Reader:
    """Follows one container's log in the thread that runs it; after a lost connection no line comes twice."""

    def __init__(
        self, api: Api, pod: str, container: str, take: Callable[[str], None], tail: int | None = None
    ) -> None:
        """``take`` gets each line, those from before only when they are among the last ``tail``."""
        self._api, self._pod, self._container, self._take, self._tail = api, pod, container, take, tail
        self._last = ""
        """Time of the newest line, as the kubelet writes it: of fixed width, so that text compares like time."""

    def run(self) -> None:
        """Until the container has ended or the pod is gone."""
        while True:
            try:
                self._read()
                found = self._api.get(POD, self._pod)
                if found is None or self._has_ended(found):
                    return
            except ApiError as error:
                if error.status == 404:
                    return
            except (ApiAway, StepError):
                pass
            time.sleep(LOOK_SECONDS)

    def _has_ended(self, pod: Mapping[str, Any]) -> bool:
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        return ended or "terminated" in container_state(pod, self._container)

    def _read(self) -> None:
        query = {"container": self._container, "follow": "true", "timestamps": "true"}
        if self._last:
            query["sinceTime"] = self._last
        elif self._tail is not None:
            query["tailLines"] = str(self._tail)
        for data in self._api.lines(log_path(self._api, self._pod), query, seconds=QUIET_SECONDS):
            when, _, line = data.decode("utf-8", "replace").partition(" ")
            if when > self._last:
                self._last = when
                self._take(line.rstrip("\r"))
