"""A copy of some objects, kept fresh by one watch in a thread of its own.

One long request instead of many short ones: a gang of any size costs the API server one connection. A watch ends for
many reasons (410 Gone, a restarted server, a proxy's timeout); each is answered with a new list, and what was known
stays known meanwhile. https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
import threading
import time
from collections.abc import Callable, Set
from typing import Any

from argosy.steps.cluster.api import Api, ApiError
from argosy.steps.cluster.kinds import Kind
from argosy.steps.contract.causes import Cause
from argosy.steps.contract.errors import StepError
from argosy.steps.contract.objects import GANG_LABEL

WATCH_SECONDS = 300
"""The server ends a watch after this long; a new one goes on where it was."""
_SILENCE_SECONDS = 60.0
"""Past the end of a watch: a connection that is dead and does not say so."""
_LONGEST_PAUSE = 10.0
_SHORT_SECONDS = 1.0
"""A watch that ends so soon, and told nothing, is one that a proxy does not let through: the next one waits."""
_COMPLAIN_SECONDS = 60.0
_STARTING_SECONDS = 10.0
"""So long a server that has just started may refuse everybody: it knows no role and no account yet."""

Changed = Callable[[], None]


class Watched:
    """Objects of ``kind`` with the label ``selector``; deleted ones are kept as they were last seen.

    One that is made again under the name of a deleted one is another.
    """

    def __init__(self, api: Api, kind: Kind, selector: str, changed: Changed) -> None:
        """``changed`` is called, from the watch's thread, after each change."""
        self._api, self._kind, self._selector, self._changed = api, kind, selector, changed
        self._lock = threading.Lock()
        self._objects: dict[str, dict[str, Any]] = {}
        self._gone: dict[str, float] = {}
        self._version = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch-{kind.plural}", daemon=True)

    def start(self) -> None:
        """List once, so that the caller knows what is there, and follow from then on.

        Raises:
            StepError: the kind is not there, its list is forbidden, or the server stays away.
        """
        deadline = time.monotonic() + _STARTING_SECONDS
        while True:
            try:
                self._list(patience=120.0)
                break
            except ApiError as error:
                raise StepError(Cause.CONFIG_OR_RBAC, str(error), quote=str(error)) from error
            except StepError as error:
                if error.cause != Cause.CONFIG_OR_RBAC or time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
        self._thread.start()

    def stop(self) -> None:
        """The thread ends with its request; nobody waits for it."""
        self._stopped.set()

    def objects(self) -> dict[str, dict[str, Any]]:
        """What is there, by name."""
        return {each["metadata"]["name"]: each for each, gone in self.seen() if not gone}

    def seen(self) -> list[tuple[dict[str, Any], float]]:
        """Everything ever seen: (object, when it was gone; 0 while it is there; seconds since 1970), as they came."""
        with self._lock:
            return [(each, self._gone.get(uid, 0.0)) for uid, each in self._objects.items()]

    def forget(self, gangs: Set[str]) -> None:
        """Of what is gone: these gangs' own. A pod takes some 50 kB, and a month makes hundreds of gangs."""
        with self._lock:
            for uid in list(self._gone):
                metadata = self._objects[uid]["metadata"]
                if gangs & {metadata["name"], metadata["labels"].get(GANG_LABEL)}:
                    del self._objects[uid], self._gone[uid]

    def refresh(self) -> None:
        """Ask now: for a caller that just changed something and must see what came of it.

        Raises:
            StepError: forbidden, or the server stays away.
        """
        self._list(patience=30.0)

    def _run(self) -> None:
        pause, complained = 0.5, 0.0
        while not self._stopped.is_set():
            before, began = self._version, time.monotonic()
            try:
                self._follow()
                if self._version != before or time.monotonic() - began > _SHORT_SECONDS:
                    pause = 0.5
                    continue
            except Exception as error:  # whatever a proxy says: without this thread nothing is seen any more
                if time.monotonic() - complained > _COMPLAIN_SECONDS:
                    complained = time.monotonic()
                    print(f"argosy: watching {self._kind.plural}: {error}", file=sys.stderr, flush=True)
            if self._version != before:
                pause = 0.5  # it was served until then
            self._stopped.wait(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, _LONGEST_PAUSE)
            with contextlib.suppress(Exception):
                self._list(patience=0.0)

    def _follow(self) -> None:
        query = {
            "watch": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS),
            "allowWatchBookmarks": "true",
            "labelSelector": self._selector,
        }
        path = self._kind.path(self._api.namespace)
        for line in self._api.lines(path, query, seconds=WATCH_SECONDS + _SILENCE_SECONDS):
            if self._stopped.is_set():
                return
            self._take(json.loads(line))

    def _take(self, event: dict[str, Any]) -> None:
        found = event["object"]
        if event["type"] == "ERROR":
            raise ApiError(int(found.get("code", 0)), str(found.get("reason")), str(found.get("message")))
        self._version = found["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        uid = found["metadata"]["uid"]
        with self._lock:
            self._objects[uid] = found
            if event["type"] == "DELETED":
                self._gone.setdefault(uid, time.time())
        self._changed()

    def _list(self, *, patience: float) -> None:
        found = self._api.list(self._kind, selector=self._selector, patience=patience)
        with self._lock:
            # Items of a list do not say what they are, where the server writes the list itself.
            what = {"apiVersion": self._kind.api_version, "kind": self._kind.kind}
            there = {item["metadata"]["uid"]: {**what, **item} for item in found["items"]}
            for uid in set(self._objects) - set(there):
                self._gone.setdefault(uid, time.time())
            self._objects |= there
            self._version = found["metadata"]["resourceVersion"]
        self._changed()
